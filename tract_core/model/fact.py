"""What is known of a tensor before it exists: `TypedFact`, complete, and `InferenceFact`, partial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from tract_core.data import Constant, DatumType, DType, SymbolicArray, Value
from tract_core.data.containers import compatible_types, meet_types, substitute_in_type, symbols_in_type
from tract_core.dims import Dim, TDim, is_symbolic, product, same_dim, substitute
from tract_core.errors import FactError, LimitExceeded
from tract_core.frozen import frozen
from tract_core.limits import MAX_SIZE, limits_now

_NO_SYMBOLS: Final = frozenset[str]()


@runtime_checkable
class Fact(Protocol):
    """Type information about a tensor, in any state of determination."""

    def __str__(self) -> str: ...


class ShapeFact(tuple[Dim, ...]):
    """The sizes of a tensor, one per axis, outermost first, in elements. A size is an ``int`` or a symbolic `TDim`."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self)

    @property
    def is_concrete(self) -> bool:
        """Whether every size is a number."""
        return TDim not in map(type, self)

    @property
    def concrete(self) -> tuple[int, ...]:
        """The sizes as integers. Raises FactError when one is symbolic."""
        if not self.is_concrete:
            raise FactError(f"shape {self} has symbolic sizes", hint="give the symbols values with set_symbols")
        return tuple(int(dim) for dim in self)

    @property
    def volume(self) -> Dim:
        """Number of elements."""
        return product(self)

    def symbols(self) -> frozenset[str]:
        """Names of all symbols in it."""
        if TDim not in map(type, self):
            return _NO_SYMBOLS
        return _NO_SYMBOLS.union(*[dim.symbols for dim in self if type(dim) is TDim])

    def same(self, other: Iterable[Dim]) -> bool | None:
        """Whether two shapes agree; ``None`` when that depends on the value of a symbol."""
        if self is other:
            return True
        other = tuple(other)
        if len(self) != len(other):
            return False
        answers = [same_dim(a, b) for a, b in zip(self, other, strict=True)]
        return False if False in answers else None if None in answers else True

    def __str__(self) -> str:
        return ",".join(map(str, self))

    def __repr__(self) -> str:
        return f"ShapeFact({self})"


def check_sizes(shape: ShapeFact) -> None:
    """Raises FactError for a negative size, LimitExceeded for one of more than 64 bits, or for too many axes."""
    if len(shape) > limits_now().max_rank:
        raise LimitExceeded(f"the result would have {len(shape)} axes, {limits_now().max_rank} are allowed")
    for dim in shape:
        if isinstance(dim, int) and not 0 <= dim <= MAX_SIZE:
            if dim < 0:
                raise FactError(f"the result would have the shape [{shape}], in which a size is negative")
            raise LimitExceeded(f"the result would have the shape [{shape}], in which a size has more than 64 bits")


