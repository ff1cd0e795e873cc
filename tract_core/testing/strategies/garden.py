"""A random model under construction, and what plain NumPy makes of every tensor in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, evaluate, is_symbolic
from tract_core.errors import DimError, TractError
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel

Array = np.ndarray[Any, Any]
T = TypeVar("T")
Sizes: TypeAlias = Mapping[str, int]
Meaning: TypeAlias = Callable[..., Any]
"""``(*arrays) -> array``, in NumPy alone; any exception is a refusal. What is ``sized`` gets the sizes first."""

SYMBOLS: Final = ("B", "S", "T")
LARGEST: Final[Sizes] = dict.fromkeys(SYMBOLS, 5)
"""The largest value that a symbol gets in a run."""

MAX_ELEMENTS: Final = 2000
MAX_RANK: Final = 5

SMALL: Final = 1e3
"""What is not above that may be summed, and given to functions such as ``exp``."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What may be relied on of the elements of a tensor.

    ``exact``: every bit, as arithmetic has one right result; else the last digits depend on who computes them.
    ``zeros``: the signs of zeros too. ``whole``: they are whole numbers. ``bound``: none is larger; infinite also
    where some are not numbers.
    """

    exact: bool = True
    zeros: bool = True
    whole: bool = False
    bound: float = math.inf

    @property
    def tame(self) -> bool:
        """Whether the elements are numbers of moderate size."""
        return self.bound <= SMALL


WILD: Final = Traits()
WHOLE: Final = Traits(whole=True, bound=4)
TAME: Final = Traits(bound=2)


@dataclass(frozen=True, slots=True)
class _Step:
    output: OutletId
    inputs: tuple[OutletId, ...]
    meaning: Meaning
    sized: bool


class Refused(Exception):
    """NumPy refuses the arrays."""


@dataclass(slots=True)
class Oracle:
    """What NumPy alone computes for a model, step by step. ``lenient``: a model may refuse what NumPy accepts."""

    steps: list[_Step] = field(default_factory=list[_Step])
    constants: dict[OutletId, Array] = field(default_factory=dict[OutletId, Array])
    lenient: bool = False

    def run(self, model: TypedModel, inputs: Sequence[Array], sizes: Sizes) -> list[Array]:
        """The outputs of ``model``. Raises Refused where a step is impossible."""
        values = {**self.constants, **dict(zip(model.inputs, inputs, strict=True))}
        with np.errstate(all="ignore"):
            for step in self.steps:
                first = (sizes,) if step.sized else ()
                try:
                    found = step.meaning(*first, *(values[outlet] for outlet in step.inputs))
                except Exception as error:
                    raise Refused(f"{model.producer(step.output)}: {error}") from error
                values[step.output] = np.asarray(found)
        return [values[outlet] for outlet in model.outputs]


@dataclass(slots=True)
class Garden:
    """A model under construction: the tensors that may be read, what is known of them, and what NumPy makes of them."""

    random: Random
    model: TypedModel
    symbols: tuple[Dim, ...]
    pool: list[OutletId] = field(default_factory=list[OutletId])
    traits: dict[OutletId, Traits] = field(default_factory=dict[OutletId, Traits])
    oracle: Oracle = field(default_factory=Oracle)
    count: int = 0

    def choose(self, options: Sequence[T]) -> T:
        """One of them."""
        return self.random.choice(options)

    def integer(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""
        return self.random.randint(low, high)

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return not self.random.randrange(one_in)

    def any(self, fits: Callable[[OutletId], bool] | None = None) -> OutletId | None:
        """One of the tensors that fit: half of the time the newest, so that rows of operators grow."""
        fitting = [outlet for outlet in self.pool if fits is None or fits(outlet)]
        if not fitting:
            return None
        return fitting[-1] if self.chance(2) else self.choose(fitting[-3:] if self.chance(2) else fitting)

    def fact(self, outlet: OutletId) -> TypedFact:
        """The fact of a tensor."""
        return self.model.outlet_fact(outlet)

    def kind(self, outlet: OutletId) -> DatumType:
        """The element type of a tensor."""
        return self.fact(outlet).datum_type.storage

    def is_float(self, outlet: OutletId) -> bool:
        """Whether a tensor holds floats of f32."""
        return self.kind(outlet) is DatumType.F32

    def is_exact(self, outlet: OutletId) -> bool:
        """Whether every bit of a tensor of numbers is certain."""
        return self.traits[outlet].exact and self.kind(outlet).is_number()

    def is_summable(self, outlet: OutletId) -> bool:
        """Whether a tensor holds f32 of moderate size, and has an axis."""
        return self.is_float(outlet) and self.traits[outlet].tame and self.fact(outlet).rank > 0

    def has_axis(self, outlet: OutletId) -> bool:
        """Whether a tensor has an axis."""
        return self.fact(outlet).rank > 0

    def axis(self, outlet: OutletId) -> int:
        """One of the axes of a tensor."""
        return self.integer(0, self.fact(outlet).rank - 1)

    def name(self) -> str:
        """A name for a node."""
        self.count += 1
        return f"n{self.count}"

    def constant(self, array: Array) -> OutletId:
        """A tensor that is part of the model."""
        outlet = self.model.add_const(self.name(), array)
        self.oracle.constants[outlet] = array
        return outlet

    def number(self, value: float, kind: DatumType = DatumType.F32, rank: int = 0) -> OutletId:
        """A constant of one element."""
        return self.numbers((1,) * rank, [value], kind)

    def numbers(self, shape: Sequence[int], values: Sequence[float], kind: DatumType = DatumType.F32) -> OutletId:
        """A constant whose elements are some of ``values``; often all are the same."""
        size = math.prod(shape)
        found = [self.choose(values)] * size if self.chance(2) else [self.choose(values) for _ in range(size)]
        with np.errstate(over="ignore"):  # what f16 does not hold is infinite
            array = np.array(found, np.float64 if kind.is_float() else np.int64).astype(kind.numpy)
        return self.constant(array.reshape(shape))

    def grow(
        self, op: TypedOp, inputs: Sequence[OutletId], meaning: Meaning, traits: Traits, *, sized: bool = False
    ) -> OutletId | None:
        """A node of one output, and its meaning; ``None`` where wiring refuses it."""
        found = self.wire(lambda model, name: model.wire_node(name, op, inputs))
        return None if found is None else self.note(found[0], inputs, meaning, traits, sized=sized)

    def wire(self, build: Callable[[TypedModel, str], Sequence[OutletId]]) -> Sequence[OutletId] | None:
        """What is wired under a new name; nothing of it stays where wiring refuses a part."""
        nodes, conditions = len(self.model.nodes), self.model.conditions.copy()
        try:
            return build(self.model, self.name())
        except TractError:
            self.model.rewind(nodes)
            self.model.conditions = conditions
            return None

    def note(
        self, outlet: OutletId, inputs: Sequence[OutletId], meaning: Meaning, traits: Traits, *, sized: bool = False
    ) -> OutletId:
        """What NumPy makes of a tensor that was wired."""
        self.oracle.steps.append(_Step(outlet, tuple(inputs), meaning, sized))
        self.traits[outlet] = traits if self.kind(outlet).is_float() else replace(traits, exact=True, zeros=True)
        return outlet

    def fits(self, outlet: OutletId) -> bool:
        """Whether a tensor is small enough to go on with."""
        fact = self.fact(outlet)
        if fact.rank > MAX_RANK or not fact.shape.symbols() <= {str(one) for one in self.symbols}:
            return False  # what only a run tells is unknown to those who grow on
        return all(largest(dim) >= 0 for dim in fact.shape) and largest(fact.shape.volume) <= MAX_ELEMENTS


def largest(dim: Dim) -> int:
    """The value of a size where every symbol has its largest one; too large a one where these contradict each other."""
    try:
        return evaluate(dim, LARGEST)
    except DimError:
        return MAX_ELEMENTS + 1


def now(dim: Dim, sizes: Sizes) -> int:
    """The value of a size in a run. Raises ValueError for a negative one, which no array has."""
    found = evaluate(dim, sizes) if is_symbolic(dim) else int(dim)
    if found < 0:
        raise ValueError(f"{dim} is {found}")
    return found


def in_f32(function: Meaning, *arrays: Array) -> Array:
    """``function`` of f16 arrays, computed in f32 and rounded once; of others as they are."""
    kind = arrays[0].dtype
    wide = [array.astype(np.float32) if kind == np.float16 else array for array in arrays]
    found = np.asarray(function(*wide))
    return found.astype(kind) if kind == np.float16 and found.dtype == np.float32 else found


def in_f64(function: Meaning, *arrays: Array) -> Array:
    """``function`` of floats, computed in f64 and rounded at the end."""
    return np.asarray(function(*(array.astype(np.float64) for array in arrays))).astype(arrays[0].dtype)
