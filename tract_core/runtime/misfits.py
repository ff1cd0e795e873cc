"""Inputs whose sizes take more than a glance: symbols that several sizes give, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from tract_core.data import Container, DatumType
from tract_core.data.boxes import misfit
from tract_core.dims import Dim, bind, evaluate, symbol, symbols_of
from tract_core.dims.names import write_name
from tract_core.errors import DimError, FactError, InputError

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact
    from tract_core.plugins.keys import Array


def bind_inputs(
    names: Sequence[str], facts: Sequence[TypedFact], arrays: Sequence[Array], known: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The values of all symbols, from the shapes of the arrays (and from what is ``known`` before).

    Raises InputError for a wrong number of arrays, a wrong type, rank or size, and when two inputs disagree about a
    symbol.
    """
    if len(arrays) != len(facts):
        wanted = ", ".join(f"{name} ({fact})" for name, fact in zip(names, facts, strict=True)) or "none"
        raise InputError(f"{len(arrays)} inputs were given, the model takes {len(facts)}: {wanted}")
    inputs = _Inputs(names, facts, dict(known or {}))
    for slot, (fact, array) in enumerate(zip(facts, arrays, strict=True)):
        if not isinstance(fact.datum_type, Container):  # what it holds is looked at when the symbols are known
            _check_type(names[slot], fact, array)
            inputs.bind(slot, array)
    for slot, array in enumerate(arrays):
        inputs.check(slot, array)
    return inputs.bound


@dataclass(slots=True)
class _Inputs:
    """The inputs of a model while their sizes are found out. ``origin``: which input gave a symbol its value."""

    names: Sequence[str]
    facts: Sequence[TypedFact]
    bound: dict[str, int]
    origin: dict[str, int] = field(default_factory=dict[str, int])

    def bind(self, slot: int, array: Array) -> None:
        """Find the values of symbols from the shape of one input. Raises InputError where they are others already."""
        before = set(self.bound)
        try:
            self.bound = bind(self.facts[slot].shape, array.shape, self.bound)
        except DimError as error:
            self._check_sizes(slot, array)
            text = f"shape {array.shape} does not fit {self.facts[slot]}: {error.problem}"
            raise InputError(text, where=f"input {self.names[slot]!r}", hint=self._twice(slot)) from None
        self.origin.update(dict.fromkeys(set(self.bound) - before, slot))

    def check(self, slot: int, array: Array) -> None:
        """Raises InputError where an input does not have the sizes that it should."""
        if isinstance(self.facts[slot].datum_type, Container):
            _check_container(self.names[slot], self.facts[slot], array, self.bound)
        else:
            self._check_sizes(slot, array)

    def _check_sizes(self, slot: int, array: Array) -> None:
        fact, where = self.facts[slot], f"input {self.names[slot]!r}"
        for axis, (dim, size) in enumerate(zip(fact.shape, array.shape, strict=True)):
            if not symbols_of(dim):
                if dim != size:
                    problem = f"axis {axis} has size {size}, the model wants {fact}"
                    raise InputError(problem, where=where, hint=_in_other_order(fact, array.shape))
            elif symbols_of(dim) <= self.bound.keys() and evaluate(dim, self.bound) != size:
                text = f"axis {axis} has size {size}, but {self._because(dim)}"
                raise InputError(text, where=where, hint=self._how_to_part(slot, axis))

    def _because(self, dim: Dim) -> str:
        values = " and ".join(
            f"{write_name(name)} is {self.bound[name]}"
            + (f" by input {self.names[self.origin[name]]!r}" if name in self.origin else "")
            for name in sorted(symbols_of(dim))
        )
        return f"{dim} is wanted and {values}"

    def _twice(self, slot: int) -> str | None:
        """How to part the sizes of one input that have the same name, if there are any."""
        seen: set[str] = set()
        for axis, dim in enumerate(self.facts[slot].shape):
            if symbols_of(dim) & seen:
                self.origin.update(dict.fromkeys(symbols_of(dim) & seen, slot))
                return self._how_to_part(slot, axis)
            seen |= symbols_of(dim)
        return None

    def _how_to_part(self, slot: int, axis: int) -> str | None:
        """How to give a size a name of its own, where another one has the same name."""
        fact = self.facts[slot]
        shared = sorted(symbols_of(fact.shape[axis]) & self.origin.keys())
        if not shared:
            return None
        taken = frozenset[str]().union(*(one.shape.symbols() for one in self.facts))
        own = next(name for name in (f"{shared[0]}{number}" for number in count(2)) if name not in taken)
        if self.origin[shared[0]] == slot:
            fact = fact.with_shape((*fact.shape[:axis], symbol(own), *fact.shape[axis + 1 :]))
        else:
            fact = fact.substitute({shared[0]: symbol(own)})
        from shlex import quote

        return (
            f"where they may differ, give one of them another name before into_model: set_input_fact({slot}, "
            f"{str(fact)!r}), or -i {quote(f'{self.names[slot]}:{fact}')} on the command line; or load the file with "
            "own_symbols=True"
        )


def _check_type(name: str, fact: TypedFact, array: Array) -> None:
    try:
        found = DatumType.from_numpy(array.dtype)
    except FactError as error:
        raise InputError(error.problem, where=f"input {name!r}") from None
    if found != fact.datum_type.storage:
        raise InputError(
            f"input is {found.short}, the model wants {fact}",
            where=f"input {name!r}",
            hint=_conversion(found, fact.datum_type.storage),
        )
    if array.ndim != fact.rank:
        problem = f"input has rank {array.ndim} (shape {array.shape}), the model wants {fact}"
        raise InputError(problem, where=f"input {name!r}", hint=_without_a_batch(fact, array.shape))


def _without_a_batch(fact: TypedFact, shape: tuple[int, ...]) -> str | None:
    """How to add a first axis that is missing, or to take away one that is too much."""
    if _fits(fact.shape[1:], shape):
        return "it lacks the first axis: array[None] has one of size 1"
    if len(shape) and shape[0] == 1 and _fits(fact.shape, shape[1:]):
        return "it has a first axis too much: array[0] has none"
    return None


def _in_other_order(fact: TypedFact, shape: tuple[int, ...]) -> str | None:
    """How to move the channels of an image or a sound to where the model has them, where that makes it fit."""
    last, between = len(shape) - 1, tuple(range(1, len(shape) - 1))
    for order in ((0, last, *between), (0, *range(2, len(shape)), 1)):
        if len(shape) > 2 and _fits(fact.shape, tuple(shape[axis] for axis in order)):
            return f"its axes are in another order: array.transpose{order} fits"
    return None


def _fits(dims: Sequence[Dim], sizes: tuple[int, ...]) -> bool:
    """Whether sizes may be these, as far as they are known."""
    return len(dims) == len(sizes) and all(
        symbols_of(dim) or dim == size for dim, size in zip(dims, sizes, strict=True)
    )


def _conversion(found: DatumType, wanted: DatumType) -> str | None:
    """How a caller would make an array of one type of another; ``None`` when that would make no sense."""
    if DatumType.STRING in (found, wanted) or (found.is_complex() and not wanted.is_complex()):
        return None
    name = wanted.numpy.name
    return f"convert it with .astype({name!r}), a tensor of PyTorch with .to(torch.{name})"


def _check_container(name: str, fact: TypedFact, array: Array, bound: dict[str, int]) -> None:
    holds = array.ndim == 0 and array.dtype.kind == "O"
    problem = misfit(array.item() if holds else array, fact.datum_type, bound)
    if problem is not None:
        raise InputError(problem, where=f"input {name!r}", hint=f"the model wants {fact}")
