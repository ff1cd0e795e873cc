"""Convolutions: each output is the sum of a window of the input, over all channels of its group, times a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from math import prod
from typing import Final

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.ops.pool_spec import AxisPlan, PoolSpec, window_elements, windows
from tract_core.ops.rounding import round_into
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class KernelFormat(Enum):
    """The order of the axes of a kernel.

    O is all output channels, I the input channels of one group; HW stands for any number of spatial axes.
    """

    OIHW = "oihw"
    HWIO = "hwio"
    OHWI = "ohwi"

    def o_axis(self, rank: int) -> int:
        """The axis of the output channels in a kernel of ``rank`` axes."""
        return rank - 1 if self is KernelFormat.HWIO else 0

    def i_axis(self, rank: int) -> int:
        """The axis of the input channels of a group."""
        return {KernelFormat.OIHW: 1, KernelFormat.HWIO: rank - 2, KernelFormat.OHWI: rank - 1}[self]

    @property
    def h_axis(self) -> int:
        """The first spatial axis."""
        return {KernelFormat.OIHW: 2, KernelFormat.HWIO: 0, KernelFormat.OHWI: 1}[self]

    def to_oihw(self, kernel: Array) -> Array:
        """A view of the kernel as output channels, input channels, spatial axes."""
        axes = (self.o_axis(kernel.ndim), self.i_axis(kernel.ndim))
        return np.moveaxis(kernel, axes, (0, 1))


class Convolution(TypedOp):
    """What `Conv` and the deconvolution have in common: data, a kernel, and groups of channels."""

    pool: PoolSpec
    kernel_format: KernelFormat
    group: int

    def output_channels(self, x: TypedFact, kernel: TypedFact) -> Dim:
        """The number of output channels. Raises FactError when the kernel does not fit the pool, groups or data."""
        pool, layout, group = self.pool, self.kernel_format, self.group
        pool.check_input(self, x)
        if kernel.rank != pool.rank + 2:
            raise FactError(f"{self.name}: the kernel {kernel} has rank {kernel.rank}, not {pool.rank + 2}")
        start = layout.h_axis
        found = kernel.shape[start : start + pool.rank]
        if any(not may_equal(a, b) for a, b in zip(found, pool.kernel_shape, strict=True)):
            raise FactError(f"{self.name}: the kernel {kernel} is not {list(pool.kernel_shape)} on its spatial axes")
        given, per_group = x.shape[pool.data_format.c_axis(x.rank)], kernel.shape[layout.i_axis(kernel.rank)]
        if not may_equal(given, per_group * group):
            wanted = f"{per_group}" if group == 1 else f"{group} groups of {per_group}"
            raise FactError(f"{self.name}: the data {x} has {given} channels, the kernel {kernel} wants {wanted}")
        channels = kernel.shape[layout.o_axis(kernel.rank)]
        if group < 1 or (isinstance(channels, int) and channels % group):
            raise FactError(f"{self.name}: {channels} output channels cannot be cut into {group} groups")
        if pool.output_channels is not None and not may_equal(channels, pool.output_channels):
            raise FactError(f"{self.name}: the kernel {kernel} does not have {pool.output_channels} output channels")
        return channels

    def check_per_channel(self, what: str, fact: TypedFact, channels: Dim) -> None:
        """Raises FactError unless ``fact`` is a scalar or has one element per output channel."""
        if fact.rank > 1 or (fact.rank == 1 and not may_equal(fact.shape[0], channels)):
            wanted = "a scalar" if channels == 1 else f"a scalar or {channels} elements"
            raise FactError(f"{self.name}: the {what} is {fact}, {wanted} was wanted")

    def plain_output_type(self, x: TypedFact, kernel: TypedFact, bias: TypedFact) -> DatumType:
        """The output's type without quantisation. Raises FactError when the inputs' types do not go together."""
        kinds = x.datum_type, kernel.datum_type
        integers = all(isinstance(kind, DatumType) and kind.is_integer() for kind in kinds)
        if not integers and kinds[0] != kinds[1]:
            raise FactError(f"{self.name}: data and kernel are of different types: {x} and {kernel}")
        if not isinstance(x.datum_type, DatumType) or not x.datum_type.is_number():
            raise FactError(f"{self.name} wants plain numbers, found {x}", hint="quantised data needs q_output")
        output = sum_type(x.datum_type, kernel.datum_type.storage)
        if bias.datum_type != output:
            raise FactError(f"{self.name}: the bias {bias} is not of the output's type, {output.short}")
        return output

    def channel_axes(
        self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], kept: Sequence[int]
    ) -> AxesMapping:
        """The batch stays, so do the data's axes ``kept``; without groups, channels are those of a matrix product."""
        x, kernel, y = inputs[0], inputs[1], outputs[0]
        layout = self.pool.data_format
        mapping = AxesMapping.disconnected([fact.rank for fact in inputs], [y.rank])
        terms, output = [list(term) for term in mapping.inputs], list(mapping.outputs[0])
        for axis in [*range(int(layout.has_n)), *kept]:
            output[axis] = terms[0][axis]
        if self.group == 1:
            c_axis = layout.c_axis(x.rank)
            terms[1][self.kernel_format.i_axis(kernel.rank)] = terms[0][c_axis]
            terms[1][self.kernel_format.o_axis(kernel.rank)] = output[c_axis]
            for slot, fact in enumerate(inputs[2:], start=2):
                if fact.rank == 1 and fact.shape[0] == y.shape[c_axis]:
                    terms[slot][0] = output[c_axis]
        return AxesMapping(tuple("".join(term) for term in terms), ("".join(output),))


