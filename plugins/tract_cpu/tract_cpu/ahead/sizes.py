"""Symbolic sizes as native code: what `tract_core.dims.evaluate` computes, of integers of 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from tract_llvm.language.function import Function
from tract_llvm.language.types import BOOL, F64, INDEX
from tract_llvm.language.values import Value
from tract_llvm.llvm import ir

from tract_core.dims import Dim, TDim, symbols_of
from tract_core.dims.atoms import Atom, Factor, Kind, Monomial
from tract_core.dims.definitions import Definitions
from tract_cpu.program.eventual import ENDLESS, Eventual

LARGEST_SYMBOL: Final = 1 << 40
"""No axis of a tensor is longer."""

_LARGEST: Final = 1 << 62
"""No size is larger, so that what is computed of two of them fits in 64 bits."""


class SizeWriter:
    """The code of sizes in a function, while it is written: each size once.

    ``symbols``: the values of symbols, whose names it gives. ``definitions``: what other names stand for.
    """

    def __init__(self, f: Function, symbols: Mapping[str, Value], definitions: Definitions) -> None:
        self._f, self._definitions = f, definitions
        self._symbols = dict(symbols)
        self._found: dict[Dim | Atom, Value] = {}
        self._fit = Value(f, ir.Constant(ir.IntType(1), 1), BOOL)
        self._largest = dict.fromkeys(symbols, LARGEST_SYMBOL)
        for value in symbols.values():
            self.require(value >= 0)
            self.require(value <= LARGEST_SYMBOL)

    @property
    def fit(self) -> Value:
        """Whether all that was written can be: nothing contradicts itself, or is too large for 64 bits."""
        return self._fit

    def require(self, condition: Value) -> None:
        """Let nothing fit where a condition does not hold."""
        self._fit = self._fit & condition

    def define(self, dims: Iterable[Dim]) -> None:
        """Write what names stand for that these sizes mention, directly or not."""
        for name, dim in self._definitions.mentioned(frozenset[str]().union(*map(symbols_of, dims))):
            if name not in self._symbols and symbols_of(dim) <= self._symbols.keys():
                self._symbols[name] = self.of(dim)
                self._largest[name] = self._most(dim)

    def of(self, dim: Dim | Eventual) -> Value:
        """The value of a size, whose names are defined by now."""
        if isinstance(dim, Eventual):
            known = symbols_of(dim.size) <= self._symbols.keys()
            dim = dim.size if known else ENDLESS
        if isinstance(dim, int):
            return self._f.index(dim)
        if dim not in self._found:
            self._found[dim] = self._sum(dim)
        return self._found[dim]

    def _sum(self, dim: TDim) -> Value:
        terms = [(self._product(product), many) for product, many in dim.terms.items()]
        if self._most(dim) > _LARGEST:
            self._refuse_large(dim)
        total = reduce(Value.__add__, [found if many == 1 else found * many for found, many in terms])
        return total + dim.constant if dim.constant else total

    def _refuse_large(self, dim: TDim) -> None:
        """Let nothing fit where the sum is beyond 64 bits.

        What is in between may be beyond: integers wrap around, and back. Floats round, but are far from the end.
        """
        total = self._f.constant(abs(dim.constant), F64)
        for product, many in dim.terms.items():
            sizes = [self._f.intrinsic("fabs", self._f.convert(self._factor(one), F64)) for one in product]
            total = total + reduce(Value.__mul__, sizes) * abs(many)
        self.require(total < float(_LARGEST))

    def _product(self, product: Monomial) -> Value:
        return reduce(Value.__mul__, map(self._factor, product))

    def _factor(self, factor: Factor) -> Value:
        if isinstance(factor, str):
            return self._symbols[factor]
        if factor not in self._found:
            self._found[factor] = _WRITERS[factor.kind](self, factor.args)
        return self._found[factor]

    def _most(self, dim: Dim) -> int:
        """How far from 0 the size can be."""
        if isinstance(dim, int):
            return abs(dim)
        total = abs(dim.constant)
        for product, many in dim.terms.items():
            most = abs(many)
            for factor in product:
                most *= self._most_of_factor(factor)
            total += most
        return total

    def _most_of_factor(self, factor: Factor) -> int:
        if isinstance(factor, str):
            return min(self._largest[factor], _LARGEST)
        if factor.kind in {Kind.GE, Kind.EQ}:
            return 1
        return min(max(map(self._most, factor.args)), _LARGEST)

    def divided(self, args: Sequence[Dim]) -> Value:
        """Rounded down."""
        dividend, divisor = args
        found, by = self.of(dividend), self.of(divisor)
        return self._f.select(found % by < 0, found // by - 1, found // by)

    def extreme(self, args: Sequence[Dim], sign: str) -> Value:
        """The smallest or the largest one."""
        return reduce(lambda a, b: self._f.select(a.compared(sign, b), a, b), map(self.of, args))

    def broadcast(self, args: Sequence[Dim]) -> Value:
        """The one of which all others are 1, or equal to it."""
        return reduce(self._broadcast, map(self.of, args))

    def _broadcast(self, a: Value, b: Value) -> Value:
        of_a = b.equals(a) | b.equals(1)
        self.require(of_a | a.equals(1))
        return self._f.select(of_a, a, b)

    def holds(self, args: Sequence[Dim], sign: str) -> Value:
        """1 where a comparison with 0 holds, else 0."""
        return self._f.select(self.of(args[0]).compared(sign, self._f.index(0)), self._f.index(1), 0)


_WRITERS: Final[Mapping[Kind, Callable[[SizeWriter, Sequence[Any]], Value]]] = {
    Kind.DIV: SizeWriter.divided,
    Kind.MIN: lambda sizes, args: sizes.extreme(args, "<="),
    Kind.MAX: lambda sizes, args: sizes.extreme(args, ">="),
    Kind.BROADCAST: SizeWriter.broadcast,
    Kind.GE: lambda sizes, args: sizes.holds(args, ">="),
    Kind.EQ: lambda sizes, args: sizes.holds(args, "=="),
}


def numbers_passed(f: Function, names: Sequence[str], first: int) -> dict[str, Value]:
    """The values of symbols that a function is given, as arguments from the place ``first`` on."""
    return {name: Value(f, f.function.args[first + place], INDEX) for place, name in enumerate(names)}
