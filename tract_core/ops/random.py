"""Numbers drawn at random.

With a seed, a run gives the same numbers each time: those of the Mersenne twister, as NumPy's ``RandomState`` has it,
which never changes. Without a seed, every run gives other ones. Nothing here is ever computed early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar, cast

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, scalar, wide
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class Distribution(Enum):
    """UNIFORM: between ``a`` and ``b``. NORMAL: around ``a`` with standard deviation ``b``."""

    UNIFORM = "uniform"
    NORMAL = "normal"


class _Drawn(TypedOp):
    """``seed``: what the numbers begin with; ``None``: others in every run."""

    seed: int | None
    pure: ClassVar[bool] = False

    @property
    def draws(self) -> bool:
        """Where no seed says which numbers."""
        return self.seed is None


@frozen
class RandomTensor(_Drawn):
    """Numbers of the type ``to``, in ``shape``.

    ``a``, ``b``: the two parameters of the distribution. ``seed``: the same numbers in every run; ``None`` for
    others.
    """

    distribution: Distribution
    a: float
    b: float
    to: DatumType
    seed: int | None
    shape: tuple[Dim, ...]

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor of ``shape``. Raises FactError for a type that is no float."""
        arity(self, inputs, 0)
        return (float_type(self, TypedFact.of(self.to, self.shape)),)


@frozen
class RandomLike(_Drawn):
    """Numbers of the type ``to``, in the shape of the input.

    ``a``, ``b``: the two parameters of the distribution. ``seed``: the same numbers in every run; ``None`` for
    others.
    """

    distribution: Distribution
    a: float
    b: float
    to: DatumType
    seed: int | None

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor of the input's shape. Raises FactError for a type that is no float."""
        (x,) = arity(self, inputs, 1)
        return (float_type(self, x.with_type(self.to)),)


@frozen
class Multinomial(_Drawn):
    """For each row of logarithms of weights, ``count`` places, each drawn as often as its weight says.

    Input: [rows, places]. Output: [rows, ``count``], of the integer type ``to``.

    ``seed``: the same places in every run; ``None`` for others.
    """

    count: int
    to: DatumType
    seed: int | None
    judges: ClassVar[tuple[int, ...]] = (0,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``count`` places per row. Raises FactError for anything but floats of rank 2."""
        (x,) = arity(self, inputs, 1)
        if float_type(self, x).rank != 2 or not self.to.is_integer():
            raise FactError(f"Multinomial wants floats of shape [rows, places], for integers, found {x}")
        return (TypedFact.of(self.to, (x.shape[0], self.count)),)


@frozen
class Dropout(_Drawn):
    """Some elements, drawn at random, become 0, and the others grow so that the mean stays.

    Inputs: x; the share that is dropped, of rank 0; whether anything is dropped, a boolean of rank 0. Outputs: x with
    elements dropped, and booleans: which are left.

    ``seed``: the same elements in every run; ``None`` for others.
    """

    seed: int | None

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of x, and booleans in its shape. Raises FactError for anything but floats."""
        x, ratio, training = arity(self, inputs, 3)
        scalar(self, float_type(self, ratio), "share")
        if not scalar(self, training, "training mode").datum_type.is_bool():
            raise FactError(f"Dropout wants a boolean as training mode, found {training}")
        return (float_type(self, x), x.with_type(DatumType.BOOL))


def _generator(seed: int | None) -> np.random.RandomState:
    return np.random.RandomState(None if seed is None else seed % (1 << 32))


def _draw(op: RandomTensor | RandomLike, shape: tuple[int, ...]) -> Array:
    generator = _generator(op.seed)
    if op.distribution is Distribution.UNIFORM:
        return np.asarray(op.a + generator.random_sample(shape) * (op.b - op.a)).astype(op.to.numpy)
    return np.asarray(op.a + generator.standard_normal(shape) * op.b).astype(op.to.numpy)


@ROWS.row(REFERENCE, RandomTensor)
def random_tensor(op: RandomTensor) -> Array:
    """numpy.random.RandomState"""
    return _draw(op, tuple(int(size) for size in op.shape))


@ROWS.row(REFERENCE, RandomLike)
def random_like(op: RandomLike, x: Array) -> Array:
    """numpy.random.RandomState"""
    return _draw(op, x.shape)


@ROWS.row(MEMORY, RandomTensor, RandomLike)
def memory(op: RandomTensor | RandomLike, made: int, *inputs: Array) -> int:
    """Numbers in f64, which are stretched and moved where they are"""
    return 8 * (made // op.to.itemsize) + made


@ROWS.row(MEMORY, Multinomial)
def multinomial_memory(op: Multinomial, made: int, x: Array) -> int:
    """The weights and their sums, and the comparison of each number drawn with each of them"""
    drawn = len(x) * op.count
    return 4 * 8 * x.size + drawn * (x.shape[1] + 3 * 8) + made


@ROWS.row(MEMORY, Dropout)
def dropout_memory(op: Dropout, made: int, x: Array, ratio: Array, training: Array) -> int:
    """Numbers in f64, and what is left in a wider type"""
    return x.size * (8 + wide(x.dtype).itemsize) + made


@ROWS.row(REFERENCE, Multinomial)
def multinomial(op: Multinomial, x: Array) -> Array:
    """The place where the running sum of the weights passes a number drawn between 0 and their sum"""
    logs = x.astype(np.float64)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    limits = np.cumsum(weights, axis=1)
    if not (weights.sum(axis=1) > 0).all():
        raise RunError("the weights of a row have no positive sum")
    drawn = _generator(op.seed).random_sample((len(x), op.count)) * limits[:, -1:]
    return (drawn[:, :, None] >= limits[:, None, :]).sum(axis=2).astype(op.to.numpy)


@ROWS.row(REFERENCE, Dropout)
def dropout(op: Dropout, x: Array, ratio: Array, training: Array) -> tuple[Array, Array]:
    """``mask * x / (1 - share)``"""
    share = float(ratio)
    if not training or share == 0:
        return x, np.ones(x.shape, np.bool_)
    if not 0 < share < 1:
        raise RunError(f"the share of elements to drop is {share:g}, wanted one from 0 up to 1")
    left = cast("Array", cast("Array", _generator(op.seed).random_sample(x.shape)) >= share)
    kind = wide(x.dtype)
    return (left * x.astype(kind) * kind.type(1 / (1 - share))).astype(x.dtype), left


@ROWS.row(COST, RandomTensor, RandomLike, Multinomial, Dropout)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per number drawn, by convention."""
    return {"FMA(F32)": outputs[0].shape.volume}


@ROWS.row(AXES, RandomTensor, RandomLike, Multinomial, Dropout)
def axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: what is drawn for a part is not a part of what is drawn for the whole."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