@frozen
class Conv(Convolution):
    """A convolution of any number of spatial axes.

    Inputs: the data; the kernel; the bias, one number per output channel or one for all. Integers are summed in, and
    come out as, i32 (i64 where they are wider); half floats are summed in f32.

    ``group``: into how many groups the channels are cut; output channels read the input channels of their group.
    ``q_output``: the type of the output of a quantised convolution, which has six more inputs: zero point and scale of
    data, kernel and output. Those of the data are scalars, the others scalars or one number per output channel. The
    bias is then in i32, in steps of the product of data and kernel scale. Sums are exact in i32; the result is rounded
    half to even and saturates, and what is no number becomes the zero point.
    """

    pool: PoolSpec
    kernel_format: KernelFormat = KernelFormat.OIHW
    group: int = 1
    q_output: DType | None = None

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The shape that the windows give, with the kernel's output channels. Raises FactError for unfit inputs."""
        x, kernel, bias, *parameters = arity(self, inputs, 3 if self.q_output is None else 9)
        channels = self.output_channels(x, kernel)
        self.check_per_channel("bias", bias, channels)
        kind = _output_type(self, x, kernel, bias)
        for what, fact in zip(_PARAMETERS, parameters, strict=False):
            _check_parameter(self, what, fact, channels)
        spatial = [plan.output for plan in self.pool.plan(self, x.shape)]
        return (TypedFact.of(kind, self.pool.data_format.replaced(x.shape, channels, spatial)),)


_PARAMETERS = (
    "data zero point",
    "data scale",
    "kernel zero point",
    "kernel scale",
    "output zero point",
    "output scale",
)


def sum_type(x: DatumType, kernel: DatumType) -> DatumType:
    """The type of a sum of products: i32 for integers up to 32 bits, else the wider of the two types."""
    widest = max(x, kernel, key=lambda kind: kind.itemsize)
    return DatumType.I32 if widest.is_integer() and widest.itemsize <= 4 else widest


def _output_type(op: Conv, x: TypedFact, kernel: TypedFact, bias: TypedFact) -> DType:
    if op.q_output is not None:
        if not (x.datum_type.storage.is_integer() and kernel.datum_type.storage.is_integer()):
            raise FactError(f"{op.name}: a quantised convolution wants integers, found {x} and {kernel}")
        if bias.datum_type.storage is not DatumType.I32:
            raise FactError(f"{op.name}: the bias of a quantised convolution is in i32, found {bias}")
        if not op.q_output.storage.is_integer():
            raise FactError(f"{op.name}: the output of a quantised convolution is an integer, not {op.q_output.short}")
        return op.q_output
    return op.plain_output_type(x, kernel, bias)


def _check_parameter(op: Conv, what: str, fact: TypedFact, channels: Dim) -> None:
    op.check_per_channel(what, fact, 1 if what.startswith("data") else channels)
    kind = fact.datum_type
    if not (kind.is_float() if what.endswith("scale") else kind.storage.is_integer()):
        wanted = "a floating-point number" if what.endswith("scale") else "an integer"
        raise FactError(f"{op.name}: the {what} is {wanted}, found {fact}")


_REQUANTIZED: Final = 40
"""Bytes for each quantised sum: several numbers of eight on the way to the output."""


