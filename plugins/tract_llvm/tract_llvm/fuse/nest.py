"""What is computed along some axes of tensors of one shape: element by element, and reduced to one per row.

A row is all positions that differ in the reduced axes only. The table ``nests`` says, for a type of operators that
reduce, along which axes, and what it is in terms of loads, single operators on elements, and reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Any, Self

from tract_core.dims import Dim, is_one
from tract_core.frozen import frozen
from tract_core.model.op import TypedOp
from tract_core.ops.reduce import Reducer
from tract_core.plugins.registry import Registry
from tract_core.plugins.tables import Rows, TableKey
from tract_llvm.elements.expressions import element_of
from tract_llvm.fuse.steps import Fold, Load, RowStep
from tract_llvm.language.types import ElementType

NestFn = Callable[[Any, "Nest", int, ElementType], int]
"""``(op, nest, x, result) -> y``: numbers of values, and the type of the result. Raises `Unknown`."""

AxesFn = Callable[[Any], Sequence[int]]


class Unknown(Exception):
    """Native code cannot compute an operator on these types."""


@frozen
class NestRow:
    """``axes``: along which ones an operator reduces; ``write``: adds it to a nest."""

    axes: AxesFn
    write: NestFn


def _nest_row(key: str, value: object) -> str | None:
    return None if isinstance(value, NestRow) else f"is a {type(value).__name__}, wanted a NestRow"


NESTS: TableKey[type, NestRow] = TableKey("nests", "what an operator that reduces is made of", _nest_row)


def nests(rows: Rows, axes: AxesFn, *types: type[TypedOp]) -> Callable[[NestFn], NestFn]:
    """Decorator: the function adds operators of these types to a nest; they reduce along ``axes(op)``."""

    def offer(write: NestFn) -> NestFn:
        for one in types:
            rows.add(NESTS, one, NestRow(axes, write))
        return write

    return offer


@frozen
class Number:
    """One number, ``value``, of a type of floats that NumPy has, as what is loaded."""

    value: float
    element: ElementType

    def __str__(self) -> str:
        return f"{self.value:g}"


class Nest:
    """A program for rows while it is made. ``shape``: of the tensors; ``axes``: the reduced ones, once they are known.

    ``steps``: how each value comes about, by numbers. ``tensors``: what is loaded, by whatever names it. A compiler
    that has tensors in another form derives from it.
    """

    def __init__(self, registry: Registry, shape: Sequence[Dim]) -> None:
        self.registry, self.shape = registry, tuple(shape)
        self.axes: frozenset[int] | None = None
        self.steps: list[RowStep] = []
        self.tensors: list[Hashable] = []
        self._numbers: dict[RowStep, int] = {}

    def copy(self) -> Self:
        """Another one with the same steps, to which more can be added."""
        found = copy(self)
        found.steps, found.tensors, found._numbers = list(self.steps), list(self.tensors), dict(self._numbers)
        return found

    def type_of(self, value: int) -> ElementType:
        """The type of a value."""
        return self.steps[value].result

    @property
    def row_shape(self) -> tuple[Dim, ...]:
        """The shape of what there is one of per row."""
        return tuple(1 if axis in (self.axes or ()) else size for axis, size in enumerate(self.shape))

    def shape_in(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape of a tensor, as the nest sees it."""
        return tuple(shape)

    def along(self, axes: Sequence[int]) -> bool:
        """Whether the nest reduces along these axes, or may from now on. Axes of size 1 count for nothing."""
        wanted = frozenset(axis for axis in axes if not is_one(self.shape[axis]))
        if self.axes is None:
            self.axes = wanted
        return self.axes == wanted

    def load(self, tensor: Hashable, element: ElementType) -> int:
        """The elements of a tensor that is stretched to the shape of the nest, or to one element per row."""
        if tensor not in self.tensors:
            self.tensors.append(tensor)
        return self._added(Load(self.tensors.index(tensor), element))

    def constant(self, number: float, type_: ElementType) -> int:
        """One number, of a type of floats that NumPy has."""
        return self.load(Number(number, type_), type_)

    def apply(self, op: TypedOp, *operands: int, result: ElementType | None = None) -> int:
        """An operator on elements. ``result``: the type of what comes out, that of the first operand by default."""
        kinds = [self.type_of(one) for one in operands]
        element = element_of(self.registry, op, kinds, result)
        if element is None:
            raise Unknown
        return self._added(element.applied(op, operands, result or kinds[0]))

    def fold(self, reducer: Reducer, operand: int, result: ElementType | None = None) -> int:
        """All values of a row, reduced to one."""
        return self._added(Fold(reducer, operand, result or self.type_of(operand)))

    def _added(self, step: RowStep) -> int:
        number = self._numbers.setdefault(step, len(self.steps))
        if number == len(self.steps):
            self.steps.append(step)
        return number
