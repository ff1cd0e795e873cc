"""Pools: the largest element, the sum or the mean of each window.

A file gives sizes, strides and paddings for all axes. Beyond the border there is nothing for the largest element, also
where it says ``'constant'``, which is the default: so do the tract engines, and those who write for them. The place of
an element is counted within its channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tract_core.data import DatumType
from tract_core.dims import Dim, product
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Div, Rem
from tract_core.ops.pool import MaxPool, Pool, SumPool
from tract_core.ops.pool_spec import DataFormat, ExplicitOnnxPool, PoolSpec
from tract_core.plugins.tables import Rows
from tract_nnef.ops.pool_spec import BORDERS, WINDOW, all_axes, bordered, exact, from_nchw, pairs_of, to_nchw
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, PY, STANDARD, fragments, reads
from tract_nnef.syntax import ast
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_POOL: Final = f"input: tensor<scalar>, size: integer[], {WINDOW}"


@reads(ROWS, STANDARD, f"max_pool({_POOL}) -> (output: tensor<scalar>)")
def read_max_pool(call: Call) -> OutletId:
    """The largest element of each window."""
    return _max_pool(call, None)[0]


@reads(ROWS, STANDARD, f"max_pool_with_index({_POOL}) -> (output: tensor<scalar>, index: tensor<integer>)")
def read_max_pool_with_index(call: Call) -> Sequence[OutletId]:
    """The largest element of each window, and its place."""
    return _max_pool(call, DatumType.I64)


@reads(ROWS, STANDARD, f"argmax_pool({_POOL}) -> (index: tensor<integer>)")
def read_argmax_pool(call: Call) -> OutletId:
    """The place of the largest element of each window."""
    return _max_pool(call, DatumType.I64)[1]


def _max_pool(call: Call, indices: DatumType | None) -> Sequence[OutletId]:
    border = call.choice("border", BORDERS)

    def wire(x: OutletId, pool: PoolSpec) -> Sequence[OutletId]:
        x, pool = bordered(call, MaxPool(pool), pool, x, border)
        values, *places = call.ops(MaxPool(pool, indices), x)
        return [values, *(_in_channel(call, place, call.shape(x), pool.data_format) for place in places)]

    return all_axes(call, call.input("input"), wire)


def _in_channel(call: Call, place: OutletId, shape: Sequence[Dim], layout: DataFormat) -> OutletId:
    """A place in the whole tensor as one among the spatial axes."""

    def number(size: Dim) -> OutletId:
        return call.with_rank(call.model.add_const(call.unique("size"), (size,)), len(shape))

    if not layout.channels_first:
        place = call.op(Div(), place, number(shape[-1]))
    return call.op(Rem(), place, number(product(layout.spatial(shape))))


@reads(ROWS, STANDARD, f"box({_POOL}, normalize: logical = false) -> (output: tensor<scalar>)")
def read_box(call: Call) -> OutletId:
    """The sum of each window; with ``normalize`` the mean, which counts what is beyond the border unless ignored."""
    border, normalize = call.choice("border", BORDERS), call.flag("normalize")

    def wire(x: OutletId, pool: PoolSpec) -> Sequence[OutletId]:
        x, pool = bordered(call, SumPool(pool), pool, x, border)
        return call.ops(SumPool(pool, count_include_pad=normalize and border == "constant", normalize=normalize), x)

    (y,) = all_axes(call, call.real(call.input("input")), wire)
    return y


fragments(
    ROWS,
    STANDARD,
    f"""
fragment avg_pool({_POOL}) -> (output: tensor<scalar>)
{{
    output = box(input, size = size, border = border, padding = padding, stride = stride, dilation = dilation,
        normalize = true);
}}

fragment rms_pool({_POOL}) -> (output: tensor<scalar>)
{{
    output = sqrt(avg_pool(sqr(input), size = size, border = border, padding = padding, stride = stride,
        dilation = dilation));
}}
""",
)


@ROWS.row(NNEF_WRITE, MaxPool)
def write_max_pool(op: MaxPool, node: Spelling) -> ast.Invocation | None:
    """Places count within their channel in a file, and in the whole tensor here: those are not written."""
    if op.indices is not None:
        return None
    return _write("max_pool", op, node, border="ignore")


@ROWS.row(NNEF_WRITE, SumPool)
def write_sum_pool(op: SumPool, node: Spelling) -> ast.Invocation | None:
    """A mean counts what is beyond the border where the operator says so; what a ceil mode adds cannot be left out."""
    padding = op.pool.padding
    ceil = isinstance(padding, ExplicitOnnxPool) and padding.ceil_mode
    counted = op.count_include_pad and op.normalize
    if counted and ceil:
        return None
    border = "constant" if op.count_include_pad else "ignore"
    return _write("box", op, node, border=border, normalize=op.normalize)


def _write(name: str, op: Pool, node: Spelling, **more: Any) -> ast.Invocation | None:
    """A pool; ``None`` where another registry can say more exactly what it is."""
    pool = op.pool
    layout = pool.data_format
    padding = pairs_of(pool.padding, pool.plan(op, node.input_fact(0).shape))
    exactly = layout is DataFormat.NCHW and exact(pool.padding) and pool.input_channels is pool.output_channels is None
    if padding is None or (node.allows(PY) and not exactly):
        return None
    one = (1, 1)
    result = node.invoke(
        name,
        to_nchw(node, node.input(0), layout, pool.rank),
        size=[*one, *pool.kernel_shape],
        dilation=[*one, *pool.dilations],
        stride=[*one, *pool.strides],
        padding=[(0, 0), (0, 0), *padding] if padding else [],
        **more,
    )
    return from_nchw(node, result, layout, pool.rank)
