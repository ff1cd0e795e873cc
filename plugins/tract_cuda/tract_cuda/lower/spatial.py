"""Tensors with spatial axes as kernels take them, and what these are told of windows along such axes.

Such a tensor has a batch, and its channels last, however they lie in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.ops.conv import Convolution
from tract_core.ops.pool_spec import AxisPlan, PoolSpec


def in_order(pool: PoolSpec, view: View) -> View:
    """A tensor with a batch, and the channels last."""
    if not pool.data_format.has_n:
        view = replace(view, shape=(1, *view.shape), strides=(0, *view.strides))
    return view.transposed(_order(pool))


def out_of_order(pool: PoolSpec, view: View) -> View:
    """The opposite of `in_order`."""
    order = _order(pool)
    return view.transposed([order.index(axis) for axis in range(int(not pool.data_format.has_n), len(order))])


def sizes_in_order(pool: PoolSpec, shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape that `in_order` gives a tensor."""
    batched = shape if pool.data_format.has_n else (1, *shape)
    return tuple(batched[axis] for axis in _order(pool))


def weights_in_order(op: Convolution, weights: View) -> View:
    """The kernel of a convolution as [outputs, channels of a group, window ...]."""
    kernel, rank = op.kernel_format, op.pool.rank + 2
    start = kernel.h_axis
    return weights.transposed([kernel.o_axis(rank), kernel.i_axis(rank), *range(start, start + op.pool.rank)])


def _order(pool: PoolSpec) -> tuple[int, ...]:
    """Where the batch, the spatial axes and the channels stand in a tensor with a batch."""
    rank = pool.rank
    return (0, *range(2, 2 + rank), 1) if pool.data_format.channels_first else tuple(range(rank + 2))


def along(axes: Sequence[AxisPlan]) -> dict[str, Dim]:
    """What kernels are told of windows along spatial axes."""
    given: dict[str, Dim] = {}
    for number, one in enumerate(axes):
        given |= {f"input{number}": one.input, f"before{number}": one.before}
        given |= {f"stride{number}": one.window.stride, f"dilation{number}": one.window.dilation}
    return given


def positions(axes: Sequence[AxisPlan]) -> dict[str, Dim]:
    """How many windows there are along each axis, for kernels whose loops do not say it."""
    return {f"positions{number}": one.output for number, one in enumerate(axes)}
