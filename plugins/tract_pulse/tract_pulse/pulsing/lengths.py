"""What the sizes of a model are for each length of the signal, exactly."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, reduce

from tract_core.dims import Dim, comparison, substitute
from tract_core.dims.progression import (
    IrregularError,
    Progression,
    Progressions,
    alike,
    are_same,
    is_not_negative,
    larger,
    number,
    plus,
    simplest,
    smaller,
)
from tract_core.errors import DimError, TransformError
from tract_core.model.typed import TypedModel


class Lengths:
    """Sizes that depend on nothing but the length of the signal, which is ``symbol``.

    Only lengths count that the model takes: which those are its scope asserts, and its conditions want. Where nothing
    is found out about a size, as about one of other symbols, the answer is no, or ``None``. ``outer``: the sizes of the
    model that this one is the body of an operator in; it takes no other signals.
    """

    def __init__(self, whole: TypedModel, symbol: str, outer: Lengths | None = None) -> None:
        self.symbol = symbol
        self._whole, self._outer = whole, outer
        self._progressions = Progressions(symbol, whole.symbols.definitions)

    def knows(self, size: Dim) -> bool:
        """Whether it was found out how a size goes on as the signal gets longer."""
        try:
            return bool(self._progressions.of(size).period)
        except IrregularError:
            return False

    def same(self, a: Dim, b: Dim) -> bool:
        """Whether two sizes are equal for all signals."""
        try:
            return are_same(self._progressions.of(a), self._progressions.of(b), self._seen)
        except IrregularError:
            return False

    def at_most(self, a: Dim, b: Dim) -> bool:
        """Whether ``a <= b`` for all signals."""
        found = self.highest(a - b)
        return found is not None and found <= 0

    def highest(self, size: Dim) -> int | None:
        """The largest value of a size, if there is one."""
        try:
            found, among = alike(self._progressions.of(size), self._taken)
        except IrregularError:
            return None
        grows = (found.steps[among.tail != 0] > 0).any()
        return None if grows or not among.values.any() else int(found.values[among.values != 0].max())

    def number(self, size: Dim, *lengths: Dim) -> int | None:
        """What a size is for every signal for which none of ``lengths`` is 0, if that is a single number.

        As the beginning of ``x[2:]``, which is 2, but not for signals that are shorter than that.
        """
        if isinstance(size, int):
            return size
        try:
            found, among = alike(self._progressions.of(size), self._where_positive(self._seen, lengths))
        except IrregularError:
            return None
        going = among.tail != 0
        going = going if going.any() else ~going
        value = int(found.tail[going][0])
        stays = not found.steps[going].any() and (found.tail[going] == value).all()
        return value if stays and (found.values[among.values != 0] == value).all() else None

    def growth(self, size: Dim, step: int) -> int | None:
        """By how much a size grows with a signal that is ``step`` longer, once it is long enough.

        ``None`` where it does not always grow by as much.
        """
        try:
            found = self._progressions.of(size)
            grown = plus(found.later(step), found, -1)
        except IrregularError:
            return None
        return int(grown.values[-1]) if grown.period == 1 and not grown.steps.any() else None

    def simple(self, size: Dim) -> Dim | None:
        """A size of few numbers that is the same, also for lengths that do not count, if there is one."""
        try:
            return simplest(self._progressions.of(size), number(1), self.symbol)
        except IrregularError:
            return None

    @cached_property
    def _taken(self) -> Progression:
        """1 for lengths of signals that the model takes, else 0."""
        asserted = [comparison(one.left, one.op, one.right) for one in self._whole.symbols.assertions()]
        among = number(1) if self._outer is None else self._outer._taken
        return self._where_positive(among, [*asserted, *(one.holds() for one, _ in self._whole.conditions)])

    @cached_property
    def _seen(self) -> Progression:
        """Of `_taken`, lengths for which some output of the model is not empty: else it does not matter what comes."""
        if self._outer is not None:
            return smaller(self._taken, self._outer._seen)
        shapes = [self._whole.outlet_fact(outlet).shape for outlet in self._whole.outputs]
        seen = [self._where_positive(number(1), shape) for shape in shapes]
        try:
            return smaller(self._taken, reduce(larger, seen)) if seen else self._taken
        except IrregularError:
            return self._taken

    def _where_positive(self, among: Progression, sizes: Iterable[Dim]) -> Progression:
        """``among``, and 0 where one of these sizes is. Where nothing was found out of a size, it is taken to be 1."""
        for size in sizes:
            try:
                among = smaller(among, is_not_negative(self._progressions.of(size - 1)))
            except IrregularError:
                continue  # what counts although it need not makes no answer wrong
        return among


def in_full(model: TypedModel, symbol: str) -> TypedModel:
    """The model without names of sizes, as the symbol of the signal may be in what they stand for.

    Raises TransformError for a size that is too large without.
    """
    lengths, values = Lengths(model, symbol), dict[str, Dim]()
    try:
        for name, dim in model.symbols.definitions:
            simple = lengths.simple(dim)
            values[name] = substitute(dim, values) if simple is None else simple
        return model.substitute(values)
    except DimError as error:
        raise TransformError(f"pulse: {error.problem}", hint=error.hint) from None
