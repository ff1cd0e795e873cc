"""Axes mappings: which axis of which input of an operator becomes which axis of which output.

A mapping is a list of axes, each with a one-character name and its positions. The text form is that of einsum,
``"mk,kn->mn"``, which is also how `EinSum` states its meaning. An axis that appears once only is *disconnected*:
nothing can be said about where it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from tract_core.errors import FactError
from tract_core.frozen import frozen

LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letters() -> Iterable[str]:
    """Names for axes: the letters, then further characters, without end."""
    yield from LETTERS
    code = 0x100
    while True:
        if (name := chr(code)).isalpha():
            yield name
        code += 1


@frozen
class Axis:
    """One axis. ``inputs[i]`` and ``outputs[o]``: its positions in input ``i`` and output ``o``, mostly one or none.

    ``name``: the letter that stands for it in the text of a mapping.
    """

    name: str
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]


@frozen
class AxesMapping:
    """For each input and output, the names of its axes in order: ``inputs=("mk", "kn")``, ``outputs=("mn",)``."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @staticmethod
    def parse(expression: str) -> AxesMapping:
        """From the einsum form ``"mk,kn->mn"``. Raises FactError for anything else."""
        return _parse(expression)

    @staticmethod
    def disconnected(input_ranks: Sequence[int], output_ranks: Sequence[int]) -> AxesMapping:
        """The mapping that says nothing: every axis has a name of its own."""
        fresh = iter(letters())
        names = ["".join(next(fresh) for _ in range(rank)) for rank in [*input_ranks, *output_ranks]]
        return AxesMapping(tuple(names[: len(input_ranks)]), tuple(names[len(input_ranks) :]))

    @staticmethod
    def natural(input_ranks: Sequence[int], output_ranks: Sequence[int]) -> AxesMapping:
        """Axis ``i`` of everything is the same axis; for operators that keep axes in place."""
        fresh = iter(letters())
        names = "".join(next(fresh) for _ in range(max([*input_ranks, *output_ranks], default=0)))
        return AxesMapping(tuple(names[:r] for r in input_ranks), tuple(names[:r] for r in output_ranks))

    @staticmethod
    def natural_but(input_ranks: Sequence[int], output_ranks: Sequence[int], cut: Iterable[int]) -> AxesMapping:
        """Like `natural`, but the axes at the positions ``cut`` are disconnected: they have names of their own."""
        mapping = AxesMapping.natural(input_ranks, output_ranks)
        cut = frozenset(cut)
        used = set(mapping.names)
        fresh = (name for name in letters() if name not in used)
        inputs, outputs = (
            tuple("".join(next(fresh) if axis in cut else name for axis, name in enumerate(term)) for term in terms)
            for terms in (mapping.inputs, mapping.outputs)
        )
        return AxesMapping(inputs, outputs)

    def __str__(self) -> str:
        return f"{','.join(self.inputs)}->{','.join(self.outputs)}"

    @property
    def names(self) -> str:
        """Every axis once, in order of first appearance: outputs first."""
        return "".join(dict.fromkeys("".join([*self.outputs, *self.inputs])))

    def axis(self, name: str) -> Axis:
        """The positions of a named axis."""
        return Axis(
            name,
            tuple(tuple(i for i, c in enumerate(term) if c == name) for term in self.inputs),
            tuple(tuple(i for i, c in enumerate(term) if c == name) for term in self.outputs),
        )

    def axes(self) -> list[Axis]:
        """All axes, outputs' first."""
        return [self.axis(name) for name in self.names]

    def free_name(self) -> str:
        """A name that no axis has."""
        used = set(self.names)
        return next(name for name in letters() if name not in used)

    def track(self, source: tuple[str, int, int], target: tuple[str, int]) -> int | None:
        """Follow one axis. ``source`` is ``("in" | "out", index, axis)``, ``target`` is ``("in" | "out", index)``.

        Returns the axis's position there, or ``None`` when it is absent or not unique.
        """
        side, index, position = source
        name = (self.inputs if side == "in" else self.outputs)[index][position]
        wanted = (self.inputs if target[0] == "in" else self.outputs)[target[1]]
        return wanted.index(name) if wanted.count(name) == 1 else None

    def with_input(self, index: int, term: str) -> AxesMapping:
        """With the axes of one input replaced."""
        return AxesMapping((*self.inputs[:index], term, *self.inputs[index + 1 :]), self.outputs)

    def with_output(self, index: int, term: str) -> AxesMapping:
        """With the axes of one output replaced."""
        return AxesMapping(self.inputs, (*self.outputs[:index], term, *self.outputs[index + 1 :]))


@lru_cache(maxsize=4096)
def _parse(expression: str) -> AxesMapping:
    left, arrow, right = expression.replace(" ", "").partition("->")
    mapping = AxesMapping(tuple(left.split(",")), tuple(right.split(",")))
    if not arrow or not all(c.isalpha() for c in "".join([*mapping.inputs, *mapping.outputs])):
        raise FactError(f"{expression!r} is not an axes expression", hint="write it as in 'mk,kn->mn'")
    return mapping
