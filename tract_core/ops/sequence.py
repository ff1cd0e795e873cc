"""Sequences: make them, change them, read them, cut tensors into them and join tensors from them.

A sequence is a tensor without axes of type `SequenceType`; as arrays cannot hold one as a constant, the operators that
yield sequences are never computed early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tract_core.data import Constant, DatumType, DType, ItemFact, SequenceType
from tract_core.data.boxes import boxed, from_tensor, to_tensor
from tract_core.data.containers import Container, compatible_items, compatible_types, join_items, sequence_of
from tract_core.dims import Dim
from tract_core.errors import FactError, RunError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import Op, TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.expect import integers
from tract_core.ops.wiring import fresh_size, wire_one
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class SequenceConstruct(TypedOp):
    """The inputs, in order, as a sequence of values of type ``datum_type``; the empty one without inputs."""

    datum_type: DType
    pure: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A sequence whose items are known one by one. Raises FactError when an input is of another type."""
        for slot, fact in enumerate(inputs):
            if not compatible_types(fact.datum_type, self.datum_type):
                raise FactError(
                    f"SequenceConstruct wants values of type {self.datum_type.short}, input {slot} is {fact}"
                )
        return (TypedFact.of(sequence_of(self.datum_type, map(item_of, inputs)), ()),)


@frozen
class SequenceInsert(TypedOp):
    """A sequence (input 0) with one more value (input 1) in front of position (input 2), else at the end.

    Positions of this and the other operators are single integers, and count from the end where they are negative.
    """

    pure: ClassVar[bool] = False
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A sequence that is one longer. Raises FactError for a value of another type than the others."""
        _arity(self, inputs, 2, 3)
        kind, item = sequence_type(self, inputs[0]), item_of(inputs[1])
        if not compatible_types(kind.item.datum_type, item.datum_type):
            raise FactError(f"SequenceInsert: a value of {inputs[1]} does not go into {inputs[0]}")
        known = _known_items(kind, inputs[2] if len(inputs) > 2 else None, kind.length or 0, one_more=True)
        if known is not None:
            items, place = known
            return (TypedFact.of(sequence_of(kind.item.datum_type, [*items[:place], item, *items[place:]]), ()),)
        joined = item if kind.items == () else join_items(kind.item, item)
        if joined is None:
            raise FactError(f"SequenceInsert: a value of {inputs[1]} does not go into {inputs[0]}")
        return (TypedFact.of(SequenceType(joined), ()),)


@frozen
class SequenceErase(TypedOp):
    """A sequence (input 0) without the value at a position (input 1), else without the last one."""

    pure: ClassVar[bool] = False
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A sequence that is one shorter. Raises FactError for a position that is not there."""
        _arity(self, inputs, 1, 2)
        kind = sequence_type(self, inputs[0])
        known = _known_items(kind, inputs[1] if len(inputs) > 1 else None, (kind.length or 0) - 1)
        if known is None:
            return (TypedFact.of(SequenceType(kind.item), ()),)
        items, place = known
        return (TypedFact.of(sequence_of(kind.item.datum_type, [*items[:place], *items[place + 1 :]]), ()),)


@frozen
class SequenceAt(TypedOp):
    """The value of a sequence (input 0) at a position (input 1).

    ``shape``: its sizes, symbols where only the run can tell; `wire_at` makes them.
    """

    shape: tuple[Dim, ...]
    announces: ClassVar[tuple[str, ...]] = ("shape",)
    judges: ClassVar[tuple[int, ...]] = (1,)
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A value in ``shape``. Raises FactError when that contradicts what is known of the sequence."""
        _arity(self, inputs, 2, 2)
        return (announced(self, item_at(self, inputs[0], inputs[1]), self.shape),)


@frozen
class SequenceLength(TypedOp):
    """How many values a sequence holds: i64."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One number, whose value is known where the number of items is."""
        _arity(self, inputs, 1, 1)
        length = sequence_type(self, inputs[0]).length
        if length is None:
            return (TypedFact.of(DatumType.I64, ()),)
        return (TypedFact.of_value(Constant(np.array(length, np.int64))),)


