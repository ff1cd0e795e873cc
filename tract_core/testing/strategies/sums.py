"""Steps that bring several elements together: reductions, products of matrices, convolutions, pools, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic, product
from tract_core.model.axes import AxesMapping, letters
from tract_core.model.graph import OutletId
from tract_core.ops import binary
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Rsqrt
from tract_core.ops.norm import RmsNorm
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import Softmax
from tract_core.testing.strategies.arithmetic import larger, smaller
from tract_core.testing.strategies.garden import MAX_RANK, Array, Garden, Meaning, Traits, in_f64, largest

EXACT_SUM: Final = 2.0**22
"""f32 adds whole numbers without rounding, in any order, as long as no sum gets larger."""


def _summed(count: int, *traits: Traits) -> Traits:
    """Of a sum of ``count`` products of elements with these traits."""
    bound = count * math.prod(one.bound for one in traits)
    whole = all(one.whole for one in traits) and bound <= EXACT_SUM
    return Traits(exact=whole and all(one.exact for one in traits), zeros=False, whole=whole, bound=bound)


def _wide(function: Meaning) -> Meaning:
    return partial(in_f64, function)


_EXTREMES: Final[list[tuple[Reducer, Meaning, float]]] = [
    (Reducer.MAX, larger, -math.inf),
    (Reducer.MIN, smaller, math.inf),
]


def _extreme(join: Meaning, start: float, axes: Sequence[int], x: Array) -> Array:
    """Over axes, which keep size 1: element by element."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose([*axes, *kept]).reshape([math.prod(x.shape[axis] for axis in some) for some in (axes, kept)])
    found: Array = reduce(join, rows, np.full(rows.shape[1:], start, x.dtype))
    return found.astype(x.dtype).reshape([1 if axis in axes else size for axis, size in enumerate(x.shape)])


def reduce_float(g: Garden) -> OutletId | None:
    """Sums, mean squares and extremes along one axis or two."""
    x = g.any(g.is_summable)
    if x is None:
        return None
    axes = tuple(sorted({g.axis(x), g.axis(x)}))
    traits = g.traits[x]
    if g.chance(2):
        reducer, function, start = g.choose(_EXTREMES)
        found = replace(traits, whole=False, bound=math.inf)  # of nothing, an extreme is infinite
        return g.grow(Reduce(axes, reducer), [x], partial(_extreme, function, start, axes), found)
    count = largest(product(g.fact(x).shape[axis] for axis in axes))
    if g.chance(3):
        op = Reduce(axes, Reducer.MEAN_OF_SQUARES)
        found = Traits(exact=False, zeros=False, bound=math.inf)  # of nothing, not a number
        return g.grow(op, [x], _wide(partial(_mean_of_squares, axes)), found)
    meaning = _wide(partial(np.sum, axis=axes, keepdims=True))
    return g.grow(Reduce(axes, Reducer.SUM), [x], meaning, _summed(count, traits))


def place_of_extreme(g: Garden) -> OutletId | None:
    """Where the largest of exact numbers is."""
    x = g.any(lambda one: g.is_exact(one) and g.has_axis(one))
    if x is None:
        return None
    axis = g.axis(x)
    reducer, function = g.choose([(Reducer.ARG_MAX_FIRST, np.argmax), (Reducer.ARG_MIN_FIRST, np.argmin)])
    return g.grow(Reduce((axis,), reducer), [x], partial(function, axis=axis, keepdims=True), Traits(whole=True))


def reduce_integer(g: Garden) -> OutletId | None:
    """Sums and products that wrap around, and extremes."""
    x = g.any(lambda one: g.kind(one).is_integer() and g.has_axis(one))
    if x is None:
        return None
    axis = g.axis(x)
    kind = g.kind(x).numpy
    limits = np.iinfo(kind)
    table: list[tuple[Reducer, Meaning]] = [
        (Reducer.SUM, partial(np.sum, axis=axis, keepdims=True, dtype=kind)),
        (Reducer.PROD, partial(np.prod, axis=axis, keepdims=True, dtype=kind)),
        (Reducer.MAX, partial(np.max, axis=axis, keepdims=True, initial=limits.min)),
        (Reducer.MIN, partial(np.min, axis=axis, keepdims=True, initial=limits.max)),
    ]
    reducer, function = g.choose(table)
    return g.grow(Reduce((axis,), reducer), [x], function, Traits(whole=True))


