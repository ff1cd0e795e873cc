"""Rules for tensors laid one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.concat import TypedConcat
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by, produced_by

ROWS = Rows()


@rewrites(TypedConcat)
def remove_concat(model: TypedModel, node: TypedNode, op: TypedConcat) -> ModelPatch | None:
    """TypedConcat(x) -> x"""
    return ModelPatch.shunt_one(model, node) if len(node.inputs) == 1 else None


@rewrites(TypedConcat)
def drop_empty_pieces(model: TypedModel, node: TypedNode, op: TypedConcat) -> ModelPatch | None:
    """TypedConcat(a, nothing, b) -> TypedConcat(a, b)"""
    kept = [outlet for outlet in node.inputs if model.outlet_fact(outlet).shape[op.axis] != 0]
    if len(kept) == len(node.inputs) or not kept:
        return None
    return ModelPatch.replace_op(model, node, op, kept)


@rewrites(TypedConcat)
def flatten_concat(model: TypedModel, node: TypedNode, op: TypedConcat) -> ModelPatch | None:
    """TypedConcat(TypedConcat(a, b), c) on one axis -> TypedConcat(a, b, c), when nothing else reads the inner one

    The outermost of a chain takes in all of it at once: one after the other would take the square of the time.
    """
    reader = model.single_reader(OutletId(node.id))
    if reader is not None and reader.op == op and len(reader.inputs) > 1:
        return None
    inputs: list[OutletId] = []
    pending = list(reversed(node.inputs))
    while pending:
        outlet = pending.pop()
        inner = alone_by(model, outlet, TypedConcat)
        if inner is not None and inner.op == op:
            pending.extend(reversed(inner.inputs))
        else:
            inputs.append(outlet)
    return ModelPatch.replace_op(model, node, op, inputs) if len(inputs) > len(node.inputs) else None


@rewrites(TypedConcat)
def rejoin_slices(model: TypedModel, node: TypedNode, op: TypedConcat) -> ModelPatch | None:
    """TypedConcat(x[a:b], x[b:c]) -> x[a:c]"""
    patch = ModelPatch(model)
    inputs: list[OutletId] = []
    for first, last in _runs(model, node, op.axis):
        part = _part(model, first, op.axis)
        end = _part(model, last, op.axis)
        if part is None or end is None or first == last:
            inputs.append(patch.tap(first))
            continue
        source = patch.tap(model.producer(first).inputs[0])
        inputs.append(wire_one(patch.model, f"{node.name}.joined", Slice(op.axis, part.start, end.end), source))
    if len(inputs) == len(node.inputs):
        return None
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, op, *inputs))
    return patch


def _runs(model: TypedModel, node: TypedNode, axis: int) -> list[tuple[OutletId, OutletId]]:
    """The inputs in runs of slices that follow one another in one tensor, each by its first and its last."""
    runs: list[tuple[OutletId, OutletId]] = []
    for outlet in node.inputs:
        if runs and _follows(model, runs[-1][1], outlet, axis):
            runs[-1] = runs[-1][0], outlet
        else:
            runs.append((outlet, outlet))
    return runs


def _follows(model: TypedModel, left: OutletId, right: OutletId, axis: int) -> bool:
    a, b = _part(model, left, axis), _part(model, right, axis)
    if a is None or b is None or model.producer(left).inputs != model.producer(right).inputs:
        return False
    return a.end == b.start


def _part(model: TypedModel, outlet: OutletId, axis: int) -> Slice | None:
    op = model.producer(outlet).op
    return op if isinstance(op, Slice) and op.axis == axis else None


@frozen
class Piece:
    """The part of one input of a concatenation that a range covers.

    ``slot``: of the input. ``start``, ``end``: of the part, in positions of the input. ``whole``: whether it is all
    of it.
    """

    slot: int
    start: Dim
    end: Dim
    whole: bool


@rewrites(Slice)
def slice_of_concat(model: TypedModel, node: TypedNode, op: Slice) -> ModelPatch | None:
    """Slice(TypedConcat(a, b, c)) -> the pieces that it covers, the first and the last one sliced"""
    concat = produced_by(model, node.inputs[0], TypedConcat)
    if concat is None or concat.op.axis != op.axis:
        return None
    pieces = covered(model, concat, op)
    if not pieces or (len(pieces) > 1 and model.single_reader(node.inputs[0]) is None):
        return None
    patch = ModelPatch(model)
    outlets: list[OutletId] = []
    for piece in pieces:
        outlet = patch.tap(concat.inputs[piece.slot])
        if not piece.whole:
            part = Slice(op.axis, piece.start, piece.end)
            outlet = wire_one(patch.model, f"{node.name}.piece{piece.slot}", part, outlet)
        outlets.append(outlet)
    result = outlets[0] if len(outlets) == 1 else wire_one(patch.model, node.name, concat.op, *outlets)
    patch.shunt(OutletId(node.id), result)
    return patch


def covered(model: TypedModel, concat: TypedNode, op: Slice) -> list[Piece] | None:
    """What a slice covers of each input of a concatenation; ``None`` where that depends on a symbol."""
    sizes = [model.outlet_fact(outlet).shape[op.axis] for outlet in concat.inputs]
    offset: Dim = 0
    pieces: list[Piece] = []
    for slot, size in enumerate(sizes):
        start = _inside(model, op.start - offset, size)
        end = _inside(model, op.end - offset, size)
        if start is None or end is None:
            return None
        if start != end:
            pieces.append(Piece(slot, start, end, start == 0 and end == size))
        offset = offset + size
    return pieces


def _inside(model: TypedModel, bound: Dim, size: Dim) -> Dim | None:
    """``bound`` brought between 0 and ``size``; ``None`` where symbols decide."""
    if bound in (0, size):
        return bound
    if model.known.less_or_equal(bound, 0):
        return 0
    if model.known.less_or_equal(size, bound):
        return size
    both: Sequence[bool | None] = (model.known.less_or_equal(0, bound), model.known.less_or_equal(bound, size))
    return bound if all(both) else None


for rule in (remove_concat, drop_empty_pieces, flatten_concat, rejoin_slices, slice_of_concat):
    ROWS.add(DECLUTTER, rule.name, rule)
