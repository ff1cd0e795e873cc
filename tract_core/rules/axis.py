"""Rules for axis operators in a row.

A row of axis operators has one meaning: an arrangement of the axes of its input. It is replaced by the shortest row of
that meaning: removed axes first, then moves, then new axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.dims import Dim, is_one, product, same_dim
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, Reshape, RmAxis, full_reshape, moves_for
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by, produced_by

ROWS = Rows()

_MOVES: Final = (AddAxis, RmAxis, MoveAxis)
_KEEPS_ORDER: Final = (AddAxis, RmAxis, Reshape)


@rewrites(AxisOp)
def shorten_axis_ops(model: TypedModel, node: TypedNode, op: AxisOp) -> ModelPatch | None:
    """AxisOp(AxisOp(... x)) -> the shortest row of axis operators with the same effect, if that is shorter

    Of two moves with the same effect, which a move by one place always has, it is the one that `moves_for` gives.
    """
    row = _row(model, node)
    going = _going(model, row)
    kinds: Sequence[AxisOp] = [each.op for each in row if isinstance(each.op, AxisOp)]
    for start in range(len(row)):
        source = model.outlet_fact(row[start].inputs[0]).shape
        shorter = _shorter(kinds[start:], source, node.outputs[0].fact.shape)
        if shorter is not None and (start == len(row) - 1 or len(shorter) <= going):
            return _replace(model, node, row[start].inputs[0], shorter)
    return None


def _row(model: TypedModel, last: TypedNode) -> list[TypedNode]:
    """``last`` and the axis operators in front of it, the first one first."""
    row = [last]
    while isinstance(model.nodes[row[0].inputs[0].node].op, AxisOp):
        row.insert(0, model.nodes[row[0].inputs[0].node])
    return row


def _going(model: TypedModel, row: Sequence[TypedNode]) -> int:
    """How many nodes of the row vanish when its last one does."""
    count = 1
    for node in reversed(row[:-1]):
        if model.single_reader(OutletId(node.id)) is None:
            break
        count += 1
    return count


def _shorter(row: Sequence[AxisOp], source: Sequence[Dim], target: Sequence[Dim]) -> list[AxisOp] | None:
    if len(row) == 1 and isinstance(row[0], (AddAxis, RmAxis)):
        return None  # it is the shortest that does this, as it nearly always stands alone
    if all(isinstance(op, _MOVES) for op in row):
        found = arrangement(row, source)
    elif all(isinstance(op, _KEEPS_ORDER) for op in row):
        found = ones_only(source, target) or _as_reshape(source, target)
        if len(row) == 1 and any(isinstance(op, Reshape) for op in found):
            return None
        return found
    else:
        return None
    other_form = len(row) == 1 and len(found) == 1 and found[0] != row[0]
    return found if len(found) < len(row) or other_form else None


def _as_reshape(source: Sequence[Dim], target: Sequence[Dim]) -> list[AxisOp]:
    reshape = full_reshape(source, target)
    if reshape is not None and not same_dim(product(reshape.before), product(reshape.after)):
        reshape = Reshape(0, tuple(source), tuple(target))  # sizes that stay may be 0, and the others then anything
    return [] if reshape is None else [reshape]


def ones_only(source: Sequence[Dim], target: Sequence[Dim]) -> list[AxisOp] | None:
    """The axes of size 1 to remove and to add for a reshape that does nothing else; ``None`` when it does more."""
    removed: list[AxisOp] = []
    added: list[AxisOp] = []
    at = position = 0
    while at < len(source) or position < len(target):
        if at < len(source) and position < len(target) and source[at] == target[position]:
            at += 1
            position += 1
        elif position < len(target) and is_one(target[position]):
            added.append(AddAxis(position))
            position += 1
        elif at < len(source) and is_one(source[at]):
            removed.insert(0, RmAxis(at))
            at += 1
        else:
            return None
    return [*removed, *added] if len(removed) + len(added) > 0 else None


def arrangement(row: Sequence[AxisOp], source: Sequence[Dim]) -> list[AxisOp]:
    """The shortest row of `RmAxis`, `MoveAxis` and `AddAxis`, in this order, for what ``row`` does to ``source``."""
    rank = len(source)
    axes: list[int | None] = list(range(rank))
    for op in row:
        if isinstance(op, AddAxis):
            axes.insert(op.axis, None)
        elif isinstance(op, RmAxis):
            del axes[op.axis]
        elif isinstance(op, MoveAxis):
            axes.insert(op.target, axes.pop(op.source))
    # Axes of size 1 are all alike: one may stand where another one is wanted.
    ones = iter([axis for axis, size in enumerate(source) if is_one(size)])
    alike = [next(ones, None) if axis is None or is_one(source[axis]) else axis for axis in axes]
    return min(_row_for(axes, rank), _row_for(alike, rank), key=len)


def _row_for(axes: Sequence[int | None], rank: int) -> list[AxisOp]:
    """The row that gives these axes: numbers are axes of the input, of ``rank`` axes, ``None`` is a new one."""
    kept = [axis for axis in axes if axis is not None]
    removed: list[AxisOp] = [RmAxis(axis) for axis in reversed(range(rank)) if axis not in kept]
    ranks = sorted(kept)
    moves = moves_for([ranks.index(axis) for axis in kept])
    added: list[AxisOp] = [AddAxis(position) for position, axis in enumerate(axes) if axis is None]
    return [*removed, *moves, *added]


def _replace(model: TypedModel, node: TypedNode, source: OutletId, row: Sequence[AxisOp]) -> ModelPatch:
    patch = ModelPatch(model)
    outlet = patch.tap(source)
    for count, op in enumerate(row):
        outlet = wire_one(patch.model, node.name if count == len(row) - 1 else f"{node.name}.{count}", op, outlet)
    patch.shunt(OutletId(node.id), outlet)
    return patch


@rewrites(Reshape)
def reshape_before_move(model: TypedModel, node: TypedNode, op: Reshape) -> ModelPatch | None:
    """Reshape(MoveAxis(Reshape(x))) -> MoveAxis(Reshape(x)), where the move keeps the axes that change side by side"""
    move = alone_by(model, node.inputs[0], MoveAxis)
    first = None if move is None else produced_by(model, move.inputs[0], Reshape)
    if move is None or first is None or not op.before:
        return None
    order = move.op.permutation(model.outlet_fact(node.inputs[0]).rank)
    start, end = op.at, op.at + len(op.before)
    at = order[start]
    if list(order[start:end]) != list(range(at, at + len(op.before))):
        return None
    grown = len(op.after) - len(op.before)
    others = [axis if axis < at else axis + grown for axis in order]
    moves = moves_for([*others[:start], *range(at, at + len(op.after)), *others[end:]])
    reshape = Reshape(at, op.before, op.after)
    source = model.outlet_fact(first.inputs[0]).shape
    both = _shorter([first.op, reshape], source, _shape_behind(model, first, reshape))
    if both is None or len(both) + len(moves) > 2:
        return None
    return _replace(model, node, first.inputs[0], [*both, *moves])


def _shape_behind(model: TypedModel, node: TypedNode, op: Reshape) -> tuple[Dim, ...]:
    return tuple(op.change_shape(model.outlet_fact(OutletId(node.id))))


ROWS.add(DECLUTTER, reshape_before_move.name, reshape_before_move)
ROWS.add(DECLUTTER, shorten_axis_ops.name, shorten_axis_ops)
