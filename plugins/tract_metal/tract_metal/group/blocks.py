"""Products with weights that lie in blocks: MLX multiplies them as they lie."""

from __future__ import annotations

from typing import Any

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.quantize import DequantizeLinear
from tract_core.plugins.tables import Rows
from tract_metal.group.grouping import MetalGrouper
from tract_metal.group.groups import Repacking
from tract_metal.table import BLOCKS, STARTS

ROWS = Rows()


@frozen
class PackedProduct(Repacking):
    """What unpacks weights, and the product that alone reads them. ``x``: the other factor.

    ``term``: the names of the axes of ``x``; ``inner``, ``column``: which axes weights have; ``rows_first``: whether
    they have ``column`` first. ``result``: the names of the axes of the product.
    """

    x: OutletId
    term: str
    inner: str
    column: str
    rows_first: bool
    result: str


@frozen
class PackedChoice(Repacking):
    """What unpacks matrices, and the product that alone reads them. ``x``: rows; ``which``: the choice of each row."""

    x: OutletId
    which: OutletId


@ROWS.row(STARTS, DequantizeLinear, UnpackBlocks)
def packed_product(op: Any, grouping: MetalGrouper, node: TypedNode) -> PackedProduct | PackedChoice | None:
    """The product that reads unpacked weights, where these are part of the model and lie along the summed axis."""
    describe = grouping.model.registry[BLOCKS].find(type(op))
    if describe is None or not all(map(grouping.is_constant, node.inputs)):
        return None
    reader = grouping.reader_at_one(OutletId(node.id))
    found = None if reader is None else _read_by(grouping, node, reader)
    if found is None or describe(op, *(grouping.model.outlet_fact(one).constant for one in node.inputs)) is None:
        return None
    others = (found.x, found.which) if isinstance(found, PackedChoice) else (found.x,)
    if all(map(grouping.has, others)):
        return found
    if not grouping.waits(node.id):
        grouping.wait([node.id], found.nodes[-1])
    return None


def _read_by(grouping: MetalGrouper, node: TypedNode, reader: TypedNode) -> PackedProduct | PackedChoice | None:
    if isinstance(reader.op, IndexedMatMul):
        x, weights, which = reader.inputs
        fits = weights == OutletId(node.id)
        return PackedChoice((node.id, reader.id), tuple(node.inputs), x, which) if fits else None
    if not isinstance(reader.op, EinSum) or len(reader.inputs) != 2 or reader.op.q_output is not None:
        return None
    return _product(grouping, node, reader, reader.op)


def _product(grouping: MetalGrouper, node: TypedNode, reader: TypedNode, op: EinSum) -> PackedProduct | None:
    slot = list(reader.inputs).index(OutletId(node.id))
    weights, term, (result,) = op.axes.inputs[slot], op.axes.inputs[1 - slot], op.axes.outputs
    kept = [name for name in weights if name in result]
    if len(weights) != 2 or len(kept) != 1 or len(set(term)) < len(term):
        return None
    column = kept[0]
    inner = weights.replace(column, "")
    whole = set(term) - {inner} | {column} == set(result) and inner in term and column not in term
    same = grouping.model.outlet_fact(reader.inputs[1 - slot]).datum_type
    if not whole or same != grouping.model.outlet_fact(OutletId(node.id)).datum_type:
        return None
    x = reader.inputs[1 - slot]
    return PackedProduct((node.id, reader.id), tuple(node.inputs), x, term, inner, column, weights[0] == column, result)
