"""What a compiled model knows of sizes that are open: the values of symbols are arguments of its functions.

What `Section.bind` computes in Python (`tract_cpu.binding`), the object computes itself (`tract_cpu.ahead.open_glue`),
in words of the memory of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.dims import Dim, comparison, symbols_of
from tract_core.dims.definitions import Definitions
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_cpu.binding import Section

WORD: Final = 8
"""Bytes of an address, or of a number, in the tables."""


@frozen
class OpenSizes:
    """The sizes of a program, and the words that hold what they are in a run.

    ``symbols``: the names of those whose values are given, in order; ``definitions``: what other names stand for.
    ``shapes``: the sizes of inputs, one after the other, then of outputs; none is below 0. ``conditions``: sizes that
    have to be 1. ``section``: the arguments of kernels. ``constants``: from which byte on the constant lies that an
    argument is an address in, in the order of `Section.in_constants`.
    """

    symbols: tuple[str, ...]
    definitions: Definitions
    shapes: tuple[Dim, ...]
    conditions: tuple[Dim, ...]
    section: Section
    constants: tuple[int, ...]

    # Places of words, among those of sizes.

    @property
    def held(self) -> int:
        """Whether arguments are filled; then the values of symbols for which they are."""
        return 0

    @property
    def values(self) -> int:
        """The value of each size of the section."""
        return self.held + 1 + len(self.symbols)

    @property
    def tasks(self) -> int:
        """How many tasks each step has."""
        return self.values + len(self.section.sizes)

    @property
    def parts(self) -> int:
        """In how many parts each step is done."""
        return self.tasks + self.section.last

    @property
    def slots(self) -> int:
        """Where each slot of the arena begins."""
        return self.parts + self.section.last

    @property
    def each(self) -> int:
        """How many bytes of scratch a thread has."""
        return self.slots + len(self.section.slots)

    @property
    def words(self) -> int:
        """How many there are."""
        return self.each + 1


def open_sizes(model: TypedModel, section: Section, places: Mapping[int, int]) -> OpenSizes:
    """Those of a model. ``places``: where constants lie, by their numbers, in bytes."""
    definitions = model.symbols.definitions
    given, found = (
        tuple(size for outlet in outlets for size in model.outlet_fact(outlet).shape)
        for outlets in (model.inputs, model.outputs)
    )
    order = [name for size in given for name in sorted(definitions.roots(symbols_of(size)))]
    symbols = tuple(dict.fromkeys(order))
    holds = [comparison(one.left, one.op, one.right) for one in model.symbols.assertions()]
    holds += [one.holds() for one, _ in model.conditions.bound_by(model.given_symbols(), model.symbols)]
    constants = tuple(places[int(number)] for number in section.in_constants[1])
    return OpenSizes(symbols, definitions, (*given, *found), tuple(holds), section, constants)
