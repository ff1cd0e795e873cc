"""Sizes that are known when the model runs: computed from the shapes of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from tract_core.dims import Dim, TDim, linear_in_one_symbol, not_negative, symbol, symbol_name
from tract_core.dims.atoms import Atom, Factor, Kind
from tract_core.errors import Unwritable
from tract_core.model.fact import TypedFact


class Nodes(Protocol):
    """Where nodes are added."""

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result, whose name is returned."""
        ...

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """A tensor that is there."""
        ...

    def length(self, symbol: str) -> str | None:
        """An input for a size that no tensor tells, where there may be one."""
        ...


class Sizes:
    """The sizes of one graph. Each is computed once; the results are i64 of shape [1]."""

    def __init__(self, nodes: Nodes, around: Sizes | None = None) -> None:
        """``around``: the sizes of the graph that has this one as a body."""
        self._nodes, self._around = nodes, around
        self._symbols: dict[str, Callable[[], str]] = {}
        self._known: dict[Dim, str] = {}

    def note(self, name: str, fact: TypedFact) -> None:
        """A tensor is there, whose shape may tell symbols."""
        for axis, size in enumerate(fact.shape):
            if isinstance(size, TDim):
                self._note(name, axis, size)

    def _note(self, name: str, axis: int, size: TDim) -> None:
        plain = symbol_name(size)
        if plain is not None:
            self._symbols.setdefault(plain, lambda: self._size(name, axis))
            return
        found = linear_in_one_symbol(size)
        if found is not None:
            symbol, slope, offset = found
            self._symbols.setdefault(symbol, lambda: self._solved(self._size(name, axis), slope, offset))

    def _size(self, name: str, axis: int) -> str:
        return self._nodes.add("Shape", name, start=axis, end=axis + 1)

    def _solved(self, size: str, slope: int, offset: int) -> str:
        return self._nodes.add("Div", self._nodes.add("Sub", size, self.of(offset)), self.of(slope))

    def vector(self, dims: Sequence[Dim]) -> str:
        """Sizes as one tensor of i64, of shape [count]. Raises Unwritable for a symbol that no tensor tells."""
        numbers = [dim for dim in dims if isinstance(dim, int)]
        if len(numbers) == len(dims):
            return self._nodes.constant(np.array(numbers, np.int64))
        parts = list(map(self.of, dims))
        return parts[0] if len(parts) == 1 else self._nodes.add("Concat", *parts, axis=0)

    def of(self, dim: Dim) -> str:
        """One size, as i64 of shape [1]. Raises Unwritable."""
        if not isinstance(dim, TDim):
            return self._nodes.constant(np.array([dim], np.int64))
        if dim not in self._known:
            self._known[dim] = self._symbol(name) if (name := symbol_name(dim)) else self._computed(dim)
        return self._known[dim]

    def told(self, name: str) -> Dim | None:
        """The size that a tensor is, where it is one."""
        return next((dim for dim, known in self._known.items() if known == name), None)

    def _computed(self, dim: TDim) -> str:
        parts = [self._product(factors, times) for factors, times in dim.terms.items()]
        total = parts[0]
        for part in parts[1:]:
            total = self._nodes.add("Add", total, part)
        return self._nodes.add("Add", total, self.of(dim.constant)) if dim.constant else total

    def _product(self, factors: Sequence[Factor], times: int) -> str:
        names = [self._symbol(one) if isinstance(one, str) else self._atom(one) for one in factors]
        total = names[0]
        for name in names[1:]:
            total = self._nodes.add("Mul", total, name)
        return total if times == 1 else self._nodes.add("Mul", total, self.of(times))

    def _symbol(self, name: str) -> str:
        if name not in self._symbols and self._around is not None:
            return self._around._symbol(name)
        if name not in self._symbols and (given := self._nodes.length(name)) is not None:
            self._symbols[name] = lambda: given
        if name not in self._symbols:
            raise Unwritable(f"no tensor in front tells the size {name}", hint="give it a number: --set")
        size = symbol(name)
        if size not in self._known:
            self._known[size] = self._symbols[name]()
        return self._known[size]

    def _atom(self, atom: Atom) -> str:
        return _ATOMS[atom.kind](self, atom)

    def divided(self, atom: Atom) -> str:
        """Towards minus infinity, where ONNX divides towards zero."""
        above, below = atom.args
        a, b = self.of(above), self.of(below)
        if not_negative(above):
            return self._nodes.add("Div", a, b)
        return self._nodes.add("Div", self._nodes.add("Sub", a, self._nodes.add("Mod", a, b)), b)

    def extreme(self, atom: Atom) -> str:
        """The smallest, or the largest."""
        return self._nodes.add("Min" if atom.kind is Kind.MIN else "Max", *map(self.of, atom.args))

    def common(self, atom: Atom) -> str:
        """The one that is not 1."""
        total = self.of(atom.args[0])
        for arg in atom.args[1:]:
            is_one = self._nodes.add("Equal", total, self.of(1))
            total = self._nodes.add("Where", is_one, self.of(arg), total)
        return total

    def compared(self, atom: Atom) -> str:
        """1 or 0."""
        op_type = "Equal" if atom.kind is Kind.EQ else "GreaterOrEqual"
        return self._nodes.add("Cast", self._nodes.add(op_type, self.of(atom.args[0]), self.of(0)), to=7)


_ATOMS: Final[Mapping[Kind, Callable[[Sizes, Atom], str]]] = {
    Kind.DIV: Sizes.divided,
    Kind.MIN: Sizes.extreme,
    Kind.MAX: Sizes.extreme,
    Kind.BROADCAST: Sizes.common,
    Kind.GE: Sizes.compared,
    Kind.EQ: Sizes.compared,
}