@frozen
class SplitToSequence(TypedOp):
    """A tensor (input 0) cut along ``axis`` into a sequence; input 1 says where: the sizes, or one size for all pieces.

    With one size (a tensor without axes), the last piece is smaller where that does not come out even. Without
    ``keep_axis`` pieces have size 1, and lose the axis.
    """

    axis: int
    keep_axis: bool = True
    pure: ClassVar[bool] = False
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A sequence of tensors that differ in the size of ``axis``."""
        _arity(self, inputs, 2, 2)
        x, sizes = inputs
        integers(self, sizes, "sizes of the pieces")
        if sizes.rank > 1 or not 0 <= self.axis < x.rank:
            raise FactError(f"SplitToSequence: {x} is not cut along axis {self.axis} into pieces of sizes {sizes}")
        before, after = x.shape[: self.axis], x.shape[self.axis + 1 :]
        shape = (*before, None, *after) if self.keep_axis else (*before, *after)
        return (TypedFact.of(SequenceType(ItemFact(x.datum_type, shape)), ()),)


@frozen
class ConcatFromSequence(TypedOp):
    """The tensors of a sequence joined along ``axis``, which is a new one with ``new_axis``.

    ``shape``: the sizes of the result, symbols where only the run can tell; `wire_concat_from` makes them.
    """

    axis: int
    new_axis: bool
    shape: tuple[Dim, ...]
    announces: ClassVar[tuple[str, ...]] = ("shape",)
    judges: ClassVar[tuple[int, ...]] = (0,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor in ``shape``. Raises FactError when that contradicts what is known of the sequence."""
        _arity(self, inputs, 1, 1)
        joined = self.joined(sequence_type(self, inputs[0]))
        return (announced(self, joined, self.shape),)

    def joined(self, kind: SequenceType) -> ItemFact:
        """What is known of the result for a sequence of that type. Raises FactError for an axis that is not there."""
        if kind.items == ():
            raise FactError("ConcatFromSequence: the sequence is empty, there is nothing to join")
        item = kind.item
        if item.shape is None or isinstance(item.datum_type, Container):
            return item
        rank = len(item.shape) + self.new_axis
        if not 0 <= self.axis < rank:
            raise FactError(f"ConcatFromSequence: axis {self.axis} is outside a result of rank {rank} from {kind}")
        if self.new_axis:
            return ItemFact(item.datum_type, (*item.shape[: self.axis], kind.length, *item.shape[self.axis :]))
        sizes = [None if one.shape is None else one.shape[self.axis] for one in kind.items or ()]
        total = sum((size for size in sizes if size is not None), 0) if sizes and None not in sizes else None
        return ItemFact(item.datum_type, (*item.shape[: self.axis], total, *item.shape[self.axis + 1 :]))


def item_of(fact: TypedFact) -> ItemFact:
    """What is known of a value of that fact once it is inside a container."""
    return ItemFact(fact.datum_type, tuple(fact.shape))


def sequence_type(op: Op, fact: TypedFact) -> SequenceType:
    """The type of a sequence. Raises FactError for anything else."""
    if not isinstance(fact.datum_type, SequenceType) or fact.rank != 0:
        raise FactError(f"{op.name} wants a sequence, found {fact}")
    return fact.datum_type


def item_at(op: Op, sequence: TypedFact, position: TypedFact) -> ItemFact:
    """What is known of the value of a sequence at a position. Raises FactError for a position that is not there."""
    kind = sequence_type(op, sequence)
    known = _known_items(kind, _position(op, position), 0)
    return kind.item if known is None else known[0][known[1]]


def announced(op: Op, item: ItemFact, shape: tuple[Dim, ...]) -> TypedFact:
    """The fact of a value from a container, in the sizes announced. Raises FactError where they contradict."""
    if not compatible_items(item, ItemFact(item.datum_type, shape)):
        raise FactError(f"{op.name} gives {item}, {ShapeFact(shape)} is announced")
    return TypedFact.of(item.datum_type, shape)


def _arity(op: Op, inputs: Sequence[TypedFact], least: int, most: int) -> None:
    if not least <= len(inputs) <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        raise FactError(f"{op.name} takes {wanted} inputs, {len(inputs)} were given")


def _position(op: Op, fact: TypedFact) -> TypedFact:
    integers(op, fact, "position")
    if any(not may_equal(size, 1) for size in fact.shape):
        raise FactError(f"{op.name} wants one position, found {fact}")
    return fact


def _known_items(
    kind: SequenceType, position: TypedFact | None, default: int, *, one_more: bool = False
) -> tuple[list[ItemFact], int] | None:
    """The items and the position among them, where both are known. Raises FactError outside the sequence."""
    if kind.items is None:
        return None
    if position is None:
        place = default
    elif position.constant is None or position.constant.size != 1:
        return None
    else:
        place = int(position.constant.reshape(()))
    found = _place(place, len(kind.items), one_more=one_more)
    if found is None:
        raise FactError(f"position {place} is outside a sequence of {len(kind.items)} values")
    return list(kind.items), found


def _place(position: int, length: int, *, one_more: bool = False) -> int | None:
    """A position counted from the front; ``None`` outside the sequence. ``one_more``: the end itself is a position."""
    if not -length <= position < length + one_more:
        return None
    return position + length if position < 0 else position


def wire_at(model: TypedModel, name: str, sequence: OutletId, position: OutletId) -> OutletId:
    """The value of a sequence at a position. Raises Unsupported when its rank is not known."""
    facts = model.outlet_fact(sequence), model.outlet_fact(position)
    shape = item_shape(model, name, item_at(SequenceAt(()), *facts), sequence)
    return wire_one(model, name, SequenceAt(shape), sequence, position)


