"""Pools."""

from __future__ import annotations

from math import prod

from tract_core.data import DatumType
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.plugins.tables import Rows
from tract_onnx.writing.ops.spatial import as_it_was, attributes, channels_first
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, MaxPool)
def max_pool(op: MaxPool, node: Spelling) -> str | tuple[str, ...] | None:
    """MaxPool"""
    told = attributes(node, op.pool, op)
    rank, layout = node.fact().rank, op.pool.data_format
    if told is None:
        return None
    x = channels_first(node, node.input(), layout, rank)
    if op.indices is None:
        return as_it_was(node, node.add("MaxPool", x, **told), layout, rank)
    if not (layout.has_n and layout.channels_first):
        return None
    values, places = node.several("MaxPool", 2, x, **told)
    return values, places if op.indices is DatumType.I64 else node.cast(places, op.indices)


@ROWS.row(ONNX_WRITE, SumPool)
def sum_pool(op: SumPool, node: Spelling) -> str | None:
    """AveragePool; a sum is a mean that counts the padding, times the size of the window"""
    told, kind = attributes(node, op.pool, op), node.fact().datum_type
    is_sum = not op.normalize
    if told is None or not kind.is_float() or (is_sum and "ceil_mode" in told):
        return None
    if set(op.pool.dilations) != {1} and node.opset < 19:
        return None
    if node.opset < 19:
        del told["dilations"]
    rank, layout = node.fact().rank, op.pool.data_format
    x = channels_first(node, node.input(), layout, rank)
    made = node.add("AveragePool", x, count_include_pad=int(is_sum or op.count_include_pad), **told)
    if is_sum:
        made = node.add("Mul", made, node.constant(prod(op.pool.kernel_shape), kind))
    return as_it_was(node, made, layout, rank)
