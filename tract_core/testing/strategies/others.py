"""Steps that frontends wire as several operators, and rarer operators that rules look for."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.model.axes import AxesMapping, letters
from tract_core.model.graph import OutletId
from tract_core.ops import binary, elementwise
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum
from tract_core.ops.iff import Iff
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.resize import Coordinates, NearestMode, Resize, Sampling, Scales
from tract_core.ops.slice import wire_slice
from tract_core.testing.strategies.arithmetic import SPECIAL
from tract_core.testing.strategies.garden import Array, Garden, Traits, in_f32, in_f64


def python_slice(g: Garden) -> OutletId | None:
    """As Python means it: bounds that are negative count from the end, and bounds outside stop at the ends."""
    x = g.any(g.has_axis)
    if x is None:
        return None
    axis = g.axis(x)
    start, end = (g.choose([None, *range(-4, 5)]) for _ in range(2))
    step = g.choose([1, 1, 1, 2, -1, -2])
    found = g.wire(lambda model, name: [wire_slice(model, name, x, axis, start=start, end=end, step=step)])
    if found is None or found[0] in g.traits:
        return None
    part = (slice(None),) * axis + (slice(start, end, step),)
    return g.note(found[0], [x], operator.itemgetter(part), g.traits[x])


def repeat(g: Garden) -> OutletId | None:
    """Resized to the nearest element, by a whole factor."""
    x = g.any(lambda one: g.has_axis(one) and g.kind(one).is_number())
    if x is None:
        return None
    axis, factor = g.axis(x), g.integer(1, 3)
    spelled = g.choose(
        [
            (Coordinates.ASYMMETRIC, NearestMode.FLOOR),
            (Coordinates.HALF_PIXEL, NearestMode.ROUND_PREFER_FLOOR),
            (Coordinates.HALF_PIXEL, NearestMode.ROUND_PREFER_CEIL),
        ]
    )
    op = Resize((axis,), Scales((float(factor),)), Sampling(Interpolator.NEAREST, *spelled))
    return g.grow(op, [x], partial(np.repeat, repeats=factor, axis=axis), g.traits[x])


_ON_BYTES: Final[list[tuple[Any, Callable[[Array], Array]]]] = [
    (elementwise.Neg(), np.negative),
    (elementwise.Abs(), np.abs),
    (elementwise.Square(), np.square),
]


def through_floats(g: Garden) -> OutletId | None:
    """Bytes as the numbers that they stand for, a function of them, and bytes again."""
    x = g.any(lambda one: g.kind(one) in (DatumType.U8, DatumType.I8))
    if x is None:
        return None
    kind = g.kind(x)
    scales = [np.float32(g.choose([0.5, 0.1, 1.0, 3.0])) for _ in range(2)]
    zeros = [np.array(g.choose([0, 1, 7]), kind.numpy) for _ in range(2)]
    scale, zero = g.constant(np.array(scales[0])), g.constant(zeros[0])
    wide = g.grow(DequantizeLinear(DatumType.F32), [x, scale, zero], _dequantized, Traits())
    if wide is None:
        return None
    op, function = g.choose(_ON_BYTES)
    wide = g.grow(op, [wide], function, Traits())
    if wide is None:
        return None  # the sizes cannot be, which comes out where they are looked at again
    scale, zero = g.constant(np.array(scales[1])), g.constant(zeros[1])
    return g.grow(QuantizeLinear(kind), [wide, scale, zero], _quantized, Traits(whole=True))


def _dequantized(x: Array, scale: Array, zero: Array) -> Array:
    return (x.astype(np.int64) - int(zero)).astype(np.float32) * scale


def _quantized(x: Array, scale: Array, zero: Array) -> Array:
    limits = np.iinfo(zero.dtype)
    steps = np.round((x / scale).astype(np.float64)) + int(zero)
    return np.clip(steps, limits.min, limits.max).astype(zero.dtype)


def known_choice(g: Garden) -> OutletId | None:
    """Between two tensors that stretch each other, by a condition that is part of the model."""
    a = g.any(lambda one: g.kind(one).is_number())
    if a is None:
        return None
    rank = g.fact(a).rank
    b = g.any(lambda one: g.kind(one) is g.kind(a) and g.fact(one).rank == rank)
    assert b is not None  # a itself is there
    condition = g.constant(np.full((1,) * rank, g.chance(2)))
    both = g.traits[a], g.traits[b]
    traits = Traits(*(all(getattr(one, name) for one in both) for name in ("exact", "zeros", "whole")))
    traits = replace(traits, bound=max(one.bound for one in both))
    return g.grow(Iff(), [condition, a, b], np.where, traits)


def einsum_of_one(g: Garden) -> OutletId | None:
    """Axes moved, and some summed, of a single tensor."""
    x = g.any(g.is_summable)
    if x is None:
        return None
    shape = g.fact(x).shape
    names = [letter for letter, _ in zip(letters(), shape, strict=False)]
    kept = [name for name, size in zip(names, shape, strict=True) if size != 1 or g.chance(2)]
    g.random.shuffle(kept)
    term, output = "".join(names), "".join(kept)
    traits = replace(g.traits[x], zeros=False)
    mapping = AxesMapping((term,), (output,))
    return g.grow(EinSum(mapping, DatumType.F32), [x], partial(in_f64, partial(np.einsum, f"{term}->{output}")), traits)


def reciprocal(g: Garden) -> OutletId | None:
    """A number divided by the elements, and roots of them."""
    x = g.any(lambda one: g.is_float(one) and g.traits[one].exact and g.traits[one].zeros)
    if x is None:
        return None
    number = g.number(g.choose([1.0, 1.0, -1.0, g.choose(SPECIAL)]), rank=g.fact(x).rank)
    found = g.grow(binary.Div(), [number, x], np.divide, replace(g.traits[x], whole=False, bound=math.inf))
    if found is None or g.chance(2):
        return found
    root = g.grow(elementwise.Sqrt(), [found], np.sqrt, Traits())
    return None if root is None else g.grow(elementwise.Recip(), [root], partial(np.divide, np.float32(1)), Traits())


def factors(g: Garden) -> OutletId | None:
    """Two constants, one after the other: products, or a quotient and a product."""
    x = g.any(lambda one: g.is_exact(one) and g.traits[one].zeros)
    if x is None:
        return None
    kind, rank = g.kind(x), g.fact(x).rank
    numbers = (2.0, -1.0, 1.0, 4.0, 0.5, 3.0, 41.0, 0.1, 1e-30, 3e38) if kind.is_float() else (2, 3, 4, 1, 100)
    found: OutletId | None = x
    for count in range(2):
        divided = count == 0 and g.chance(2) and kind.is_float()
        op, function = (binary.Div(), np.divide) if divided else (binary.Mul(), np.multiply)
        assert found is not None  # numbers of one element fit
        found = g.grow(op, [found, g.number(g.choose(numbers), kind, rank)], partial(in_f32, function), Traits())
    return found


def product_with_joined(g: Garden) -> OutletId | None:
    """A product of weights with two tensors that are laid one after the other, along the axis that is summed over."""
    x = g.any(lambda one: g.is_summable(one) and not is_symbolic(g.fact(one).shape[-1]))
    if x is None:
        return None
    fact = g.fact(x)
    size, axis, traits = 2 * int(fact.shape[-1]), fact.rank - 1, g.traits[x]
    joined = g.grow(TypedConcat(axis), [x, x], _joined, traits)
    if joined is None:  # sizes of the model contradict each other
        return None
    term = "".join(letter for letter, _ in zip(letters(), fact.shape, strict=False))
    mapping = AxesMapping((term, term[-1] + "z"), (term[:-1] + "z",))
    weights = g.numbers([size, 2], (1.0, 2.0, -1.0, 3.0))
    whole = traits.whole and traits.exact and size * traits.bound < 1 << 20
    found = replace(traits, exact=whole, zeros=False, whole=whole, bound=3 * size * traits.bound)
    meaning = partial(in_f64, partial(np.einsum, f"{mapping.inputs[0]},{mapping.inputs[1]}->{mapping.outputs[0]}"))
    return g.grow(EinSum(mapping, DatumType.F32), [joined, weights], meaning, found)


def _joined(a: Array, b: Array) -> Array:
    return np.concatenate([a, b], -1)


STEPS: Final = [
    factors,
    product_with_joined,
    python_slice,
    python_slice,
    repeat,
    through_floats,
    known_choice,
    einsum_of_one,
    reciprocal,
]
