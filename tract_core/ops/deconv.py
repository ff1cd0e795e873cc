"""Deconvolutions (transposed convolutions): each input element adds its multiple of a kernel to part of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.ops.conv import Convolution, KernelFormat, grouped, in_accumulator, per_channel, sum_type
from tract_core.ops.expect import arity
from tract_core.ops.pool_spec import AxisPlan, PoolSpec, inside
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Deconv(Convolution):
    """The transpose of a convolution over its spatial axes.

    Inputs: the data; the kernel, with the output channels of all groups and the input channels of one; the bias, one
    number per output channel or one for all. Types are those of `Conv`. The padding is cut off from what is written.

    ``adjustments``: elements added at the end of each spatial axis (ONNX calls them output padding); none stand for 0.
    ``group``: into how many groups the channels are cut; input channels write to the output channels of their group.
    Raises FactError for adjustments that are negative or of another number than the kernel has axes.
    """

    pool: PoolSpec
    kernel_format: KernelFormat = KernelFormat.OIHW
    adjustments: tuple[int, ...] = ()
    group: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjustments", tuple(self.adjustments) or (0,) * self.pool.rank)
        if len(self.adjustments) != self.pool.rank or any(adjustment < 0 for adjustment in self.adjustments):
            raise FactError(
                f"{self.name}: adjustments {list(self.adjustments)}; one that is not negative is wanted for each of "
                f"the {self.pool.rank} spatial axes"
            )

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The shape that is written, less the padding. Raises FactError when the inputs do not fit."""
        x, kernel, bias = arity(self, inputs, 3)
        channels = self.output_channels(x, kernel)
        self.check_per_channel("bias", bias, channels)
        kind = self.plain_output_type(x, kernel, bias)
        spatial = [plan.output for plan in self.pool.transposed_plan(self, x.shape, self.adjustments)]
        return (TypedFact.of(kind, self.pool.data_format.replaced(x.shape, channels, spatial)),)


@ROWS.row(REFERENCE, Deconv)
def reference(op: Deconv, x: Array, kernel: Array, bias: Array) -> Array:
    """Position by position in the kernel: a matrix product of its weights there with the data, added where it goes."""
    layout = op.pool.data_format
    plans = op.pool.transposed_plan(op, x.shape, op.adjustments)
    result = sum_type(DatumType.from_numpy(x.dtype), DatumType.from_numpy(kernel.dtype)).numpy
    data = in_accumulator(layout.to_nchw(x), result)
    sums = _deconvolve(plans, op.group, data, in_accumulator(op.kernel_format.to_oihw(kernel), result))
    sums = sums + per_channel(bias, sums.ndim).astype(sums.dtype)
    return layout.from_nchw(sums.astype(result, copy=False))


def _deconvolve(plans: Sequence[AxisPlan], group: int, data: Array, kernel: Array) -> Array:
    """Data (N, C, spatial) and kernel (O, C / group, spatial) to (N, O, spatial)."""
    outputs, inputs = kernel.shape[:2]
    read = grouped(data, group)
    sizes = data.shape[2:]
    written = np.zeros((data.shape[0], outputs, *(int(plan.output) for plan in plans)), data.dtype)
    for position in np.ndindex(*kernel.shape[2:]):
        check_run_time()
        weights = np.ascontiguousarray(kernel[(slice(None), slice(None), *position)])
        part = np.matmul(weights.reshape(group, outputs // group, inputs), read)
        ends = [
            inside(index * plan.window.dilation - int(plan.before), plan.window.stride, size, int(plan.output))
            for plan, index, size in zip(plans, position, sizes, strict=True)
        ]
        kept, places = zip(*ends, strict=True) if ends else ((), ())
        part = part.reshape(data.shape[0], outputs, *sizes)
        written[(slice(None), slice(None), *places)] += part[(slice(None), slice(None), *kept)]
    return written


@ROWS.row(COST, Deconv)
def cost(op: Deconv, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """For each input element, one multiplication and addition per element of its kernels."""
    x, kernel = inputs[0], inputs[1]
    per_input = kernel.shape[op.kernel_format.o_axis(kernel.rank)] // op.group * prod(op.pool.kernel_shape)
    return {f"FMA({x.datum_type.storage.name})": x.shape.volume * per_input}


@ROWS.row(AXES, Deconv)
def axes(op: Deconv, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The batch stays, and spatial axes on which the kernel is a single element."""
    plans = op.pool.transposed_plan(op, inputs[0].shape, op.adjustments)
    start = op.pool.data_format.h_axis
    kept = [start + axis for axis, plan in enumerate(plans) if plan.is_trivial and op.adjustments[axis] == 0]
    return op.channel_axes(inputs, outputs, kept)
