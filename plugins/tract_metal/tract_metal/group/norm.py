"""Layers that normalise: what MLX has one function for, with the scale and the shift behind."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.compile.groups import Group
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.norm import RmsNorm
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.tables import Rows
from tract_metal.group.grouping import MetalGrouper
from tract_metal.table import STARTS

ROWS = Rows()


@frozen
class Normed(Group):
    """Elements normalised along the last axis. ``x``: the tensor; ``eps``: what is added to the mean of squares.

    ``centred``: whether the mean is taken off before. ``scale``, ``shift``: vectors behind, where there are any.
    """

    x: OutletId
    eps: float
    centred: bool
    scale: OutletId | None
    shift: OutletId | None


@ROWS.row(STARTS, Reduce)
def layer_norm(op: Reduce, grouping: MetalGrouper, node: TypedNode) -> Normed | None:
    """The sum of a row, its mean, the differences to it, and these divided by the root of their mean square."""
    model, (x,) = grouping.model, node.inputs
    fact = model.outlet_fact(x)
    if op.reducer is not Reducer.SUM or op.axes != (fact.rank - 1,) or not fact.datum_type.is_float():
        return None
    mean = grouping.only_reader(OutletId(node.id))
    if mean is None or not isinstance(mean.op, Mul) or not _is_one_over(grouping, mean, node.id, fact.shape[-1]):
        return None
    centred = grouping.only_reader(OutletId(mean.id))
    if centred is None or not isinstance(centred.op, Sub) or list(centred.inputs) != [x, OutletId(mean.id)]:
        return None
    norm = grouping.only_reader(OutletId(centred.id))
    if norm is None or not isinstance(norm.op, RmsNorm) or norm.op.axis != fact.rank - 1:
        return None
    return _with_vectors(grouping, (node.id, mean.id, centred.id, norm.id), x, norm.op.eps, centred=True)


@ROWS.row(STARTS, RmsNorm)
def rms_norm(op: RmsNorm, grouping: MetalGrouper, node: TypedNode) -> Normed | None:
    """Along the last axis, with a scale behind."""
    if op.axis != grouping.model.outlet_fact(node.inputs[0]).rank - 1:
        return None
    found = _with_vectors(grouping, (node.id,), node.inputs[0], op.eps, centred=False)
    return found if found.scale is not None else None


def _is_one_over(grouping: MetalGrouper, node: TypedNode, total: int, size: Any) -> bool:
    """Whether a node multiplies a total by one over a size."""
    others = [outlet for outlet in node.inputs if outlet.node != total]
    array = grouping.model.outlet_fact(others[0]).constant if len(others) == 1 else None
    if array is None or not isinstance(size, int) or not size:
        return False
    return array.size == 1 and array.item() == np.asarray(1 / size).astype(array.dtype).item()


def _with_vectors(grouping: MetalGrouper, nodes: tuple[int, ...], x: OutletId, eps: float, *, centred: bool) -> Normed:
    """With the scale behind, and the shift behind that; there is no shift alone, nor one without a mean taken off."""
    scale, node = _vector(grouping, nodes[-1], Mul)
    if node is None:
        return Normed(nodes, x, eps, centred, None, None)
    nodes = (*nodes, node)
    shift, node = _vector(grouping, node, Add) if centred else (None, None)
    return Normed(nodes if node is None else (*nodes, node), x, eps, centred, scale, shift)


def _vector(grouping: MetalGrouper, last: int, kind: type[Mul] | type[Add]) -> tuple[OutletId | None, int | None]:
    """What stands along the last axis beside the result of a node, and who joins it to that."""
    model, outlet = grouping.model, OutletId(last)
    reader = grouping.reader_at_one(outlet)
    if reader is None or not isinstance(reader.op, kind):
        return None, None
    (other,) = (one for one in reader.inputs if one != outlet)
    shape, found = model.outlet_fact(outlet).shape, model.outlet_fact(other).shape
    fits = grouping.has(other) and found[-1] == shape[-1] and all(size == 1 for size in found[:-1])
    return (other, reader.id) if fits else (None, None)