def along_axis(g: Garden) -> OutletId | None:
    """Softmax, running sums, root mean squares."""
    x = g.any(g.is_summable)
    if x is None:
        return None
    axis = g.axis(x)
    traits = g.traits[x]
    count = max(1, largest(g.fact(x).shape[axis]))
    one, smooth = (
        Traits(exact=False, zeros=False, bound=1),
        Traits(exact=False, zeros=False, bound=10 * math.sqrt(count)),
    )
    options: list[tuple[Any, Meaning, Traits]] = [
        (Softmax((axis,)), partial(_softmax, axis), one),
        (CumSum(axis), partial(np.cumsum, axis=axis), _summed(count, traits)),
        (RmsNorm(axis, 1e-2), partial(_rms, axis), smooth),
    ]
    op, function, found = g.choose(options)
    return g.grow(op, [x], _wide(function), found)


def _softmax(axis: int, x: Array) -> Array:
    powers = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=axis, keepdims=True)


def _inverse_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _mean_of_squares(axes: tuple[int, ...], x: Array) -> Array:
    return np.sum(np.square(x), axis=axes, keepdims=True) / np.float64(math.prod(x.shape[axis] for axis in axes))


def _rms(axis: int, x: Array) -> Array:
    return x / np.sqrt(_mean_of_squares((axis,), x) + np.float32(1e-2))


def spelled_norm(g: Garden) -> OutletId | None:
    """A root mean square norm in single operators."""
    x = g.any(lambda one: g.is_summable(one) and not is_symbolic(_last(g, one)) and _last(g, one) != 0)
    if x is None:
        return None
    rank = g.fact(x).rank
    axis, smooth = rank - 1, Traits(exact=False, zeros=False, bound=1e9)
    square = g.grow(binary.Mul(), [x, x], np.multiply, smooth)
    assert square is not None  # shapes agree
    total = g.grow(Reduce((axis,), Reducer.SUM), [square], _wide(partial(np.sum, axis=axis, keepdims=True)), smooth)
    assert total is not None  # as above
    mean = g.grow(binary.Div(), [total, g.number(int(_last(g, x)), rank=rank)], np.divide, smooth)
    assert mean is not None  # as above
    safe = g.grow(binary.Add(), [mean, g.number(1e-2, rank=rank)], np.add, smooth)
    assert safe is not None  # as above
    root = g.grow(Rsqrt(), [safe], _inverse_root, smooth)
    assert root is not None  # as above
    return g.grow(binary.Mul(), [x, root], np.multiply, Traits(exact=False, zeros=False, bound=100))


def _last(g: Garden, outlet: OutletId) -> Dim:
    return g.fact(outlet).shape[-1]


WEIGHTS: Final = (-1.0, 0.0, 1.0, 2.0, 3.0)
FRACTIONS: Final = (0.5, -0.25, 1.0, 0.1)


def _weights(g: Garden, shape: Sequence[int]) -> tuple[OutletId, Traits]:
    whole = g.chance(2)
    held = g.numbers(shape, WEIGHTS if whole else FRACTIONS)
    return held, Traits(whole=whole, bound=3)


def matmul(g: Garden) -> OutletId | None:
    """A product with constant weights along one axis, whose size is theirs or a symbol that must be."""
    x = g.any(g.is_summable)
    if x is None:
        return None
    axis, fact = g.axis(x), g.fact(x)
    size = fact.shape[axis]
    count = 3 if is_symbolic(size) else int(size)
    names = "".join(letter for letter, _ in zip(letters(), range(fact.rank), strict=False))
    output = g.choose([names.replace(names[axis], "z"), "z" + names.replace(names[axis], "")])
    weights, traits = _weights(g, [count, g.integer(1, 3)])
    mapping = AxesMapping((names, names[axis] + "z"), (output,))
    found = _summed(count, g.traits[x], traits)
    return g.grow(EinSum(mapping, DatumType.F32), [x, weights], _einsum(mapping), found)


