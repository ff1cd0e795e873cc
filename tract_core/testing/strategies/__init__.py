"""Random models for property tests, with hypothesis, and what NumPy alone makes of them.

A model is grown step by step: each step picks some tensors that are there and wires one operator, or a small group of
them as frontends write them. Sizes may be symbols, and steps may fit in some runs only: a model whose axis of size
``S`` is sliced, indexed, or combined with one of size 3 refuses some of the sizes that it may be run with, and must do
so however it is rewritten.

Each step notes what NumPy alone makes of its inputs, and what may be relied on: every bit, where arithmetic has one
right result, also for infinities and what is no number; or numbers of moderate size but for their last digits. Steps
that would turn last digits into something large (rounding, comparisons) only read what is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from tract_core.data import DatumType
from tract_core.dims import Dim, evaluate, symbol
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.testing.strategies import arithmetic, axes, bodies, others, parts, sums
from tract_core.testing.strategies.arithmetic import SPECIAL
from tract_core.testing.strategies.garden import (
    SYMBOLS,
    TAME,
    WHOLE,
    WILD,
    Array,
    Garden,
    Oracle,
    Refused,
    Sizes,
    Traits,
)

__all__ = ["Grown", "Oracle", "Refused", "Traits", "typed_models"]

_FAMILIES: Final = (
    *(arithmetic.STEPS, arithmetic.STEPS, axes.STEPS, parts.STEPS, sums.STEPS, arithmetic.STEPS, arithmetic.STEPS),
    *(axes.STEPS, parts.STEPS, sums.STEPS, others.STEPS, bodies.STEPS),
)

_VALUES: Final = (0, 1, 2, 3, 3, 3, 5)
"""What symbols stand for in a run."""


@dataclass(frozen=True, slots=True, repr=False)
class Grown:
    """A random model; sizes with which it may be run; what NumPy makes of it, and what holds of its outputs.

    ``sizes``: values of the symbols in one run; ``sizings``: in several. ``seed`` and ``steps``: what `grow` makes
    the model of again; the numbers in its inputs depend on the seed as well. ``sources``: what is known of the
    inputs.
    """

    model: TypedModel
    sizes: dict[str, int]
    sizings: tuple[dict[str, int], ...] = ({},)
    oracle: Oracle = field(default_factory=Oracle)
    traits: tuple[Traits, ...] = ()
    seed: int = 0
    steps: int = 0
    sources: dict[OutletId, Traits] = field(default_factory=dict[OutletId, Traits])

    def inputs(self, sizes: Sizes) -> list[Array]:
        """Arrays for the inputs of the model, of these sizes, in which the traits of its sources hold."""
        random = np.random.default_rng(self.seed)
        facts = [(self.model.outlet_fact(outlet), self.sources[outlet]) for outlet in self.model.inputs]
        return [_elements(random, fact, traits, sizes) for fact, traits in facts]

    def __repr__(self) -> str:
        lines = [f"grow({self.seed}, {self.steps})"]
        for node in self.model.live_nodes():
            read = ", ".join(self.model.outlet_name(outlet) for outlet in node.inputs)
            found = "; ".join(str(outlet.fact) for outlet in node.outputs)
            lines.append(f"  {node.name} = {node.op}({read}): {found}")
        return "\n".join([*lines, f"  outputs: {', '.join(map(self.model.outlet_name, self.model.outputs))}"])


def _elements(random: np.random.Generator, fact: TypedFact, traits: Traits, sizes: Sizes) -> Array:
    shape = [evaluate(dim, sizes) for dim in fact.shape]
    kind = fact.datum_type.storage
    if kind.is_integer():
        limits = np.iinfo(kind.numpy)
        ends = np.array([limits.min, limits.max, limits.min + 1], kind.numpy)
        small = random.integers(-3 if limits.min else 0, 9, shape).astype(kind.numpy)
        return np.where(random.random(shape) < 0.2, random.choice(ends, shape), small)
    if traits.whole:
        return random.integers(-int(traits.bound), int(traits.bound) + 1, shape).astype(kind.numpy)
    plain = random.uniform(-2, 2, shape)
    if not traits.tame:
        large = random.choice(np.array([*SPECIAL, 41 * 7, 1e-45, 7.5]), shape)
        plain = np.where(random.random(shape) < 0.4, large, plain * random.choice([1, 1e3, 41], shape))
    with np.errstate(over="ignore", under="ignore"):
        return plain.astype(kind.numpy)


@st.composite
def typed_models(draw: Callable[[st.SearchStrategy[int]], int], *, steps: int = 12) -> Grown:
    """Models of up to ``steps`` steps, with one to three inputs, and fixed or symbolic sizes.

    What no step reads is an output, so that all that is wired is computed. Models of one seed are alike but for how
    many steps they take, so that what fails is reported with the fewest.
    """
    seed = draw(st.integers(0, 2**32 - 1))
    return grow(seed, draw(st.integers(1, steps)))


def grow(seed: int, steps: int) -> Grown:
    """The model that a seed leads to in so many steps."""
    model = TypedModel()
    random = Random(seed)
    symbolic = random.random() < 0.6
    garden = Garden(random, model, tuple(map(symbol, SYMBOLS)) if symbolic else ())
    names, runs = (SYMBOLS, 3) if symbolic else ((), 1)
    sizings = tuple({name: random.choice(_VALUES) for name in names} for _ in range(runs))
    for number in range(garden.integer(1, 3)):
        _source(garden, f"input{number}")
    if symbolic:  # every symbol gets its value from an input, whatever the others look like
        anchor = model.add_source("anchor", TypedFact.of(DatumType.F32, (*garden.symbols[:2], 3, garden.symbols[2])))
        _note_source(garden, anchor, TAME)
    for name in names:
        model.symbols.add(name)
    sources = dict(garden.traits)
    for _ in range(steps):
        _step(garden)
    model.set_outputs(_unread(garden))
    traits = tuple(garden.traits[outlet] for outlet in model.outputs)
    return Grown(model, sizings[0], sizings, garden.oracle, traits, seed, steps, sources)


_KINDS: Final = (
    *[(DatumType.F32, WILD), (DatumType.F32, TAME), (DatumType.F32, WHOLE), (DatumType.F32, TAME)],
    *[(DatumType.I32, WILD), (DatumType.I64, WILD), (DatumType.I8, WILD), (DatumType.F16, WILD)],
)


def _source(garden: Garden, name: str) -> None:
    sizes: list[Dim] = [0, 1, 2, 3, 4, 1, 2, 3, 4]
    symbols = [*garden.symbols, *(2 * one for one in garden.symbols[:1]), *(one + 1 for one in garden.symbols[:1])]
    shape = [garden.choose([*sizes, *symbols]) for _ in range(garden.integer(0, 4))]
    kind, traits = garden.choose(_KINDS)
    _note_source(garden, garden.model.add_source(name, TypedFact.of(kind, shape)), traits)


def _note_source(garden: Garden, outlet: OutletId, traits: Traits) -> None:
    garden.pool.append(outlet)
    garden.traits[outlet] = traits


def _step(garden: Garden) -> None:
    family: Sequence[Callable[[Garden], OutletId | None]] = garden.choose(_FAMILIES)
    found = garden.choose(family)(garden)
    if found is not None and garden.fits(found):
        garden.pool.append(found)


def _unread(garden: Garden) -> list[OutletId]:
    """The tensors of computed nodes that nothing reads; the last source where there is none."""
    model: Any = garden.model
    found = [outlet for outlet in garden.traits if not model.outlet(outlet).successors and outlet not in model.inputs]
    return found or [model.inputs[-1]]
