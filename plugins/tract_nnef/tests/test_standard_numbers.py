"""The standard's operators and fragments that compute, against NumPy in 64 bits."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import pytest
from statements import graph, read, run

from tract_core.data import DatumType
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.same import same_model
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.ops.norm import wire_batch_norm

X = np.random.default_rng(1).uniform(-3, 3, (2, 3, 4)).astype(np.float32)
Y = np.random.default_rng(2).uniform(-3, 3, (2, 3, 4)).astype(np.float32)
CHANNELS = np.random.default_rng(3).uniform(0.5, 2, (1, 3)).astype(np.float32)
NONE = np.zeros((2, 0), np.float32)
WHOLE = np.arange(-3, 4)
BIG = np.array([-200.0, -30.0, -0.0, 0.0, 30.0, 200.0], np.float32)
ERF = np.vectorize(erf, otypes=[np.float64])


def soft(x, axes):
    powers = np.exp(x - x.max(axes, keepdims=True))
    return powers / powers.sum(axes, keepdims=True)


def elu(x, alpha):
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def half_away(x):
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def linear(x, low, high, bits, *, signed, symmetric):
    steps = 2.0**bits - 1 - (signed and symmetric)
    lowest = 2.0 ** (bits - 1) - symmetric if signed else 0.0
    stored = half_away((np.clip(x, low, high) - low) / (high - low) * steps) - lowest
    return (stored + lowest) / steps * (high - low) + low


def zero_point(x, zero, scale, lowest, highest):
    return (np.clip(half_away(x / scale) + zero, lowest, highest) - zero) * scale


def logarithmic(x, highest, bits):
    top = np.ceil(np.log2(highest))
    return np.sign(x) * 2.0 ** half_away(np.clip(np.log2(np.abs(x)), top - (2**bits - 1), top))


def moments(x, axes):
    return x.mean(axes, keepdims=True), x.var(axes, keepdims=True)


# statements, inputs, and the function of them in 64 bits
CASES = [
    ("y = a + b;", [X, Y], lambda x, y: x + y),
    ("y = a - b * 2.0;", [X, Y], lambda x, y: x - y * 2),
    ("y = 1.0 / a;", [X], lambda x: 1 / x),
    ("y = max(a, 0);", [X], lambda x: np.maximum(x, 0)),
    ("y = min(a, b);", [X, Y[:, 0, 0]], lambda x, y: np.minimum(x, y[:, None, None])),
    ("y = a * b;", [X, Y[:, :, 0]], lambda x, y: x * y[:, :, None]),
    ("y = a + 1;", [WHOLE], lambda x: x + 1),
    ("y = a * a - 2.0;", [WHOLE], lambda x: x * x - 2),
    ("y = a + [[1.0, 2.0, 3.0]];", [X[..., 0]], lambda x: x + np.array([1, 2, 3])),
    ("y = -a;", [X], lambda x: -x),
    ("y = (a < b) && !(a > 0.0) || a == b;", [X, Y], lambda x, y: (x < y) & ~(x > 0)),
    ("y = a >= 0.0;", [BIG], lambda x: x >= 0),
    ("y = a <= 0.0;", [BIG], lambda x: x <= 0),
    ("y = a != 0.0;", [BIG], lambda x: x != 0),
    ("y = abs(a) ^ 0.5;", [X], lambda x: np.abs(x) ** 0.5),
    ("y = pow(a, 2);", [X], lambda x: x**2),
    ("y = sqr(a);", [X], lambda x: x**2),
    ("y = rsqr(a);", [X], lambda x: x**-2),
    ("y = sqrt(abs(a));", [X], lambda x: np.sqrt(np.abs(x))),
    ("y = rsqrt(abs(a));", [X], lambda x: 1 / np.sqrt(np.abs(x))),
    ("y = rcp(a);", [X], lambda x: 1 / x),
    ("y = log2(abs(a));", [X], lambda x: np.log2(np.abs(x))),
    ("y = log(exp(a));", [X], lambda x: x),
    ("y = sin(a) + cos(a) * tan(a);", [X], lambda x: np.sin(x) + np.cos(x) * np.tan(x)),
    ("y = sinh(a) + cosh(a) * tanh(a);", [X], lambda x: np.sinh(x) + np.cosh(x) * np.tanh(x)),
    ("y = asin(a / 4.0) + acos(a / 4.0) * atan(a);", [X], lambda x: np.arcsin(x / 4) + np.arccos(x / 4) * np.arctan(x)),
    (
        "y = asinh(a) + acosh(abs(a) + 1.0) * atanh(a / 4.0);",
        [X],
        lambda x: np.arcsinh(x) + np.arccosh(np.abs(x) + 1) * np.arctanh(x / 4),
    ),
    ("y = floor(a) + ceil(a) * 10.0;", [X], lambda x: np.floor(x) + np.ceil(x) * 10),
    ("y = round(a);", [np.array([-1.5, -0.5, 0.5, 1.5, 2.5, 0.49], np.float32)], half_away),
    ("y = sign(a);", [BIG], np.sign),
    ("y = clamp(a, -1.0, b);", [X, Y], lambda x, y: np.maximum(np.minimum(x, y), -1)),
    ("y = clamp(a, -1, 1);", [X], lambda x: np.clip(x, -1, 1)),
    ("y = relu(a);", [BIG], lambda x: np.maximum(x, 0)),
    ("y = sigmoid(a);", [X], lambda x: 1 / (1 + np.exp(-x))),
    ("y = softabs(a, epsilon = 0.1);", [X], lambda x: np.sqrt(x * x + np.float32(0.1))),
    ("y = softplus(a);", [BIG], lambda x: np.logaddexp(x, 0)),
    ("y = elu(a);", [BIG], lambda x: elu(x, 1)),
    ("y = elu(a, alpha = 0.5);", [X], lambda x: elu(x, 0.5)),
    ("y = selu(a);", [X], lambda x: 1.05070102 * elu(x, 1.67326319)),
    ("y = gelu(a);", [X], lambda x: x * (1 + ERF(x / sqrt(2))) / 2),
    ("y = silu(a);", [X], lambda x: x / (1 + np.exp(-x))),
    ("y = prelu(a, b);", [X, CHANNELS], lambda x, c: np.where(x < 0, x * c[..., None], x)),
    ("y = prelu(a, alpha = 0.25);", [X], lambda x: np.where(x < 0, x * 0.25, x)),
    ("y = leaky_relu(a, alpha = 0.25);", [X], lambda x: np.where(x < 0, x * 0.25, x)),
    ("y = softmax(a);", [X], lambda x: soft(x, (1,))),
    ("y = softmax(a, axes = [1, 2]);", [X], lambda x: soft(x, (1, 2))),
    ("y = tract_core_log_softmax(a, axes = [2]);", [X], lambda x: np.log(soft(x, (2,)))),
    ("y = sum_reduce(a, axes = [1]);", [X], lambda x: x.sum(1, keepdims=True)),
    ("y = sum_reduce(a, axes = []);", [X], lambda x: x),
    ("y = sum_reduce(a, axes = [1]);", [NONE], lambda x: x.sum(1, keepdims=True)),
    ("y = sum_reduce(a, axes = [2, 0], normalize = true);", [X], lambda x: x.mean((0, 2), keepdims=True)),
    ("y = mean_reduce(a, axes = [1]);", [X], lambda x: x.mean(1, keepdims=True)),
    ("y = max_reduce(a, axes = [0, 1]);", [X], lambda x: x.max((0, 1), keepdims=True)),
    ("y = min_reduce(a, axes = [2]);", [X], lambda x: x.min(2, keepdims=True)),
    ("y = argmax_reduce(a, axes = [1]);", [X], lambda x: x.argmax(1)[:, None]),
    ("y = argmin_reduce(a, axes = [2]);", [X], lambda x: x.argmin(2)[:, :, None]),
    ("y = argmax_reduce(a, axes = [0]);", [np.array([1.0, 3, 3], np.float32)], lambda _: np.array([1])),
    ("y = tract_core_argmax_reduce_last(a, axes = [0]);", [np.array([1.0, 3, 3], np.float32)], lambda _: np.array([2])),
    ("y = tract_core_argmin_reduce_last(a, axes = [0]);", [np.array([1.0, 1, 3], np.float32)], lambda _: np.array([1])),
    ("y = tract_core_product_reduce(a, axes = [0, 1]);", [X], lambda x: x.prod((0, 1), keepdims=True)),
    ("y = any_reduce(a > 1.0, axes = [1]);", [X], lambda x: (x > 1).any(1, keepdims=True)),
    ("y = all_reduce(a > -2.0, axes = [1, 2]);", [X], lambda x: (x > -2).all((1, 2), keepdims=True)),
    ("m, v = moments(a, axes = [1, 2]); y = m;", [X], lambda x: moments(x, (1, 2))[0]),
    ("m, v = moments(a, axes = [0]); y = v;", [X], lambda x: moments(x, (0,))[1]),
    ("y = l1_normalization(a, axes = [1], bias = 0.5);", [X], lambda x: x / (np.abs(x).sum(1, keepdims=True) + 0.5)),
    ("y = l1_normalization(a, axes = [1], epsilon = 90.0);", [X], lambda x: x / 90),
    ("y = l2_normalization(a, axes = [1, 2]);", [X], lambda x: x / np.sqrt((x * x).sum((1, 2), keepdims=True))),
    (
        "y = l2_normalization(a, axes = [1], bias = 0.5);",
        [X],
        lambda x: x / (np.sqrt((x * x).sum(1, keepdims=True)) + 0.5),
    ),
    (
        "y = batch_normalization(a, b, c, b, c, 0.01);",
        [X, CHANNELS, 2 * CHANNELS],
        lambda x, m, v: m[..., None] + v[..., None] * (x - m[..., None]) / np.sqrt(v[..., None] + 0.01),
    ),
    (
        "y = batch_normalization(a, mean = 0.5, variance = 2.0, offset = 1.0, scale = 3.0, epsilon = 0.0);",
        [X],
        lambda x: 1 + 3 * (x - 0.5) / np.sqrt(2),
    ),
    (
        "y = batch_normalization(a, b, 2.0, 1.0, b, 0.01);",
        [X, Y[:, :1, :1]],
        lambda x, m: 1 + m * (x - m) / np.sqrt(2.01),
    ),
    (
        "y = min_max_linear_quantize(a, -2.0, 2.5, 8, true, true);",
        [X],
        lambda x: linear(x, -2, 2.5, 8, signed=True, symmetric=True),
    ),
    (
        "y = min_max_linear_quantize(a, min = -2.0, max = 2.5, bits = 3, signed = false, symmetric = false);",
        [X],
        lambda x: linear(x, -2, 2.5, 3, signed=False, symmetric=False),
    ),
    ("y = linear_quantize(a, -2.0, 2.5, 4);", [X], lambda x: linear(x, -2, 2.5, 4, signed=False, symmetric=False)),
    ("y = zero_point_linear_quantize(a, 3, 0.25, 4, true, false);", [X], lambda x: zero_point(x, 3, 0.25, -8, 7)),
    ("y = zero_point_linear_quantize(a, -3, 0.25, 4, true, true);", [X], lambda x: zero_point(x, -3, 0.25, -7, 7)),
    ("y = zero_point_linear_quantize(a, 3, 0.25, 4, false, false);", [X], lambda x: zero_point(x, 3, 0.25, 0, 15)),
    ("y = logarithmic_quantize(a, 2.5, 3);", [X], lambda x: logarithmic(x, 2.5, 3)),
]


@pytest.mark.parametrize(("statements", "inputs", "function"), CASES, ids=[case[0] for case in CASES])
def test_numbers_are_those_of_64_bits(statements, inputs, function) -> None:
    expected = np.asarray(function(*(x.astype(np.float64) if x.dtype == np.float32 else x for x in inputs)))
    for symbolic in (False, True) if len(inputs) == 1 else (False,):  # nothing says that symbols of two are equal
        (found,) = run(statements, *inputs, symbolic=symbolic)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-5, atol=1e-6)


def test_batch_normalization_by_constants_is_a_product_and_a_sum() -> None:
    x = np.zeros((2, 3, 4), np.float32)
    parts = {name: CHANNELS * (place + 1) for place, name in enumerate(["mean", "variance", "offset", "scale"])}
    named = "".join(f"{name} = variable(label = '{name}', shape = [1, 3]);" for name in parts)
    text = graph(f"{named} y = batch_normalization(a, mean, variance, offset, scale, 0.01);", [x])
    other = TypedModel()
    (outlet,) = [other.add_source("a", TypedFact.of(DatumType.F32, x.shape))]
    mean, variance, bias, scale = (other.add_const(name, part.reshape(3)) for name, part in parts.items())
    result = wire_batch_norm(other, "y", outlet, scale=scale, bias=bias, mean=mean, variance=variance, eps=0.01)
    other.set_outputs([result])
    found = read(text, parts).declutter()
    assert same_model(found, other.declutter())
    assert [node.op.name for node in found.nodes if not isinstance(node.op, Const | TypedSource)] == ["Mul", "Add"]
