"""Operators as others write them: frozen dataclasses with nothing but their facts and their NumPy meaning."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from tract_cpu import plugin as cpu_plugin
from tract_llvm import plugin as llvm_plugin

from tract_core.data import Constant, DatumType
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.elementwise import ElementWise
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.keys import REFERENCE
from tract_core.plugins.registry import Registry
from tract_core.plugins.tables import Rows

ROWS = Rows()
EPSILON = 1e-5


class Plugin:
    """What an entry point would lead to."""

    @hookimpl
    def tract_api_version(self):
        return "1.0"

    @hookimpl
    def tract_rows(self):
        return {"reference": ["custom_operators", "custom_hosts"]}


def registry() -> Registry:
    """The core, the runtime, and these operators."""
    return Registry({"llvm": llvm_plugin, "cpu": cpu_plugin, "custom": Plugin()}, discover=False, strict=True)


class LikeFirst(TypedOp):
    """Those that give the type and shape of their first input."""

    def output_facts(self, inputs):
        return (inputs[0].without_value(),)


class PerRow(TypedOp):
    """Those that give one number for each row."""

    def output_facts(self, inputs):
        return (inputs[0].with_shape(inputs[0].shape[:-1]),)


class HalfOfLast(TypedOp):
    """Those that halve the last axis."""

    def output_facts(self, inputs):
        (x,) = inputs
        return (x.with_shape((*x.shape[:-1], x.shape[-1] // 2)),)


@dataclass(frozen=True)
class Mish(ElementWise):
    """Diganta Misra, 2019."""


@ROWS.row(REFERENCE, Mish)
def mish(op, x):
    return x * np.tanh(np.log1p(np.exp(x)))


@dataclass(frozen=True)
class GeluTanh(ElementWise):
    pass


@ROWS.row(REFERENCE, GeluTanh)
def gelu_tanh(op, x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@dataclass(frozen=True)
class QuickGelu(ElementWise):
    slope: float = 1.702


@ROWS.row(REFERENCE, QuickGelu)
def quick_gelu(op, x):
    return np.asarray(x / (1 + np.exp(-op.slope * x)))


@dataclass(frozen=True)
class Snake(ElementWise):
    frequency: float = 2.0


@ROWS.row(REFERENCE, Snake)
def snake(op, x):
    return x + np.sin(op.frequency * x) ** 2 / op.frequency


@dataclass(frozen=True)
class SoftThreshold(ElementWise):
    limit: float = 0.5


@ROWS.row(REFERENCE, SoftThreshold)
def soft_threshold(op, x):
    return np.sign(x) * np.maximum(np.abs(x) - op.limit, 0)


@dataclass(frozen=True)
class Softplus(ElementWise):
    pass


@ROWS.row(REFERENCE, Softplus)
def softplus(op, x):
    return np.logaddexp(x, 0)


@dataclass(frozen=True)
class Celu(ElementWise):
    alpha: float = 1.5


@ROWS.row(REFERENCE, Celu)
def celu(op, x):
    return np.where(x > 0, x, op.alpha * np.expm1(x / op.alpha))


@dataclass(frozen=True)
class HardSwish6(ElementWise):
    pass


@ROWS.row(REFERENCE, HardSwish6)
def hard_swish(op, x):
    y = np.clip(x + 3, 0, 6)
    y *= x
    y /= 6
    return y


@dataclass(frozen=True)
class Saturate(ElementWise):
    limit: float = 2.0


def _wide(x):
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


@ROWS.row(REFERENCE, Saturate)
def saturate(op, x):
    wide = _wide(x)
    return (wide / (1 + np.abs(wide) / op.limit)).astype(x.dtype)


@dataclass(frozen=True)
class Channels(LikeFirst):
    """A slope and a shift for each place of the last axis."""

    slopes: Constant
    shifts: tuple[float, ...]


@ROWS.row(REFERENCE, Channels)
def channels(op, x):
    return np.where(x >= 0, x, x * op.slopes.array) + np.asarray(op.shifts, x.dtype)


@dataclass(frozen=True)
class Focal(LikeFirst):
    """Lin et al., 2017: of chances, and which of them came true."""

    gamma: float = 2.0


@ROWS.row(REFERENCE, Focal)
def focal(op, chance, truth):
    met = np.where(truth > 0.5, chance, 1 - chance)
    return -((1 - met) ** op.gamma) * np.log(np.clip(met, EPSILON, 1 - EPSILON))


@dataclass(frozen=True)
class Huber(LikeFirst):
    delta: float = 1.0


@ROWS.row(REFERENCE, Huber)
def huber(op, x, y):
    far = np.abs(x - y)
    return np.where(far <= op.delta, 0.5 * far * far, op.delta * (far - 0.5 * op.delta))


@dataclass(frozen=True)
class RootMeanSquareNorm(LikeFirst):
    pass


@ROWS.row(REFERENCE, RootMeanSquareNorm)
def root_mean_square_norm(op, x):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)


@dataclass(frozen=True)
class LayerNorm(LikeFirst):
    pass


@ROWS.row(REFERENCE, LayerNorm)
def layer_norm(op, x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axis=-1, keepdims=True) + EPSILON)


@dataclass(frozen=True)
class GroupNorm(LikeFirst):
    groups: int = 3


@ROWS.row(REFERENCE, GroupNorm)
def group_norm(op, x):
    parts = x.reshape(x.shape[0], op.groups, -1)
    middle = parts - parts.mean(axis=2, keepdims=True)
    return (middle / (middle.std(axis=2, keepdims=True) + EPSILON)).reshape(x.shape)


@dataclass(frozen=True)
class Softmax(LikeFirst):
    temperature: float = 0.7
    axis: int = -1


@ROWS.row(REFERENCE, Softmax)
def softmax(op, x):
    e = np.exp((x - x.max(axis=op.axis, keepdims=True)) / op.temperature)
    return e / e.sum(axis=op.axis, keepdims=True)


@dataclass(frozen=True)
class LogSumExp(PerRow):
    pass


@ROWS.row(REFERENCE, LogSumExp)
def log_sum_exp(op, x):
    most = np.max(x, axis=-1, keepdims=True)
    return np.log(np.add.reduce(np.exp(x - most), axis=-1)) + most[..., 0]


@dataclass(frozen=True)
class Cosine(PerRow):
    pass


@ROWS.row(REFERENCE, Cosine)
def cosine(op, x, y):
    return (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1) + EPSILON)


@dataclass(frozen=True)
class L1Distance(PerRow):
    pass


@ROWS.row(REFERENCE, L1Distance)
def l1_distance(op, x, y):
    return np.linalg.norm(x - y, 1, -1)


@dataclass(frozen=True)
class PairwiseEuclid(TypedOp):
    """Every row of one with every row of the other."""

    def output_facts(self, inputs):
        x, y = inputs
        return (x.with_shape((x.shape[0], y.shape[0])),)


@ROWS.row(REFERENCE, PairwiseEuclid)
def pairwise_euclid(op, x, y):
    return np.sqrt(((x[:, None, :] - y[None]) ** 2).sum(axis=-1))


@dataclass(frozen=True)
class Glu(HalfOfLast):
    pass


@ROWS.row(REFERENCE, Glu)
def glu(op, x):
    left, right = np.split(x, 2, axis=-1)
    return left / (1 + np.exp(-right))


@dataclass(frozen=True)
class SwiGlu(HalfOfLast):
    pass


@ROWS.row(REFERENCE, SwiGlu)
def swi_glu(op, x):
    half = x.shape[-1] // 2
    gate = x[..., :half]
    return gate / (1 + np.exp(-gate)) * x[..., half:]


@dataclass(frozen=True)
class RotateHalf(LikeFirst):
    pass


@ROWS.row(REFERENCE, RotateHalf)
def rotate_half(op, x):
    half = x.shape[-1] // 2
    return np.concatenate([-x[..., half:], x[..., :half]], axis=-1)


@dataclass(frozen=True)
class SinePositions(LikeFirst):
    """Vaswani et al., 2017, with the sines before the cosines."""


@ROWS.row(REFERENCE, SinePositions)
def sine_positions(op, x):
    places, width = x.shape[1], x.shape[2]
    angles = np.arange(places)[:, None] / 10000 ** (np.arange(width // 2) * 2 / width)
    return x + np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(x.dtype)


@dataclass(frozen=True)
class Scores(TypedOp):
    """Products of queries and keys, by the root of how long they are."""

    def output_facts(self, inputs):
        q, k = inputs
        return (q.with_shape((*q.shape[:-1], k.shape[-2])),)


@ROWS.row(REFERENCE, Scores)
def scores(op, q, k):
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])


@dataclass(frozen=True)
class MeanOfAll(TypedOp):
    """The mean of numbers of any type, over an axis that is as long as the run says."""

    def output_facts(self, inputs):
        (x,) = inputs
        kind = DatumType.F64 if x.datum_type.is_integer() else x.datum_type
        return (TypedFact.of(kind, x.shape[1:]),)


@ROWS.row(REFERENCE, MeanOfAll)
def mean_of_all(op, x):
    return np.mean(x, axis=0)


@dataclass(frozen=True)
class Hash(LikeFirst):
    """Of integers, bit by bit."""


@ROWS.row(REFERENCE, Hash)
def hash_of(op, x):
    x = (x ^ (x >> 3)) * 2654
    return ~(x & 0x5F5F) // 7 + (x % 5)


@dataclass(frozen=True)
class MeanAndSpread(TypedOp):
    """Two results."""

    def output_facts(self, inputs):
        (x,) = inputs
        return (x.with_shape(x.shape[:-1]),) * 2


@ROWS.row(REFERENCE, MeanAndSpread)
def mean_and_spread(op, x):
    return x.mean(axis=-1), x.max(axis=-1) - x.min(axis=-1)


@dataclass(frozen=True)
class ShareOfSize(LikeFirst):
    """By twice as many rows as there are, and one, which only a run knows."""


@ROWS.row(REFERENCE, ShareOfSize)
def share_of_size(op, x):
    return x / (x.shape[0] * 2 + 1)
