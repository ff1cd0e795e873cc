"""Refuse a run before it begins, or in the middle, when a tensor that is still to come would take too many bytes.

Sizes that are numbers are looked at once per plan, symbolic ones whenever the symbols get other values, each shape once
however many tensors have it. An operator that finds the sizes of its own outputs checks them itself before it makes
these, with `tract_core.limits.check_tensor`; a runtime that knows them earlier asks here (`ComingSizes.check_after`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tract_core.dims import evaluate
from tract_core.errors import DimError, RunError
from tract_core.frozen import frozen
from tract_core.limits import TOO_LARGE_HINT, too_large

if TYPE_CHECKING:
    from tract_core.dims import Dim
    from tract_core.model.fact import ShapeFact, TypedFact
    from tract_core.runtime.host import HostNode


@frozen
class _Coming:
    """A shape that a run will make. ``place``: the first node that makes it; ``itemsize``: bytes of an element."""

    place: str
    shape: tuple[Dim, ...]
    itemsize: int
    symbols: frozenset[str]

    def check(self, values: Mapping[str, int], allowed: int) -> None:
        """Raises RunError when it would take more bytes than allowed, or when the sizes contradict each other."""
        try:
            sizes = [evaluate(dim, values) for dim in self.shape]
        except DimError as error:
            raise RunError(error.problem, where=self.place, hint=error.hint) from None
        problem = too_large(sizes, self.itemsize, allowed)
        if problem is not None:
            raise RunError(problem, where=self.place, hint=TOO_LARGE_HINT)


class ComingSizes:
    """The shapes that the steps of a plan make. ``allowed``: bytes that one tensor may take."""

    def __init__(self, steps: Sequence[HostNode], allowed: int) -> None:
        self.allowed = allowed
        self._fixed: list[_Coming] = []
        self._symbolic: list[_Coming] = []
        self._after: dict[int, list[_Coming]] = {}
        binder = {symbol: step.node for step in steps for symbol in step.binds}
        place = {step.node: index for index, step in enumerate(steps)}
        for coming, own in _distinct(steps):
            if not coming.symbols:
                self._fixed.append(coming)
                continue
            bound = [binder[symbol] for symbol in coming.symbols if symbol in binder]
            if not bound:
                self._symbolic.append(coming)
            elif place[last := max(bound, key=place.__getitem__)] <= place[own]:
                self._after.setdefault(last, []).append(coming)

    def check_all(self, values: Mapping[str, int]) -> None:
        """At the beginning of a run, with the symbols known by then. Raises RunError, naming the node."""
        for coming in self._fixed:
            coming.check(values, self.allowed)
        _check(self._symbolic, values, self.allowed)

    def check_after(self, node: int, values: Mapping[str, int]) -> None:
        """When it is known which values a node gives symbols. Raises RunError, as `check_all` does."""
        _check(self._after.get(node, ()), values, self.allowed)


def _check(shapes: Iterable[_Coming], values: Mapping[str, int], allowed: int) -> None:
    for coming in shapes:
        if coming.symbols <= values.keys():
            coming.check(values, allowed)


def _distinct(steps: Iterable[HostNode]) -> Iterable[tuple[_Coming, int]]:
    """Every shape once, with the node that makes it first; of those that are numbers, only large ones."""
    seen: set[tuple[ShapeFact, int]] = set()
    for step in steps:
        for fact in step.facts:
            key = (fact.shape, fact.datum_type.itemsize)
            if key in seen or (fact.shape.is_concrete and _is_small(fact)):
                continue
            seen.add(key)
            symbols = step.definitions.roots(fact.shape.symbols())
            yield _Coming(step.place, tuple(fact.shape), fact.datum_type.itemsize, symbols), step.node


_SMALL = 1 << 20
"""Bytes that no limit forbids."""


def _is_small(fact: TypedFact) -> bool:
    total = fact.datum_type.itemsize
    for dim in fact.shape:
        total *= int(dim) or 1  # other sizes count where there are no elements, too
    return total <= _SMALL