@ROWS.row(REFERENCE, Conv)
def reference(op: Conv, x: Array, kernel: Array, bias: Array, *parameters: Array) -> Array:
    """Position by position in the kernel: a matrix product of its weights there with the data that it reads."""
    plans = op.pool.plan(op, x.shape)
    layout = op.pool.data_format
    data, weights = layout.to_nchw(x), op.kernel_format.to_oihw(kernel)
    if op.q_output is not None:
        data, weights = _centred(data, parameters[0]), _centred(weights, parameters[2])
    result = sum_type(DatumType.from_numpy(data.dtype), DatumType.from_numpy(weights.dtype)).numpy
    sums = _convolve(plans, op.group, in_accumulator(data, result), in_accumulator(weights, result))
    sums += per_channel(bias, sums.ndim).astype(sums.dtype)
    if op.q_output is not None:
        sums = _requantize(sums, parameters[1::2], parameters[4], op.q_output)
    else:
        sums = sums.astype(result, copy=False)
    return layout.from_nchw(sums)


def in_accumulator(x: Array, result: np.dtype[np.generic]) -> Array:
    """``x`` in the type in which products are summed for a result of that type: f32 for narrower floats."""
    narrow = DatumType.from_numpy(result).is_float() and result.itemsize < 4
    return x.astype(np.float32 if narrow else result, copy=False)


def grouped(x: Array, group: int) -> Array:
    """(batch, channels, spatial axes) as (batch, groups, channels of a group, all positions)."""
    return x.reshape(x.shape[0], group, x.shape[1] // group, prod(x.shape[2:]))


def per_channel(values: Array, rank: int) -> Array:
    """A scalar, or one number per channel, so that it broadcasts over (batch, channels, spatial axes)."""
    return values.reshape(-1, *(1,) * (rank - 2))


def _convolve(plans: Sequence[AxisPlan], group: int, data: Array, kernel: Array) -> Array:
    """Data (N, C, spatial) and kernel (O, C / group, spatial) to (N, O, spatial)."""
    outputs, inputs = kernel.shape[:2]
    spatial = [int(plan.output) for plan in plans]
    sums = np.zeros((data.shape[0], group, outputs // group, prod(spatial)), data.dtype)
    for position, read in windows(plans, data, 0):
        # Weights that lie together are what lets the product use BLAS.
        weights = np.ascontiguousarray(kernel[(slice(None), slice(None), *position)])
        sums += np.matmul(weights.reshape(group, outputs // group, inputs), grouped(read, group))
    return sums.reshape(data.shape[0], outputs, *spatial)


def _centred(x: Array, zero_point: Array) -> Array:
    """The distance from the zero point, in i32; several zero points go along the first axis (output channels)."""
    zero = zero_point.astype(np.int32).reshape(-1, *(1,) * (x.ndim - 1))
    return x.astype(np.int32) - zero


def _requantize(sums: Array, scales: Sequence[Array], zero_point: Array, to: DType) -> Array:
    x_scale, kernel_scale, output_scale = (per_channel(np.asarray(scale), sums.ndim) for scale in scales)
    real = sums.astype(np.float64) * (x_scale * kernel_scale / output_scale)
    return round_into(real, per_channel(zero_point, sums.ndim).astype(np.float64), to.storage)


@ROWS.row(MEMORY, Conv)
def memory(op: Conv, made: int, x: Array, kernel: Array, bias: Array, *parameters: Array) -> int:
    """The data in another type and padded, what is read at one position, and its product beside the sum of these"""
    data = op.pool.data_format.to_nchw(x)
    plans = op.pool.plan(op, x.shape)
    padded, read = window_elements(plans, data)
    sums = x.shape[0] * len(op.kernel_format.to_oihw(kernel)) * prod(int(plan.output) for plan in plans)
    kinds = [DatumType.from_numpy(one.dtype) for one in (x, kernel)]
    each = max(sum_type(*kinds).itemsize, 4)
    if op.q_output is not None:
        return 4 * (2 * x.size + kernel.size + padded) + sums * _REQUANTIZED + max(4 * read, made)
    copied = sum(one.size for one in (x, kernel) if one.itemsize != each)
    return each * (copied + padded + read + 2 * sums) + (made if copied else 0)


@ROWS.row(COST, Conv)
def cost(op: Conv, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """For each output element, one multiplication and addition per element of a kernel."""
    x, kernel = inputs[0], inputs[1]
    per_output = kernel.shape[op.kernel_format.i_axis(kernel.rank)] * prod(op.pool.kernel_shape)
    kind = DatumType.I32 if op.q_output is not None else x.datum_type.storage
    return {f"FMA({kind.name})": outputs[0].shape.volume * per_output}


@ROWS.row(AXES, Conv)
def axes(op: Conv, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The batch stays, and spatial axes that no window mixes."""
    plans = op.pool.plan(op, inputs[0].shape)
    kept = [op.pool.data_format.h_axis + axis for axis, plan in enumerate(plans) if plan.is_trivial]
    return op.channel_axes(inputs, outputs, kept)