def _einsum(mapping: AxesMapping) -> Meaning:
    """Sizes of one name are equal; no axis of size 1 is stretched but one that is 1 in the model."""
    expression = ",".join(mapping.inputs) + "->" + mapping.outputs[0]

    def meaning(*arrays: Array) -> Array:
        found: dict[str, int] = {}
        for term, array in zip(mapping.inputs, arrays, strict=True):
            for name, size in zip(term, array.shape, strict=True):
                if found.setdefault(name, size) != size:
                    raise ValueError(f"{name} is {found[name]} and {size}")
        return in_f64(partial(np.einsum, expression), *arrays)

    return meaning


def inner_product(g: Garden) -> OutletId | None:
    """A product of two tensors over their last axes, which are equal, or must be."""
    a = g.any(lambda one: g.is_summable(one) and g.fact(one).rank < 4)
    if a is None:
        return None
    b = g.any(
        lambda one: g.is_summable(one) and g.fact(one).rank + g.fact(a).rank <= 2 + MAX_RANK and _may_equal(g, a, one)
    )
    if b is None:
        return None
    left, right = "abcd"[: g.fact(a).rank - 1], "efghi"[: g.fact(b).rank - 1]
    mapping = AxesMapping((left + "k", right + "k"), (left + right,))
    count = max(1, largest(_last(g, a)), largest(_last(g, b)))
    found = _summed(count, g.traits[a], g.traits[b])
    return g.grow(EinSum(mapping, DatumType.F32), [a, b], _einsum(mapping), found)


def _may_equal(g: Garden, a: OutletId, b: OutletId) -> bool:
    sizes = _last(g, a), _last(g, b)
    return sizes[0] == sizes[1] or (any(map(is_symbolic, sizes)) and 1 not in sizes)


def _is_image(g: Garden, outlet: OutletId) -> bool:
    return g.is_summable(outlet) and g.fact(outlet).rank in (3, 4)


@dataclass(frozen=True, slots=True)
class _Steps:
    """How windows go over an axis."""

    stride: int = 1
    dilation: int = 1
    pad: int = 0
    fill: float = 0.0


_WINDOWS: Final = [
    *[(1, _Steps()), (1, _Steps()), (1, _Steps(stride=2)), (3, _Steps(pad=1)), (3, _Steps(stride=2, pad=1))],
    (2, _Steps(dilation=2)),
]
"""Sizes of kernels, and how they go over an axis."""


