"""Operators that are wired from the standard's own definition of them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_agree import agrees, gives, is_refused
from onnx_check import load, run, single

from tract_core.errors import Unsupported

RANDOM = np.random.default_rng(0)


def f32(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def attention(q, k, v, *, mask=0.0, scale=None, softcap=0.0):
    """In f64. Each key and value head serves a group of query heads."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * (q.shape[3] ** -0.5 if scale is None else scale) + mask
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).astype(np.float32)


def test_attention_with_fewer_key_heads():
    q, k, v = f32(2, 6, 3, 4), f32(2, 2, 5, 4), f32(2, 2, 5, 7)
    gives([attention(q, k, v)], "Attention", [q, k, v], opset=23, relative=1e-5)
    capped = attention(q, k, v, scale=0.7, softcap=0.5)
    gives([capped], "Attention", [q, k, v], opset=23, relative=1e-5, scale=0.7, softcap=0.5)


def test_attention_with_a_mask_and_a_cache():
    q, k, v = f32(1, 2, 3, 4), f32(1, 2, 3, 4), f32(1, 2, 3, 4)
    past_k, past_v = f32(1, 2, 2, 4), f32(1, 2, 2, 4)
    seen = RANDOM.random((3, 5)) < 0.7
    seen[:, 0] = True
    keys, values = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    wanted = [attention(q, keys, values, mask=np.where(seen, 0, -np.inf)), keys, values]
    gives(wanted, "Attention", [q, k, v, seen, past_k, past_v], opset=23, outputs=3, relative=1e-5)


def test_attention_of_flat_heads_and_causal():
    inputs = [f32(2, 4, 12), f32(2, 4, 6), f32(2, 4, 6)]
    agrees("Attention", inputs, opset=23, q_num_heads=4, kv_num_heads=2, is_causal=1)


def test_rotary_embedding():
    inputs = [f32(2, 4, 3, 8), f32(10, 4), f32(10, 4), RANDOM.integers(0, 10, (2, 3))]
    agrees("RotaryEmbedding", inputs, opset=23)


def test_causal_convolution_of_symbolic_length():
    x, kernel, bias, past = f32(2, 3, 7), f32(3, 1, 4), f32(3), f32(2, 3, 3)
    line = np.concatenate([past, x], axis=2)
    found = sum(line[:, :, tap : tap + 7] * kernel[:, :, tap] for tap in range(4)) + bias[:, None]
    wanted = [found * (1 / (1 + np.exp(-found))), line[:, :, -3:]]
    inputs = [x, kernel, bias, past]
    gives(wanted, "CausalConvWithState", inputs, opset=27, fixed=(1, 2), outputs=2, relative=1e-5, activation="silu")


def test_where_the_standard_has_no_definition():
    is_refused(
        Unsupported,
        "the standard gives no definition of CausalConvWithState for inputs of type x0_0,x0_1,x0_2,f32",
        "CausalConvWithState",
        [f32(2, 3, 7), f32(3, 1, 4)],
        opset=27,
        outputs=2,
        symbolic=True,
    )


@pytest.mark.parametrize(("captured", "inner"), [("bias", "in"), ("Q", "Prob"), ("Score", "/in:0")])
def test_a_graph_that_reads_a_value_around_it(captured, inner):
    """The score modifier of FlexAttention adds a tensor of the graph around it, whatever names both have."""
    q, k, v, bias = f32(1, 2, 3, 4), f32(1, 2, 3, 4), f32(1, 2, 3, 4), f32(1, 2, 3, 3)
    model, given = single("FlexAttention", [q, k, v], opset=26, domain="ai.onnx.preview")
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 2, 3, 3]) for name in (inner, "out")]
    nodes = [helper.make_node("Add", [inner, captured], ["Axis2"]), helper.make_node("Identity", ["Axis2"], ["out"])]
    modifier = helper.make_graph(nodes, "modifier", infos[:1], infos[1:])
    model.graph.node[0].attribute.append(helper.make_attribute("score_mod", modifier))
    model.graph.initializer.append(onnx.numpy_helper.from_array(bias, captured))
    (found,) = run(model, given)
    np.testing.assert_allclose(found, attention(q, k, v, mask=bias), rtol=1e-5, atol=1e-6)


def test_two_nodes_of_one_operator_have_nodes_of_their_own():
    model, given = single("SwiGLU", [x := f32(2, 3), f32(2, 3)], opset=28, alpha=0.5)
    second = model.graph.node.add()
    second.CopyFrom(model.graph.node[0])
    second.input[0], second.output[0] = "y0", "y1"
    model.graph.output[0].name = "y1"
    gate = given["x1"]
    wanted = x
    for _ in range(2):
        wanted = wanted / (1 + np.exp(-0.5 * wanted)) * gate
    np.testing.assert_allclose(run(model, given)[0], wanted, rtol=1e-5)
    names = [node.name for node in load(model).into_typed().live_nodes()]
    assert len(names) == len(set(names))
    assert any(name.startswith("y0.") for name in names)


@pytest.mark.parametrize("opset", [13, 14, 15])
def test_an_operator_of_an_older_version(opset):
    agrees("NegativeLogLikelihoodLoss", [f32(3, 4), np.array([0, 3, 1], np.int64)], opset=opset)
