"""Attention whose matrix is never written: what MLX has one function for."""

from __future__ import annotations

from tract_core.compile.attention import AttentionAxes, attention_behind, wait_for_mix
from tract_core.compile.groups import Group
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.binary import Add, Mul
from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_metal.group.grouping import MetalGrouper
from tract_metal.table import STARTS

ROWS = Rows()


@frozen
class Attention(Group):
    """``axes``: of queries, keys and values. ``scale``: of their products; ``mask``: what is added to these, if any."""

    axes: AttentionAxes
    scale: float
    mask: OutletId | None


@ROWS.row(STARTS, EinSum)
def attention(op: EinSum, grouping: MetalGrouper, node: TypedNode) -> Attention | None:
    """A product of two, times a number, plus a mask, a softmax, and the values mixed by it."""
    model = grouping.model
    if (
        len(node.inputs) != 2
        or op.q_output is not None
        or not model.outlet_fact(OutletId(node.id)).datum_type.is_float()
    ):
        return None
    if wait_for_mix(grouping, node.id, _fits, lambda one: isinstance(one.op, (Add, Mul))):
        return None
    nodes, scale, mask = _scores(grouping, node)
    axes = attention_behind(grouping, node.id, OutletId(nodes[-1]), _fits)
    if axes is None or axes.depth is None or axes.width is None or not axes.alone:
        return None
    second = model.nodes[axes.nodes[1]].op
    if not isinstance(second, EinSum) or second.q_output is not None or not all(map(grouping.has, axes.factors)):
        return None
    return Attention((*nodes, *axes.nodes), axes, scale, mask)


def _scores(grouping: MetalGrouper, node: TypedNode) -> tuple[list[int], float, OutletId | None]:
    """The product, and the nodes behind it: a factor, then a mask, each of them if it is there."""
    nodes, scale = [node.id], 1.0
    reader, other = _next(grouping, nodes[-1])
    number = _number(grouping, other)
    if reader is not None and isinstance(reader.op, Mul) and number is not None:
        nodes.append(reader.id)
        scale = number
        reader, other = _next(grouping, nodes[-1])
    shape = tuple(grouping.model.outlet_fact(OutletId(nodes[-1])).shape)
    if reader is None or other is None or not isinstance(reader.op, Add) or not grouping.has(other):
        return nodes, scale, None
    if tuple(grouping.model.outlet_fact(OutletId(reader.id)).shape) != shape:
        return nodes, scale, None
    return [*nodes, reader.id], scale, other


def _next(grouping: MetalGrouper, node: int) -> tuple[TypedNode | None, OutletId | None]:
    """The node that alone reads another one, and what it reads beside."""
    reader = grouping.reader_at_one(OutletId(node))
    if reader is None or len(reader.inputs) != 2:
        return None, None
    (other,) = (one for one in reader.inputs if one != OutletId(node))
    return reader, other


def _number(grouping: MetalGrouper, outlet: OutletId | None) -> float | None:
    """The one number that a tensor is, where it is part of the model."""
    array = None if outlet is None else grouping.model.outlet_fact(outlet).constant
    return None if array is None or array.size != 1 else float(array.item())


def _fits(node: TypedNode) -> bool:
    return True
