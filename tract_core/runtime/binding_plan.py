"""How the sizes of a model's inputs give its symbols their values: found out once, then read off the shapes.

`BindingPlan` is data. It says which axis of which input gives which symbol, by which inverse, and what remains to be
checked. `tract_core.runtime.binding` applies it, and explains in words what does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tract_core.dims import Dim, evaluate, is_symbolic, symbols_of
from tract_core.errors import DimError
from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.dims.definitions import Definitions
    from tract_core.model.fact import TypedFact
    from tract_core.model.typed import TypedModel


@frozen
class Take:
    """``symbol`` is ``(size - constant) / factor``, for the size of axis ``axis`` of input ``slot``."""

    slot: int
    axis: int
    symbol: str
    factor: int = 1
    constant: int = 0


@frozen
class Check:
    """The size of axis ``axis`` of input ``slot`` is ``dim``: a number, or an expression over symbols."""

    slot: int
    axis: int
    dim: Dim


@frozen
class BindingPlan:
    """What to read off the shapes of the inputs, and what to check.

    ``ranks``: how many axes each input has. ``takes``: the symbols that one size each gives. ``fixed``: the sizes that
    are numbers. ``checks``: the sizes that the symbols taken must give. ``rest``: the sizes whose symbols come out of
    several sizes together, or out of an expression that has no plain inverse. ``definitions``: the symbols that
    are names of longer sizes, if there are any.
    """

    ranks: tuple[int, ...]
    takes: tuple[Take, ...]
    fixed: tuple[Check, ...]
    checks: tuple[Check, ...]
    rest: tuple[Check, ...]
    definitions: Definitions | None = None

    @staticmethod
    def of(facts: Sequence[TypedFact], definitions: Definitions | None = None) -> BindingPlan:
        """The plan for inputs of these facts. ``definitions``: symbols whose values follow from those of others."""
        from tract_core.dims import linear_in_one_symbol

        takes: dict[str, Take] = {}
        others: list[Check] = []
        for slot, fact in enumerate(facts):
            for axis, dim in enumerate(fact.shape):
                inverse = linear_in_one_symbol(dim)
                if inverse is not None and inverse[0] not in takes:
                    takes[inverse[0]] = Take(slot, axis, *inverse)
                else:
                    others.append(Check(slot, axis, dim))
        symbolic = [one for one in others if is_symbolic(one.dim)]
        return BindingPlan(
            tuple(fact.rank for fact in facts),
            tuple(takes.values()),
            tuple(one for one in others if not is_symbolic(one.dim)),
            tuple(one for one in symbolic if symbols_of(one.dim) <= takes.keys()),
            tuple(one for one in symbolic if not symbols_of(one.dim) <= takes.keys()),
            definitions,
        )

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbols that get a value in every run: those that one size gives, and what follows."""
        found = frozenset(take.symbol for take in self.takes)
        return found if self.definitions is None else self.definitions.with_known(found)

    def values(self, shapes: Sequence[Sequence[int]], known: Mapping[str, int] | None = None) -> dict[str, int] | None:
        """The value of each symbol for inputs of these shapes, beside what is ``known``; ``None`` when they do not fit.

        ``shapes``: one per input, in elements, outermost axis first. A symbol that the sizes leave open gets no value.
        """
        if tuple(map(len, shapes)) != self.ranks:
            return None
        values = dict(known) if known else {}
        for take in self.takes:
            value = shapes[take.slot][take.axis]
            if take.factor != 1 or take.constant:
                value, left_over = divmod(value - take.constant, take.factor)
                if left_over or value < 0:
                    return None
            if values.setdefault(take.symbol, value) != value:
                return None
        for fixed in self.fixed:
            if shapes[fixed.slot][fixed.axis] != fixed.dim:
                return None
        return self._further(shapes, values) if self.checks or self.rest else values

    def _further(self, shapes: Sequence[Sequence[int]], values: dict[str, int]) -> dict[str, int] | None:
        try:
            for one in self.checks:
                if evaluate(one.dim, values) != shapes[one.slot][one.axis]:
                    return None
            if not self.rest:
                return values
            from tract_core.dims import bind

            sizes = [shapes[one.slot][one.axis] for one in self.rest]
            return bind([one.dim for one in self.rest], sizes, values)
        except DimError:
            return None


def given_in_every_turn(model: TypedModel) -> frozenset[str]:
    """The symbols that have values before the first node of any turn runs: by one size of an input, or by the state."""
    definitions = model.symbols.definitions
    found = BindingPlan.of([model.outlet_fact(outlet) for outlet in model.inputs], definitions).symbols
    return definitions.with_known(found | model.told_symbols())