def conv(g: Garden) -> OutletId | None:
    """Over one spatial axis or two; channels that are a symbol must be as many as the kernel wants."""
    x = g.any(lambda one: _is_image(g, one))
    if x is None:
        return None
    fact = g.fact(x)
    spatial = fact.rank - 2
    size, steps = g.choose(_WINDOWS)
    channels = 3 if is_symbolic(fact.shape[1]) else int(fact.shape[1])
    group = g.choose([1, channels]) if channels else 1
    to = g.integer(1, 2) * group
    pool = PoolSpec(
        DataFormat.NCHW,
        (size,) * spatial,
        Explicit((steps.pad,) * spatial, (steps.pad,) * spatial),
        (steps.dilation,) * spatial,
        (steps.stride,) * spatial,
    )
    weights, traits = _weights(g, [to, channels // group, *[size] * spatial])
    bias = g.numbers([to] if g.chance(2) else [], WEIGHTS)
    count = channels // group * size**spatial + 1
    found = _summed(count, replace(g.traits[x], bound=max(1.0, g.traits[x].bound)), traits)
    return g.grow(Conv(pool, group=group), [x, weights, bias], _wide(partial(_convolved, steps, group)), found)


def _convolved(steps: _Steps, group: int, x: Array, kernel: Array, bias: Array) -> Array:
    outputs, inputs = kernel.shape[:2]
    if x.shape[1] != inputs * group:
        raise ValueError(f"{x.shape[1]} channels, {inputs * group} wanted")
    read = _windows(x, kernel.shape[2:], steps)
    result = np.zeros((x.shape[0], outputs, *read.shape[2 : x.ndim]))
    for out in range(outputs):
        first = out // (outputs // group) * inputs
        axes = list(range(x.ndim, read.ndim))
        products = read[:, first : first + inputs] * kernel[out].reshape(
            1, inputs, *(1,) * (x.ndim - 2), *kernel.shape[2:]
        )
        result[:, out] = products.sum(axis=(1, *axes))
    return result + bias.reshape(-1, *(1,) * (x.ndim - 2))


def _windows(x: Array, kernel: Sequence[int], steps: _Steps) -> Array:
    """(batch, channels, places, window): what each window reads, in axes behind those of the places."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(steps.pad, steps.pad)] * rank], constant_values=steps.fill)
    fields = [(size - 1) * steps.dilation + 1 for size in kernel]
    counts = [(size - field + steps.stride) // steps.stride for size, field in zip(x.shape[2:], fields, strict=True)]
    if any(count < 0 for count in counts):
        raise ValueError(f"a window of {fields} in {x.shape[2:]}")
    places = np.indices(counts).reshape(rank, *counts, *(1,) * rank) * steps.stride
    offsets = np.indices(kernel).reshape(rank, *(1,) * rank, *kernel) * steps.dilation
    return x[(slice(None), slice(None), *(places + offsets))]


def scaled(g: Garden) -> OutletId | None:
    """The last tensor times, divided by, plus or minus a number per channel, as batch normalisation is."""
    x = g.pool[-1]
    fact = g.fact(x)
    if not _is_image(g, x) or is_symbolic(fact.shape[1]):
        return None
    op, function = g.choose(
        [(binary.Mul(), np.multiply), (binary.Div(), np.divide), (binary.Add(), np.add), (binary.Sub(), np.subtract)]
    )
    numbers = g.numbers([int(fact.shape[1]), *(1,) * (fact.rank - 2)][: fact.rank - 1], (1.0, 2.0, 9.0, 0.5, 41.0, 3.0))
    shaped = g.constant(g.oracle.constants[numbers][np.newaxis])
    traits = g.traits[x]
    whole = traits.whole and not isinstance(op, binary.Div) and bool(np.all(g.oracle.constants[shaped] % 1 == 0))
    bound = traits.bound * 41 if isinstance(op, binary.Mul) else traits.bound * 2 + 41
    return g.grow(op, [x, shaped], function, replace(traits, whole=whole, bound=bound))


def pool(g: Garden) -> OutletId | None:
    """The largest element, or the mean, of windows of three."""
    x = g.any(lambda one: _is_image(g, one))
    if x is None:
        return None
    spatial = g.fact(x).rank - 2
    pad = g.integer(0, 1)
    spec = PoolSpec(DataFormat.NCHW, (3,) * spatial, Explicit((pad,) * spatial, (pad,) * spatial))
    traits = g.traits[x]
    if g.chance(2):
        # Padding is never the largest; a window always reads at least one element of the input.
        steps = _Steps(pad=pad, fill=-np.inf)
        return g.grow(
            MaxPool(spec),
            [x],
            partial(_largest, steps),
            replace(traits, whole=False, bound=math.inf),
        )
    total = _summed(3**spatial, traits)
    return g.grow(SumPool(spec, normalize=False), [x], partial(_reduced, np.sum, _Steps(pad=pad)), total)


def _reduced(function: Meaning, steps: _Steps, x: Array) -> Array:
    rank = x.ndim - 2
    read = _windows(x.astype(np.float64), (3,) * rank, steps)
    return function(read, axis=tuple(range(2 + rank, 2 + 2 * rank))).astype(x.dtype)


def _largest(steps: _Steps, x: Array) -> Array:
    rank = x.ndim - 2
    read = _windows(x, (3,) * rank, steps)
    axes = range(2 + rank, 2 + 2 * rank)
    return _extreme(larger, -math.inf, axes, read).reshape(read.shape[: 2 + rank])


STEPS: Final = [
    *(reduce_float, reduce_float, reduce_integer, place_of_extreme, along_axis, spelled_norm),
    *(matmul, matmul, inner_product, conv, conv, conv, scaled, scaled, scaled, pool),
]
