"""Operators that only change how elements are arranged in axes: add, remove, move an axis, or reshape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim, product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping, letters
from tract_core.model.conditions import may_be_of_shape, may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class AxisOp(TypedOp):
    """Base of the family. ``change`` is the meaning for a list of sizes (or of anything that goes with the axes)."""

    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type in the changed shape. Raises FactError when the axes do not fit."""
        (x,) = arity(self, inputs, 1)
        return (x.with_shape(self.change_shape(x)),)

    def change_shape(self, x: TypedFact) -> Sequence[Dim]:
        """The sizes after the change."""
        raise NotImplementedError


@frozen
class AddAxis(AxisOp):
    """A new axis of size 1 at position ``axis``."""

    axis: int

    def change_shape(self, x: TypedFact) -> Sequence[Dim]:
        """The sizes after the change."""
        axis_in(self, self.axis, x.rank + 1)
        return (*x.shape[: self.axis], 1, *x.shape[self.axis :])


@frozen
class RmAxis(AxisOp):
    """The axis ``axis``, of size 1, removed."""

    axis: int

    def change_shape(self, x: TypedFact) -> Sequence[Dim]:
        """The sizes after the change."""
        axis_in(self, self.axis, x.rank)
        if not may_equal(x.shape[self.axis], 1):
            raise FactError(f"RmAxis: axis {self.axis} of {x} has size {x.shape[self.axis]}, not 1")
        return (*x.shape[: self.axis], *x.shape[self.axis + 1 :])


@frozen
class MoveAxis(AxisOp):
    """The axis at ``source`` taken out and put back so that it stands at ``target``."""

    source: int
    target: int

    def change_shape(self, x: TypedFact) -> Sequence[Dim]:
        """The sizes after the change."""
        axis_in(self, self.source, x.rank)
        axis_in(self, self.target, x.rank)
        return [x.shape[axis] for axis in self.permutation(x.rank)]

    def permutation(self, rank: int) -> tuple[int, ...]:
        """For each output axis, the input axis that it was."""
        order = list(range(rank))
        order.insert(self.target, order.pop(self.source))
        return tuple(order)


@frozen
class Reshape(AxisOp):
    """The axes from ``at`` on, of sizes ``before``, arranged as sizes ``after``; elements keep their order."""

    at: int
    before: tuple[Dim, ...]
    after: tuple[Dim, ...]

    def change_shape(self, x: TypedFact) -> Sequence[Dim]:
        """The sizes after the change."""
        end = self.at + len(self.before)
        if self.at < 0 or end > x.rank or not may_be_of_shape(x.shape[self.at : end], self.before):
            raise FactError(f"Reshape: axes {self.at} to {end} of {x} are not {_text(self.before)}")
        if not may_equal(product(self.before), product(self.after)):
            raise FactError(
                f"Reshape: {_text(self.before)} has {product(self.before)} elements, "
                f"{_text(self.after)} has {product(self.after)}; the input is {x}"
            )
        return (*x.shape[: self.at], *self.after, *x.shape[end:])


def _text(sizes: Sequence[Dim]) -> str:
    return f"[{','.join(map(str, sizes))}]"


@ROWS.row(REFERENCE, AddAxis)
@ROWS.row(SYMBOLIC, AddAxis)
def add_axis(op: AddAxis, x: Array) -> Array:
    """numpy.expand_dims"""
    return np.expand_dims(x, op.axis)


@ROWS.row(REFERENCE, RmAxis)
@ROWS.row(SYMBOLIC, RmAxis)
def rm_axis(op: RmAxis, x: Array) -> Array:
    """numpy.squeeze"""
    return np.squeeze(x, op.axis)


@ROWS.row(REFERENCE, MoveAxis)
@ROWS.row(SYMBOLIC, MoveAxis)
def move_axis(op: MoveAxis, x: Array) -> Array:
    """numpy.moveaxis"""
    return np.moveaxis(x, op.source, op.target)


@ROWS.row(REFERENCE, Reshape)
@ROWS.row(SYMBOLIC, Reshape)
def reshape(op: Reshape, x: Array) -> Array:
    """numpy.reshape of a run of axes"""
    end = op.at + len(op.before)
    return x.reshape((*x.shape[: op.at], *(int(dim) for dim in op.after), *x.shape[end:]))


@ROWS.row(COST, AxisOp)
def cost(op: AxisOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, AddAxis)
def add_axis_axes(op: AddAxis, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis goes on; the new one is an axis of its own."""
    source, fresh = _names(inputs[0].rank, 1)
    return AxesMapping((source,), (source[: op.axis] + fresh + source[op.axis :],))


@ROWS.row(AXES, RmAxis)
def rm_axis_axes(op: RmAxis, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis but the removed one goes on."""
    source, _ = _names(inputs[0].rank, 0)
    return AxesMapping((source,), (source[: op.axis] + source[op.axis + 1 :],))


@ROWS.row(AXES, MoveAxis)
def move_axis_axes(op: MoveAxis, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis goes on, in the new order."""
    source, _ = _names(inputs[0].rank, 0)
    return AxesMapping((source,), ("".join(source[axis] for axis in op.permutation(len(source))),))


@ROWS.row(AXES, Reshape)
def reshape_axes(op: Reshape, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes outside the reshape go on, and those that keep their size on its two ends; the rest is disconnected."""
    source, fresh = _names(inputs[0].rank, len(op.after))
    kept = source[op.at : op.at + len(op.before)]
    head, tail = common_ends(op.before, op.after)
    inner = kept[:head] + fresh[: len(op.after) - head - tail] + kept[len(kept) - tail :]
    return AxesMapping((source,), (source[: op.at] + inner + source[op.at + len(op.before) :],))


def _names(rank: int, fresh: int) -> tuple[str, str]:
    names = iter(letters())
    return "".join(next(names) for _ in range(rank)), "".join(next(names) for _ in range(fresh))


def common_ends(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[int, int]:
    """How many sizes two shapes share at the start, and how many of the others at the end."""
    shortest = min(len(a), len(b))
    head = 0
    while head < shortest and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shortest - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return head, tail


def moves_for(permutation: Sequence[int]) -> list[MoveAxis]:
    """Axis moves that together arrange axes as ``permutation`` says (for each output axis, the input axis).

    One move where one is enough. Raises FactError when it is not a permutation.
    """
    rank = len(permutation)
    if sorted(permutation) != list(range(rank)):
        raise FactError(f"{list(permutation)} is not a permutation of {rank} axes")
    wanted = tuple(permutation)
    singles = (MoveAxis(source, target) for source in range(rank) for target in range(rank) if source != target)
    for move in singles:
        if move.permutation(rank) == wanted:
            return [move]
    current = list(range(rank))
    moves: list[MoveAxis] = []
    for target, axis in enumerate(permutation):
        source = current.index(axis)
        if source != target:
            moves.append(MoveAxis(source, target))
            current.insert(target, current.pop(source))
    return moves


def full_reshape(shape: Sequence[Dim], to: Sequence[Dim]) -> Reshape | None:
    """The reshape of ``shape`` into ``to``, leaving alone the axes that stay on both ends; ``None`` for no change."""
    shape, to = tuple(shape), tuple(to)
    if shape == to:
        return None
    head, tail = (0, 0) if 0 in shape else common_ends(shape, to)  # nothing follows from equal volumes of 0
    return Reshape(head, shape[head : len(shape) - tail], to[head : len(to) - tail])
