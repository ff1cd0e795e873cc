"""Steps that compute element by element: arithmetic to the last bit, comparisons, casts, and smooth functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.op import TypedOp
from tract_core.ops import binary, elementwise
from tract_core.ops.cast import Cast
from tract_core.ops.iff import Iff
from tract_core.testing.strategies.garden import Array, Garden, Meaning, Traits, in_f32, in_f64

SPECIAL: Final = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.25, 4.0, 3.0, 41.0, 0.1, 1 / 3, 1e-40, 1e-30, 2.0**127, 3e38),
    *(math.inf, -math.inf, math.nan),
)
"""Numbers that rules look for, and numbers at which something overflows, is lost, or is no number."""

MILD: Final = (-1.0, 0.0, 1.0, 2.0, 0.5, -0.25)
FEW: Final = (-1, 0, 1, 2, 3, 8)


def _plain(function: Meaning) -> Meaning:
    """In the type of the arrays; f16 in f32, rounded once."""
    return partial(in_f32, function)


def _smooth(function: Meaning) -> Meaning:
    return partial(in_f64, function)


def _half_away(x: Array) -> Array:
    return np.copysign(np.trunc(np.abs(x.astype(np.float64)) + 0.5), x).astype(x.dtype)


_ROUNDED: Final[list[tuple[Any, Callable[[Array], Array]]]] = [
    (elementwise.Floor(), np.floor),
    (elementwise.Ceil(), np.ceil),
    (elementwise.Round(), _half_away),
    (elementwise.RoundHalfToEven(), np.round),
]

_ARITHMETIC: Final[list[tuple[Any, Callable[[Array], Array]]]] = [
    *_ROUNDED,
    (elementwise.Neg(), np.negative),
    (elementwise.Abs(), np.abs),
    (elementwise.Square(), lambda x: x * x),
    (elementwise.Sqrt(), np.sqrt),
    (elementwise.Recip(), lambda x: x.dtype.type(1) / x),
    (elementwise.Rsqrt(), lambda x: x.dtype.type(1) / np.sqrt(x)),
]


def exact_function(g: Garden) -> OutletId | None:
    """Rounding, signs, squares, roots: each has one right result."""
    x = g.any(g.is_exact)
    if x is None:
        return None
    kind, traits = g.kind(x), g.traits[x]
    integers = (elementwise.Neg, elementwise.Abs, elementwise.Square)
    options = [(op, f) for op, f in _ARITHMETIC if kind.is_float() or isinstance(op, integers)]
    if not traits.zeros:
        options = [(op, f) for op, f in options if not isinstance(op, (elementwise.Recip, elementwise.Rsqrt))]
    chosen, function = g.choose(options)
    op: TypedOp = chosen
    growth: dict[type, float] = {elementwise.Neg: 1.0, elementwise.Abs: 1.0, elementwise.Square: traits.bound}
    rounded = any(op == each for each, _ in _ROUNDED)
    bound = traits.bound + 1 if rounded else traits.bound * growth.get(type(op), math.inf)
    whole = rounded or (traits.whole and type(op) in growth)
    return g.grow(op, [x], _plain(function), replace(traits, whole=whole, bound=bound))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_SMOOTH: Final[list[tuple[Any, Callable[[Array], Array], float]]] = [
    (elementwise.Tanh(), np.tanh, 1.0),
    (elementwise.Sigmoid(), _sigmoid, 1.0),
    (elementwise.Sin(), np.sin, 1.0),
    (elementwise.Silu(), lambda x: x * _sigmoid(x), math.inf),
]


def smooth_function(g: Garden) -> OutletId | None:
    """Functions whose last digits depend on the library. They bring large numbers back."""
    x = g.any(lambda one: g.is_float(one) and g.traits[one].tame)
    if x is None:
        return None
    op, function, bound = g.choose(_SMOOTH)
    limit = min(bound, g.traits[x].bound)
    return g.grow(op, [x], _smooth(function), Traits(exact=False, zeros=False, bound=limit))


def larger(a: Array, b: Array) -> Array:
    """Of equals the one without a sign, as 0.0 is above -0.0."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def smaller(a: Array, b: Array) -> Array:
    """Of equals the one with a sign, as -0.0 is below 0.0."""
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


_BINARY: Final[list[tuple[Any, Callable[[Array, Array], Array]]]] = [
    (binary.Add(), np.add),
    (binary.Sub(), np.subtract),
    (binary.SubF(), lambda a, b: b - a),
    (binary.Mul(), np.multiply),
    (binary.Max(), larger),
    (binary.Min(), smaller),
]


