"""Mixtures of experts, against ONNX Runtime and, where it has them on GPUs only, NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import expected, run
from onnx_single import MICROSOFT, feeds, node_model, outputs_of, refused

from tract_core.errors import CorruptModel, FactError, Unsupported

EXPERTS, HIDDEN, INNER, CHOSEN = 4, 32, 16, 2


def f32(*shape, seed=0):
    return (np.random.default_rng([seed, *shape]).normal(size=shape) * 0.5).astype(np.float32)


def inputs_of(rows=5, *, wide=1, bias=True, third=False):
    """Of MoE: rows, scores of the experts, and the layers."""
    biases = [f32(EXPERTS, wide * INNER, seed=1), f32(EXPERTS, HIDDEN, seed=2), f32(EXPERTS, INNER, seed=3)]
    biases = biases if bias else [None] * 3
    layers = [f32(EXPERTS, wide * INNER, HIDDEN), biases[0], f32(EXPERTS, HIDDEN, INNER), biases[1]]
    extra = [f32(EXPERTS, INNER, HIDDEN, seed=4), biases[2]] if third else []
    return [f32(rows, HIDDEN, seed=5), 4 * f32(rows, EXPERTS, seed=6), *layers, *extra]


def softmax(x):
    powers = np.exp(np.float64(x) - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


def mixed(inputs, hidden, *, shares=None, normalise=False):
    """The definition. ``hidden``: (first layer, third layer or None) -> what the second layer is given."""
    x, router, w1, b1, w2, b2, w3, b3 = [*inputs, None, None][:8]
    shares = softmax(router) if shares is None else np.float64(shares)
    result = np.zeros(x.shape)
    for row, scores in enumerate(router):
        best = np.argsort(-scores, kind="stable")[:CHOSEN]
        weights = shares[row, best] / (shares[row, best].sum() if normalise else 1)
        for weight, one in zip(weights, best, strict=True):
            first = np.float64(w1[one]) @ x[row] + (0 if b1 is None else b1[one])
            third = None if w3 is None else np.float64(w3[one]) @ x[row] + (0 if b3 is None else b3[one])
            result[row] += weight * (w2[one] @ hidden(first, third) + (0 if b2 is None else b2[one]))
    return result


def gives(wanted, op_type, inputs, *, fixed=(), relative=2e-5, **options):
    """With the batch as a number and as a symbol, as wired and decluttered."""
    for batch in (None, "N"):
        for declutter in (False, True):
            model = node_model(op_type, inputs, MICROSOFT, batch=batch, fixed=fixed, k=CHOSEN, **options)
            (found,) = run(model, feeds(inputs, fixed), declutter=declutter)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=relative * np.abs(wanted).max())


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity", "swiglu"])
@pytest.mark.parametrize("normalise", [0, 1])
def test_experts_as_onnxruntime_has_them(rows, activation, normalise):
    gated = activation == "swiglu"
    inputs = inputs_of(rows, wide=1 + gated, bias=rows != 2)
    options = {"activation_type": activation, "normalize_routing_weights": normalise}
    options |= (
        {"swiglu_fusion": 1, "activation_alpha": 1.3, "activation_beta": 0.7, "swiglu_limit": 0.6} if gated else {}
    )
    (wanted,) = expected(node_model("MoE", inputs, MICROSOFT, k=CHOSEN, **options), feeds(inputs))
    gives(wanted, "MoE", inputs, **options)


def test_gates_in_other_forms():
    inputs = inputs_of(wide=2)
    wanted = mixed(inputs, lambda y, _: silu(y[:INNER]) * y[INNER:])
    gives(wanted, "MoE", inputs, activation_type="swiglu", swiglu_fusion=2)
    inputs = inputs_of(third=True)
    wanted = mixed(inputs, lambda y, z: silu(y) * z, normalise=True)
    for activation in ("swiglu", "silu"):
        gives(wanted, "MoE", inputs, activation_type=activation, normalize_routing_weights=1)


def test_rows_of_several_sequences():
    inputs = inputs_of(6)
    (wanted,) = outputs_of("MoE", inputs, MICROSOFT, k=CHOSEN)
    inputs[0] = inputs[0].reshape(2, 3, HIDDEN)
    (found,) = outputs_of("MoE", inputs, MICROSOFT, k=CHOSEN)
    np.testing.assert_array_equal(found, wanted.reshape(2, 3, HIDDEN))


def spread(packed, bits, count):
    parts = [packed >> shift & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)[..., :count].astype(float)


def quantised(columns, depth, bits, block, zeros, *, seed=0):
    """Weights, scales, zero points, and what they stand for."""
    rng = np.random.default_rng([seed, columns, depth, bits, block])
    packed = rng.integers(0, 256, (EXPERTS, columns, depth * bits // 8), np.uint8)
    blocks = depth // block if block else 1
    scales = (rng.uniform(0.5, 1, (EXPERTS, columns, blocks)) / 2**bits).astype(np.float32)
    middle, zero = np.full((EXPERTS, columns, blocks), 2.0 ** (bits - 1)), None
    if zeros:
        each = blocks if block else columns
        shape = (EXPERTS, columns) if block else (EXPERTS,)
        zero = rng.integers(0, 256, (*shape, -(-each * bits // 8)), np.uint8)
        middle = spread(zero, bits, each).reshape(middle.shape)
    size = depth // blocks
    real = (spread(packed, bits, depth) - np.repeat(middle, size, 2)) * np.repeat(scales, size, 2)
    return packed, scales if block else scales[..., 0], zero, real


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("zeros", [False, True])
def test_experts_of_few_bits(bits, block, zeros):
    first, second = (
        quantised(2 * INNER, HIDDEN, bits, block, zeros),
        quantised(HIDDEN, INNER, bits, block, zeros, seed=1),
    )
    x, router, shares = f32(5, HIDDEN), 4 * f32(5, EXPERTS, seed=6), np.abs(f32(5, EXPERTS, seed=7))
    inputs = [x, router, *first[:2], None, *second[:2], *[None] * 4, first[2], second[2], None, None]
    fixed = [slot for slot, array in enumerate(inputs) if slot > 1 and array is not None]
    options = {"activation_type": "swiglu", "swiglu_fusion": 1, "expert_weight_bits": bits, "fixed": fixed}
    options |= {"block_size": block} if block else {}
    real = [x, router, first[3], None, second[3], None]

    def gate(y, _):
        return silu(y[::2]) * y[1::2]

    gives(mixed(real, gate), "QMoE", inputs, **options)
    inputs[14] = shares
    wanted = mixed(real, gate, shares=shares, normalise=True)
    gives(wanted, "QMoE", inputs, normalize_routing_weights=1, **options)
    if bits == 4:
        model = node_model("QMoE", inputs, MICROSOFT, k=CHOSEN, normalize_routing_weights=1, **options)
        np.testing.assert_allclose(expected(model, feeds(inputs, fixed))[0], wanted, atol=2e-5 * np.abs(wanted).max())


def test_what_is_refused():
    inputs = inputs_of()
    for error, match, given, options in (
        (CorruptModel, "attribute 'k' of MoE is 5, wanted a number from 1 to 4", inputs, {"k": 5}),
        (Unsupported, "attribute 'activation_type' of MoE is 'geglu'", inputs, {"activation_type": "geglu"}),
        (CorruptModel, "swiglu_fusion is 0 for rows of 16 numbers", inputs, {"activation_type": "swiglu"}),
        (Unsupported, "with a sparse mixer", inputs, {"use_sparse_mixer": 1}),
        (FactError, "wants rows of 2 or 3 axes and a matrix of scores", [inputs[0][0], *inputs[1:]], {}),
    ):
        refused(error, match, "MoE", given, MICROSOFT, **options)
    packed, scales, *_ = quantised(INNER, HIDDEN, 4, 0, False)
    given = [*inputs[:2], packed, scales, None, packed, scales]
    for error, match, options in (
        (Unsupported, "QMoE of weights of the type 'fp4'", {"quant_type": "fp4"}),
        (Unsupported, "QMoE with 3 bits", {"expert_weight_bits": 3}),
        (Unsupported, "the weights of QMoE must be known", {}),
    ):
        refused(error, match, "QMoE", given, MICROSOFT, **options)
    given[3] = None
    refused(CorruptModel, "weights of layer 1, and no scales", "QMoE", given, MICROSOFT)