def wire_concat_from(model: TypedModel, name: str, sequence: OutletId, axis: int, *, new_axis: bool) -> OutletId:
    """The tensors of a sequence joined; ``axis`` may count from the end. Raises Unsupported for an unknown rank."""
    kind = sequence_type(ConcatFromSequence(axis, new_axis, ()), model.outlet_fact(sequence))
    if axis < 0 and kind.item.shape is not None:
        axis += len(kind.item.shape) + new_axis
    joined = ConcatFromSequence(axis, new_axis, ()).joined(kind)
    shape = item_shape(model, name, joined, sequence)
    return wire_one(model, name, ConcatFromSequence(axis, new_axis, shape), sequence)


def item_shape(model: TypedModel, name: str, item: ItemFact, container: OutletId) -> tuple[Dim, ...]:
    """The sizes of a value from ``container``: those that are known, and new symbols for the others.

    Raises Unsupported when its rank is not known.
    """
    if item.shape is None:
        raise Unsupported(
            f"the rank of what {model.outlet_name(container)!r} ({model.outlet_fact(container)}) holds is not known",
            hint="give a fact with the rank to the input that it comes from, as 'sequence(_,_,f32)'",
        )
    return tuple(fresh_size(model, f"{name}_{axis}") if dim is None else dim for axis, dim in enumerate(item.shape))


def _list(sequence: Array) -> list[Any]:
    return list(sequence.item())


def _checked(position: Array | None, length: int, default: int, *, one_more: bool = False) -> int:
    given = default if position is None else int(position.reshape(()))
    place = _place(given, length, one_more=one_more)
    if place is None:
        raise RunError(f"position {given} is outside a sequence of {length} values")
    return place


@ROWS.row(REFERENCE, SequenceConstruct)
def construct(op: SequenceConstruct, *values: Array) -> Array:
    """A list"""
    return boxed([from_tensor(value) for value in values])


@ROWS.row(REFERENCE, SequenceInsert)
def insert(op: SequenceInsert, sequence: Array, value: Array, position: Array | None = None) -> Array:
    """list.insert, on a copy"""
    values = _list(sequence)
    values.insert(_checked(position, len(values), len(values), one_more=True), from_tensor(value))
    return boxed(values)


@ROWS.row(REFERENCE, SequenceErase)
def erase(op: SequenceErase, sequence: Array, position: Array | None = None) -> Array:
    """list.pop, on a copy"""
    values = _list(sequence)
    del values[_checked(position, len(values), -1)]
    return boxed(values)


@ROWS.row(REFERENCE, SequenceAt)
def at(op: SequenceAt, sequence: Array, position: Array) -> Array:
    """values[position]"""
    values = sequence.item()
    return to_tensor(values[_checked(position, len(values), 0)])


@ROWS.row(REFERENCE, SequenceLength)
def length(op: SequenceLength, sequence: Array) -> Array:
    """len(values)"""
    return np.array(len(sequence.item()), np.int64)


@ROWS.row(REFERENCE, SplitToSequence)
def split(op: SplitToSequence, x: Array, sizes: Array) -> Array:
    """numpy.split"""
    size = x.shape[op.axis]
    pieces = _chunks(size, int(sizes)) if sizes.ndim == 0 else [int(one) for one in sizes]
    if sum(pieces) != size or min(pieces, default=0) < 0:
        raise RunError(f"axis {op.axis} of size {size} cannot be cut into pieces of sizes {pieces[:20]}")
    found = np.split(x, np.cumsum(pieces)[:-1], op.axis) if pieces else []
    if not op.keep_axis:
        if any(piece != 1 for piece in pieces):
            raise RunError(f"pieces of sizes {pieces[:20]} cannot lose the axis that they are cut along")
        found = [piece.squeeze(op.axis) for piece in found]
    return boxed(found)


def _chunks(size: int, chunk: int) -> list[int]:
    if chunk < 1:
        raise RunError(f"a tensor cannot be cut into pieces of size {chunk}")
    whole, rest = divmod(size, chunk)
    return [chunk] * whole + ([rest] if rest else [])


@ROWS.row(REFERENCE, ConcatFromSequence)
def concat_from(op: ConcatFromSequence, sequence: Array) -> Array:
    """numpy.stack or numpy.concatenate"""
    values = _list(sequence)
    if not values:
        raise RunError("the sequence is empty, there is nothing to join", hint="give it at least one tensor")
    return np.stack(values, op.axis) if op.new_axis else np.concatenate(values, op.axis)


_ALL = (
    SequenceConstruct,
    SequenceInsert,
    SequenceErase,
    SequenceAt,
    SequenceLength,
    SplitToSequence,
    ConcatFromSequence,
)


@ROWS.row(COST, *_ALL)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention: nothing is computed."""
    return {}


@ROWS.row(AXES, *_ALL)
def axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: what a sequence holds has its axes inside."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
