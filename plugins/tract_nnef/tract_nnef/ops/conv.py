"""Convolutions.

A file has data as batch, channels, spatial axes, and filters as output channels, input channels of a group, spatial
axes. An empty padding stands for an output as large as the strides allow, no groups for one per channel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic, same_dim
from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv, Convolution, KernelFormat, sum_type
from tract_core.ops.pool_spec import DataFormat
from tract_core.ops.wiring import wire_cast, wire_reshape
from tract_core.plugins.tables import Rows
from tract_nnef.ops.pool_spec import BORDERS, WINDOW, bordered, exact, from_nchw, pairs_of, read_steps, to_nchw
from tract_nnef.ops.quantized import as_real, declared, factors, output_type, parameter, parameters_of, product_type
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, STANDARD, reads
from tract_nnef.syntax import ast
from tract_nnef.writing.expressions import type_name
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_PARAMETERS: Final = ("b0", "b_scale", "a0", "a_scale", "c0", "c_scale")
"""Zero points and scales of the data, of the filter and of the output, in the order in which the operator has them."""


@reads(
    ROWS,
    STANDARD,
    "conv(input: tensor<scalar>, filter: tensor<scalar>, bias: tensor<scalar> = 0.0,"
    f" {WINDOW}, groups: integer = 1) -> (output: tensor<scalar>)",
)
def read_conv(call: Call) -> OutletId:
    """A convolution; borders that are not zeros are added to the data before it."""
    x, kernel = factors(call, "input", "filter", "bias")
    sizes = spatial_sizes(call, x, kernel)
    group = read_groups(call, x)
    bias = read_bias(call, sum_type(call.dtype(x).storage, call.dtype(kernel).storage), call.shape(kernel)[0])
    pool = read_steps(call, len(sizes)).pool(sizes)
    x, pool = bordered(call, Conv(pool), pool, x, call.choice("border", BORDERS))
    op = Conv(pool, KernelFormat.OIHW, group)
    if not call.dtype(x).is_quantized():
        return bias.added(call, call.op(op, x, kernel, bias.inside))
    to = product_type(call, x, kernel)
    parameters = parameters_of(call, call.dtype(x), call.dtype(kernel), to)
    return call.op(replace(op, q_output=to), x, kernel, bias.alone(call), *parameters)


def spatial_sizes(call: Call, x: OutletId, kernel: OutletId) -> tuple[int, ...]:
    """The sizes of a filter's spatial axes. Raises CorruptModel where they are not known, or not of the data's rank."""
    shape = call.shape(kernel)
    if len(shape) < 2 or len(shape) != call.rank(x):
        found = f"data {call.fact(x)} and filter {call.fact(kernel)}"
        raise CorruptModel(f"{call.name}: {found}, wanted two tensors of one rank, 2 or more")
    if any(is_symbolic(size) for size in shape[2:]):
        raise CorruptModel(f"{call.name}: the filter {call.fact(kernel)} has spatial sizes that are not known")
    return tuple(int(size) for size in shape[2:])


def read_groups(call: Call, x: OutletId) -> int:
    """The number of groups; 0 stands for the number of channels. Raises CorruptModel where that is not known."""
    groups, channels = call.integer("groups"), call.shape(x)[1]
    if groups:
        return groups
    if is_symbolic(channels):
        raise CorruptModel(f"{call.name}: groups = 0 stands for the channels, of which {call.fact(x)} has {channels}")
    return int(channels)


@frozen
class Bias:
    """``inside``: what the operator adds, one number or one for each output channel. ``after``: what is added then."""

    inside: OutletId
    after: OutletId | None = None

    def alone(self, call: Call) -> OutletId:
        """The bias of an operator behind which nothing can be added. Raises CorruptModel where something has to be."""
        if self.after is not None:
            raise CorruptModel(f"{call.name}: the bias is {call.fact(self.after)}, wanted one for each output channel")
        return self.inside

    def added(self, call: Call, y: OutletId) -> OutletId:
        """The result, with what is still to be added. Raises CorruptModel for what does not stretch to it."""
        if self.after is None:
            return y
        bias, kind = call.with_rank(self.after, max(call.rank(self.after), call.rank(y))), call.dtype(y)
        wide = wire_cast(call.model, call.unique("wide"), y, call.dtype(bias))
        found = wire_cast(call.model, call.unique("bias"), call.op(Add(), wide, bias), kind)
        with call.model.noting_conditions(f"node {call.node!r}"):
            if call.rank(found) != call.rank(y) or not all(map(may_equal, call.shape(found), call.shape(y))):
                wanted = f"one number, one for each of {call.shape(y)[1]} channels, or what stretches to {call.fact(y)}"
                raise CorruptModel(f"{call.name}: the bias is {call.fact(self.after)}, wanted {wanted}")
        return found


def read_bias(call: Call, kind: DatumType, channels: Dim) -> Bias:
    """A number for all output channels, or one for each, whatever axes of 1 there are around them.

    The standard has the channels in the second axis; exporters have them in any. What is neither is stretched to the
    result and added to it, as the standard says.
    """
    bias = call.input("bias", kind)
    if kind.is_float():
        bias = as_real(call, bias, kind)
    shape = call.shape(bias)
    kept = tuple(size for size in shape if not same_dim(size, 1))
    if len(kept) > 1 or (kept and same_dim(kept[0], channels) is False):
        return Bias(call.constant(0, kind), bias)
    if len(shape) <= len(kept) or (len(shape) == 1 and same_dim(channels, 1)):
        return Bias(bias)
    return Bias(_reshaped(call, bias, kept or ((1,) if same_dim(channels, 1) else ())))


def _reshaped(call: Call, x: OutletId, shape: tuple[Dim, ...]) -> OutletId:
    array = call.model.constant(x)
    if array is not None:
        return call.constant_array(array.reshape([int(size) for size in shape]))
    return wire_reshape(call.model, call.unique("bias"), x, shape)


@reads(
    ROWS,
    CORE,
    "tract_core_qconv(input: tensor<scalar>, filter: tensor<scalar>, bias: tensor<scalar> = 0,"
    " group: integer = 0, dilation: integer[] = [], stride: integer[] = [],"
    f" padding: (integer, integer)[] = [], border: string = 'constant', {declared(_PARAMETERS)},"
    " output_dt: string = '', groups: integer = 0) -> (output: tensor<scalar>)",
)
def read_qconv(call: Call) -> OutletId:
    """A convolution of quantised tensors; the number of groups has two names."""
    call.choice("border", ("constant", "ignore"))
    x, kernel = call.input("input"), call.input("filter")
    sizes = spatial_sizes(call, x, kernel)
    group = call.integer("groups") or call.integer("group") or read_groups(call, x)
    bias = read_bias(call, DatumType.I32, call.shape(kernel)[0]).alone(call)
    parameters = [parameter(call, name, {"b0": x, "a0": kernel}.get(name)) for name in _PARAMETERS]
    op = Conv(read_steps(call, len(sizes)).pool(sizes), KernelFormat.OIHW, group, output_type(call, "output_dt"))
    return call.op(op, x, kernel, bias, *parameters)


@ROWS.row(NNEF_WRITE, Conv)
def write_conv(op: Conv, node: Spelling) -> ast.Invocation | None:
    """In the layout of files, whatever that of the operator."""
    plans = op.pool.plan(op, node.input_fact(0).shape)
    padding = pairs_of(op.pool.padding, plans)
    if padding is None:
        return None
    exactly = exact(op.pool.padding)
    if op.q_output is None:
        return write_convolution("conv", op, node, exactly=exactly, padding=padding)
    parameters = dict(zip(_PARAMETERS, node.inputs[3:], strict=True))
    more = {"padding": padding, **parameters, "output_dt": type_name(op.q_output), "registry": CORE}
    return write_convolution("tract_core_qconv", op, node, exactly=exactly, **more)


def write_convolution(
    name: str, op: Convolution, node: Spelling, *, exactly: bool, **more: Any
) -> ast.Invocation | None:
    """A convolution or its transpose; ``None`` where another registry can say more exactly what it is.

    ``exactly``: whether ``more``, the arguments that only one of them has, give the operator back.
    """
    layout, rank = op.pool.data_format, op.pool.rank
    usual = layout is DataFormat.NCHW and op.kernel_format is KernelFormat.OIHW
    if node.allows(PY) and not (
        exactly and usual and op.pool.input_channels is None and op.pool.output_channels is None
    ):
        return None
    result = node.invoke(
        name,
        to_nchw(node, node.input(0), layout, rank),
        _to_oihw(node, op.kernel_format, rank),
        node.input(2),
        dilation=list(op.pool.dilations),
        stride=list(op.pool.strides),
        border="constant",
        groups=op.group,
        **more,
    )
    return from_nchw(node, result, layout, rank)


def _to_oihw(node: Spelling, layout: KernelFormat, rank: int) -> ast.Expression:
    if layout is KernelFormat.OIHW:
        return node.input(1)
    spatial = range(layout.h_axis, layout.h_axis + rank)
    axes = [layout.o_axis(rank + 2), layout.i_axis(rank + 2), *spatial]
    value = node.invoke("transpose", node.input(1), axes=axes)
    assert value is not None  # of the standard
    return node.let("filter", value)