@frozen
class TypedFact:
    """Element type and shape of a tensor, and its value where that is known.

    ``datum_type``: the type of its elements.
    """

    datum_type: DType
    shape: ShapeFact
    value: Value | None = None

    @staticmethod
    def of(datum_type: DType, shape: Iterable[Dim]) -> TypedFact:
        """The fact of a tensor of unknown value."""
        return TypedFact(datum_type, ShapeFact(shape))

    @staticmethod
    def of_value(value: Value) -> TypedFact:
        """The fact of a known value."""
        kind = DatumType.I64 if isinstance(value, SymbolicArray) else value.datum_type
        return TypedFact(kind, ShapeFact(value.array.shape), value)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def constant(self) -> np.ndarray[Any, Any] | None:
        """The value as a read-only array, where it is known and free of symbols."""
        return self.value.array if isinstance(self.value, Constant) else None

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The elements of a known integer tensor as sizes, in row-major order; ``None`` when the value is unknown."""
        if isinstance(self.value, SymbolicArray):
            return self.value.dims
        if isinstance(self.value, Constant) and self.datum_type.is_integer():
            return tuple(int(element) for element in self.value.array.reshape(-1).tolist())
        return None

    def symbols(self) -> frozenset[str]:
        """Names of all symbols in the type, the shape and the value."""
        found = self.shape.symbols()
        if self.datum_type.__class__ is not DatumType:
            found |= symbols_in_type(self.datum_type)
        return found | self.value.symbols() if isinstance(self.value, SymbolicArray) else found

    def without_value(self) -> TypedFact:
        """The same fact, its value forgotten."""
        return self if self.value is None else replace(self, value=None)

    def with_shape(self, shape: Iterable[Dim]) -> TypedFact:
        """The same element type in another shape, the value dropped."""
        return TypedFact(self.datum_type, ShapeFact(shape))

    def with_type(self, datum_type: DType) -> TypedFact:
        """The same shape with another element type, the value dropped."""
        return TypedFact(datum_type, self.shape)

    def substitute(self, values: Mapping[str, Dim]) -> TypedFact:
        """With symbols replaced in type, shape and value."""
        if self.symbols().isdisjoint(values):
            return self
        shape = ShapeFact(substitute(dim, values) for dim in self.shape)
        value = self.value.substitute(values) if isinstance(self.value, SymbolicArray) else self.value
        if value is not None:
            value = in_type(value, self.datum_type)
        return replace(self, datum_type=substitute_in_type(self.datum_type, values), shape=shape, value=value)

    def compatible_with(self, other: TypedFact) -> bool:
        """Whether a tensor of one may stand where the other is expected: same type, no size known to differ."""
        return compatible_types(self.datum_type, other.datum_type) and self.shape.same(other.shape) is not False

    def __str__(self) -> str:
        return ",".join([*map(str, self.shape), self.datum_type.short])


def in_type(value: Value, kind: DType) -> Value:
    """A known value of a tensor of type ``kind``: sizes that turned out to be numbers (i64) get that type."""
    if isinstance(value, SymbolicArray) or value.datum_type == kind.storage:
        return value
    return Constant(value.array.astype(kind.numpy))


@frozen
class InferenceFact:
    """What a file or a user said of a tensor. ``None`` stands for what was not said.

    ``shape`` is ``None`` when not even the rank is known; an entry is ``None`` when that size is not.
    ``datum_type``: the type of its elements.
    """

    datum_type: DType | None = None
    shape: tuple[Dim | None, ...] | None = None
    value: Value | None = None

    @staticmethod
    def from_typed(fact: TypedFact) -> InferenceFact:
        """The same knowledge, as a partial fact."""
        return InferenceFact(fact.datum_type, tuple(fact.shape), fact.value)

    def to_typed(self) -> TypedFact:
        """The same knowledge, complete. Raises FactError when a type, the rank or a size is missing."""
        if self.datum_type is None or self.shape is None or None in self.shape:
            raise FactError(
                f"Can not make a TypedFact out of {self}: the element type and every size are needed",
                hint="write it as in '1,3,S,f32'; unknown sizes can be symbols",
            )
        return TypedFact(self.datum_type, ShapeFact(dim for dim in self.shape if dim is not None), self.value)

    def unify(self, other: InferenceFact) -> InferenceFact:
        """Both pieces of knowledge together. Raises FactError naming both sides when they contradict."""
        return InferenceFact(_unify_types(self, other), _unify_shapes(self, other), self.value or other.value)

    def __str__(self) -> str:
        kind = self.datum_type.short if self.datum_type is not None else "?"
        if self.shape is None:
            return f"..,{kind}"
        return ",".join([*("?" if dim is None else str(dim) for dim in self.shape), kind])


def _unify_types(a: InferenceFact, b: InferenceFact) -> DType | None:
    if a.datum_type is None or b.datum_type is None:
        return b.datum_type if a.datum_type is None else a.datum_type
    if not compatible_types(a.datum_type, b.datum_type):
        raise FactError(f"element types differ: {a} against {b}")
    return meet_types(a.datum_type, b.datum_type)


def _unify_shapes(a: InferenceFact, b: InferenceFact) -> tuple[Dim | None, ...] | None:
    if a.shape is None or b.shape is None:
        return a.shape if b.shape is None else b.shape
    if len(a.shape) != len(b.shape):
        raise FactError(f"ranks differ: {a} against {b}")
    dims: list[Dim | None] = []
    for left, right in zip(a.shape, b.shape, strict=True):
        if left is not None and right is not None and same_dim(left, right) is False:
            raise FactError(f"sizes differ: {left} in {a} against {right} in {b}")
        dims.append(_more_precise(left, right))
    return tuple(dims)


def _more_precise(a: Dim | None, b: Dim | None) -> Dim | None:
    """A number says more than a symbol, and a symbol more than nothing."""
    if a is None or (b is not None and is_symbolic(a) and not is_symbolic(b)):
        return b
    return a
