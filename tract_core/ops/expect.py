"""Checks that many operators make on the facts of their inputs, with messages in one form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.dims import Dim, broadcast, is_symbolic
from tract_core.errors import FactError
from tract_core.model.conditions import may_broadcast, may_equal
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.op import Op
from tract_core.model.op import arity as arity  # noqa: PLC0414 (plugins import it from here)


def same_rank(op: Op, inputs: Sequence[TypedFact]) -> int:
    """The rank that all inputs have. Raises FactError when they differ."""
    ranks = {fact.rank for fact in inputs}
    if len(ranks) != 1:
        raise FactError(f"{op.name} wants inputs of one rank, found {', '.join(str(f.rank) for f in inputs)}")
    return ranks.pop()


def same_type(op: Op, inputs: Sequence[TypedFact]) -> None:
    """Raises FactError unless all inputs have one element type."""
    if any(fact.datum_type != inputs[0].datum_type for fact in inputs[1:]):
        found = ", ".join(fact.datum_type.short for fact in inputs)
        raise FactError(f"{op.name} wants inputs of one element type, found {found}")


def axis_in(op: Op, axis: int, rank: int) -> int:
    """``axis``, when it is between 0 and ``rank - 1``. Raises FactError otherwise."""
    if not 0 <= axis < rank:
        raise FactError(f"{op.name}: axis {axis} is outside a tensor of rank {rank}")
    return axis


def broadcast_shapes(op: Op, shapes: Sequence[ShapeFact]) -> ShapeFact:
    """The common shape of shapes of one rank, where an axis of size 1 stretches. Raises FactError."""
    dims: list[Dim] = []
    for axis, sizes in enumerate(zip(*shapes, strict=True)):
        common = sizes[0]
        for size in sizes[1:]:
            if size is common:
                continue
            if not may_broadcast(common, size):
                found = " and ".join(f"[{shape}]" for shape in shapes)
                raise FactError(f"{op.name}: sizes {common} and {size} differ on axis {axis} of {found}")
            common = broadcast(common, size)
        dims.append(common)
    return ShapeFact(dims)


def float_type(op: Op, fact: TypedFact) -> TypedFact:
    """``fact`` without its value, when it is of a floating-point type. Raises FactError otherwise."""
    if not fact.datum_type.is_float():
        raise FactError(f"{op.name} wants floating-point numbers, found {fact}")
    return fact.without_value()


POSITION: Final = 8
"""Bytes of the numbers in which NumPy counts positions."""


def wide(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The type in which a float type is summed: f32 for anything narrower, else the type itself."""
    kind = DatumType.from_numpy(dtype)
    return np.dtype(np.float32) if kind.is_float() and dtype.itemsize < 4 else dtype


def integers(op: Op, fact: TypedFact, role: str) -> TypedFact:
    """``fact``, when it is of an integer type. Raises FactError, naming what the input is for, otherwise."""
    if not fact.datum_type.is_integer():
        raise FactError(f"{op.name} wants integers as {role}, found {fact}")
    return fact


def scalar(op: Op, fact: TypedFact, role: str) -> TypedFact:
    """``fact``, when it has no axes. Raises FactError, naming what the input is for, otherwise."""
    if fact.rank != 0:
        raise FactError(f"{op.name} wants a tensor of rank 0 as {role}, found {fact}")
    return fact


def vector_of(op: Op, fact: TypedFact, length: int, role: str) -> TypedFact:
    """``fact``, when it is a list of ``length`` integers. Raises FactError, naming what they are for, otherwise."""
    integers(op, fact, role)
    if fact.rank != 1 or not may_equal(fact.shape[0], length):
        raise FactError(f"{op.name} wants {length} integers as {role}, found {fact}")
    return fact


def element(value: float, kind: DType) -> np.ndarray[Any, Any]:
    """A number as an array of rank 0. Raises FactError where the type cannot hold it."""
    try:
        if kind.is_integer() and int(value) != value:
            raise ValueError
        return np.array(value, kind.numpy)
    except (OverflowError, ValueError):
        raise FactError(f"{value} is no {kind.short}") from None


def common_size(op: Op, axis: int, inputs: Sequence[TypedFact]) -> Dim:
    """The size that all inputs have on one axis: a number, if one says so. Raises FactError where they differ."""
    sizes = [fact.shape[axis] for fact in inputs]
    found = next((size for size in sizes if not is_symbolic(size)), sizes[0])
    if any(not may_equal(found, size) for size in sizes):
        raise FactError(f"{op.name}: sizes on axis {axis} differ: {' and '.join(map(str, inputs))}")
    return found