def _divided(a: Array, b: Array) -> Array:
    """Integers towards zero, and 0 where they are divided by 0."""
    if a.dtype.kind not in "iu":
        return a / b
    a, b = np.broadcast_arrays(a, b)
    pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
    found = [0 if not q else abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in pairs]
    wrapped = [number & ((1 << 8 * a.dtype.itemsize) - 1) for number in found]  # the least number divided by -1
    return np.array(wrapped, np.uint64).astype(a.dtype).reshape(a.shape)


_DIVISION: Final = (binary.Div(), _divided)


def _bound(op: Any, a: Traits, b: Traits) -> float:
    if isinstance(op, binary.Mul):
        return a.bound * b.bound if min(a.bound, b.bound) else 0.0
    if isinstance(op, (binary.Max, binary.Min)):
        return max(a.bound, b.bound)
    return math.inf if isinstance(op, binary.Div) else a.bound + b.bound


def _joined(op: Any, a: Traits, b: Traits) -> Traits:
    whole = a.whole and b.whole and not isinstance(op, binary.Div)
    return Traits(a.exact and b.exact, a.zeros and b.zeros, whole, _bound(op, a, b))


def _traits_of(array: Array) -> Traits:
    if array.dtype.kind not in "f":
        return Traits(whole=True)
    bound = float(np.abs(array.astype(np.float64)).max(initial=0)) if np.isfinite(array).all() else math.inf
    return Traits(whole=bool(np.all(array == np.trunc(array))), bound=bound)


def with_constant(g: Garden) -> OutletId | None:
    """Arithmetic with a constant: of exact numbers with any, of others with moderate ones."""
    x = g.any(lambda one: g.is_exact(one) or (g.is_float(one) and g.traits[one].tame))
    if x is None:
        return None
    kind, traits, fact = g.kind(x), g.traits[x], g.fact(x)
    shape = [int(size) if not is_symbolic(size) and g.chance(2) else 1 for size in fact.shape]
    if shape and g.chance(6):
        shape[g.axis(x)] = 3  # which an axis of symbolic size may be stretched to, or contradict
    operators = [*_BINARY, _DIVISION] if traits.exact and (traits.zeros or kind.is_integer()) else _BINARY
    op, function = g.choose(operators)
    values = (SPECIAL if traits.exact and not g.chance(3) else MILD) if kind.is_float() else _ends(kind)
    constant = g.numbers(shape, values, kind)
    other = _traits_of(g.oracle.constants[constant])
    if not traits.exact and not other.tame:
        return None
    operands, both = ([constant, x], (other, traits)) if g.chance(4) else ([x, constant], (traits, other))
    return g.grow(op, operands, _plain(function), _joined(op, *both))


def _ends(kind: DatumType) -> tuple[int, ...]:
    limits = np.iinfo(kind.numpy)
    return (*(value for value in FEW if limits.min <= value), int(limits.min), int(limits.max))


def of_two(g: Garden) -> OutletId | None:
    """Arithmetic of two tensors, which stretch each other, or contradict each other in some runs."""
    a = g.any(lambda one: g.is_exact(one) or (g.is_float(one) and g.traits[one].tame))
    if a is None:
        return None
    wanted = g.fact(a)
    exact = g.traits[a].exact

    def fits(one: OutletId) -> bool:
        alike = g.kind(one) is g.kind(a) and g.fact(one).rank == wanted.rank and g.traits[one].exact == exact
        return alike and (exact or g.traits[one].tame)

    b = g.any(fits)
    if b is None:
        return None
    op, function = g.choose(_BINARY)
    return g.grow(op, [a, b], _plain(function), _joined(op, g.traits[a], g.traits[b]))


_COMPARISONS: Final[list[tuple[Any, Callable[[Array, Array], Array]]]] = [
    (binary.Lt(), np.less),
    (binary.Gt(), np.greater),
    (binary.Le(), np.less_equal),
    (binary.Ge(), np.greater_equal),
    (binary.Eq(), np.equal),
    (binary.Ne(), np.not_equal),
]


def comparison(g: Garden) -> OutletId | None:
    """Of exact numbers with a constant; and a choice by it, between the numbers and another constant."""
    x = g.any(g.is_exact)
    if x is None:
        return None
    kind, rank = g.kind(x), g.fact(x).rank
    values = SPECIAL if kind.is_float() else _ends(kind)
    op, function = g.choose(_COMPARISONS)
    operands = [x, g.number(g.choose(values), kind, rank)]
    answer = g.grow(op, operands[:: g.choose([1, -1])], function, Traits(whole=True, bound=1))
    if answer is None or g.chance(3):
        return answer
    other = g.number(g.choose(values), kind, rank)
    choices = [x, other][:: g.choose([1, -1])]
    traits = _joined(binary.Add(), g.traits[x], _traits_of(g.oracle.constants[other]))
    return g.grow(Iff(), [answer, *choices], np.where, traits)


_CAST_TO: Final = (DatumType.F32, DatumType.F16, DatumType.I32, DatumType.I64, DatumType.I8, DatumType.U8)


def cast(g: Garden) -> OutletId | None:
    """Into another type: out of range, floats stop at the ends of integers, and integers wrap around."""
    x = g.any(lambda one: g.traits[one].exact)
    if x is None:
        return None
    to = g.choose(_CAST_TO)
    traits = g.traits[x]
    if to.is_float() and not traits.whole:
        traits = replace(traits, bound=math.inf)  # f16 has an end as well
    bound = traits.bound if to.is_float() else math.inf
    return g.grow(
        Cast(to),
        [x],
        partial(_converted, to),
        replace(traits, bound=bound, whole=not to.is_float() or traits.whole),
    )


def _converted(to: DatumType, x: Array) -> Array:
    if x.dtype.kind != "f" or to.is_float():
        return x.astype(to.numpy)
    limits = np.iinfo(to.numpy)
    whole = [0 if math.isnan(v) else v if math.isinf(v) else int(v) for v in x.astype(np.float64).reshape(-1).tolist()]
    held = [int(max(limits.min, min(limits.max, v))) for v in whole]
    return np.array(held, to.numpy).reshape(x.shape)


def power(g: Garden) -> OutletId | None:
    """To a constant power, of any number."""
    x = g.any(lambda one: g.is_float(one) and g.traits[one].exact and g.traits[one].zeros)
    if x is None:
        return None
    exponent = g.choose([2.0, 0.5, -0.5, -1.0, 1.0, 0.0, 3.0, 1.5])
    rank = g.fact(x).rank
    meaning = _smooth(np.vectorize(_c_power, otypes=[np.float64]))
    return g.grow(binary.Pow(), [x, g.number(exponent, rank=rank)], meaning, Traits(exact=False, zeros=False))


def _c_power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.copysign(math.inf, base if exponent % 2 == 1 else 1.0)
    except ValueError:  # 0 to a negative power, and roots of negative numbers
        return math.nan if base else math.copysign(math.inf, base if exponent % 2 == 1 else 1.0)


def gelu(g: Garden) -> OutletId | None:
    """As PyTorch exports it, with the right constant or one that is a little off."""
    x = g.any(lambda one: g.is_float(one) and g.traits[one].tame)
    if x is None:
        return None
    rank, traits = g.fact(x).rank, Traits(exact=False, zeros=False, bound=g.traits[x].bound)
    root = g.choose([math.sqrt(2), math.sqrt(2), 1.414])
    inner = g.grow(binary.Div(), [x, g.number(root, rank=rank)], _plain(np.divide), traits)
    assert inner is not None  # shapes agree
    erf = np.vectorize(math.erf, otypes=[np.float64])
    gate = g.grow(elementwise.Erf(), [inner], _smooth(erf), traits)
    assert gate is not None  # as above
    gate = g.grow(binary.Add(), [gate, g.number(1, rank=rank)], _plain(np.add), traits)
    assert gate is not None  # as above
    product = g.grow(binary.Mul(), [x, gate], _plain(np.multiply), traits)
    assert product is not None  # as above
    return g.grow(binary.Mul(), [product, g.number(0.5, rank=rank)], _plain(np.multiply), traits)


def same(g: Garden) -> OutletId | None:
    """The tensor itself."""
    x = g.any()
    return None if x is None else g.grow(Identity(), [x], np.asarray, g.traits[x])


def again(g: Garden) -> OutletId | None:
    """The last operator once more."""
    if not g.oracle.steps:
        return None
    step = g.oracle.steps[-1]
    node = g.model.nodes[step.output.node]
    if node.inputs != list(step.inputs) or len(node.outputs) > 1:
        return None
    return g.grow(node.op, node.inputs, step.meaning, g.traits[step.output], sized=step.sized)


STEPS: Final = [
    *(exact_function, exact_function, smooth_function, with_constant, with_constant, with_constant, with_constant),
    *(of_two, of_two, comparison, cast, cast, power, gelu, same, again),
]
