"""GroupQueryAttention with caches that hold windows, chunks that are padded, and what else is rare, and its own cache.

The bulk of its options is in test_microsoft.py. Against ONNX Runtime, and against NumPy in float64 for what it has on
GPUs only.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import expected
from onnx_single import MICROSOFT, feeds, node_model, outputs_of, refused
from tract_onnx.frontend import OnnxLoader

from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.runtime.plan import TypedSimplePlan

HEADS, KV_HEADS, SIZE = 4, 2, 16
OPTIONS = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "outputs": 3}
WINDOW = 4


def f32(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def inputs_of(length, capacity, totals, *, rotary=False, fresh=None, past=None, **slots):
    """``totals``: how many tokens each row has with this step; ``fresh``: how many of the chunk count."""
    batch = len(totals)
    q, k, v = (f32(batch, length, count * SIZE, seed=count) for count in (HEADS, KV_HEADS, KV_HEADS + 1))
    v = v[..., : KV_HEADS * SIZE]
    past = past or [f32(batch, KV_HEADS, capacity, SIZE, seed=seed) for seed in (8, 9)]
    angles = np.arange(64)[:, None] * 10.0 ** -np.arange(SIZE // 2)
    tables = [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)] if rotary else [None, None]
    lengths = np.array(totals, np.int32) - 1
    inputs = [q, k, v, *past, lengths, np.array(max(totals), np.int32), *tables, *[None] * 8]
    if fresh is not None:
        inputs[16] = np.array(fresh, np.int32)
    for slot, array in slots.items():
        inputs[int(slot.removeprefix("slot"))] = array
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def agrees(inputs, valid, kept, **options):
    """The rows of the chunk that count, and the rows of the cache that hold something, as ONNX Runtime gives them."""
    wanted = expected(node_model("GroupQueryAttention", inputs, MICROSOFT, **OPTIONS, **options), feeds(inputs))
    for batch in (None, "N"):
        found = outputs_of("GroupQueryAttention", inputs, MICROSOFT, batch=batch, **OPTIONS, **options)
        for row, (count, rows) in enumerate(zip(valid, kept, strict=True)):
            np.testing.assert_allclose(found[0][row, :count], wanted[0][row, :count], rtol=1e-4, atol=1e-5)
            for ours, theirs in zip(found[1:], wanted[1:], strict=True):
                assert ours.shape == theirs.shape
                np.testing.assert_allclose(ours[row, :, :rows], theirs[row, :, :rows], atol=1e-6)
    return wanted


@pytest.mark.parametrize(
    ("length", "capacity", "totals"),
    [(1, WINDOW, [1, 3]), (1, WINDOW, [5, 9]), (1, 6, [6, 7]), (1, 6, [8, 30]), (3, 6, [9]), (7, 6, [7]), (7, 5, [19])],
)
@pytest.mark.parametrize("rotary", [False, True])
def test_a_cache_that_holds_a_window(length, capacity, totals, rotary):
    gap = capacity - WINDOW + 1
    kept = [total - gap * -(-max(total - capacity, 0) // gap) for total in totals]
    inputs = inputs_of(length, capacity, totals, rotary=rotary)
    options = {"sliding_window_cache": 1, "local_window_size": WINDOW, "do_rotary": int(rotary)}
    agrees(inputs, [length] * len(totals), kept, **options)


@pytest.mark.parametrize(
    ("length", "capacity", "totals", "fresh"),
    [(3, 8, [3, 2], [3, 2]), (3, 8, [4, 5], [1, 3]), (2, 8, [6, 4], [2, 0]), (1, 4, [3, 2], [1, 0])],
)
def test_chunks_that_are_padded(length, capacity, totals, fresh):
    inputs = inputs_of(length, capacity, totals, fresh=fresh, rotary=True)
    inputs[6] = np.array(capacity, np.int32)
    agrees(inputs, fresh, totals, do_rotary=1)
    agrees(inputs, fresh, totals, do_rotary=1, local_window_size=2)


def test_tokens_that_see_all_others():
    for length, capacity, totals in ((3, 5, [8]), (1, 6, [4, 7]), (4, 0, [4, 4])):
        inputs = inputs_of(length, capacity, totals)
        agrees(inputs, [length] * len(totals), totals, causal=0)


def attended(q, k, v):
    """The definition, for one row without a past, every query seeing the keys up to its own."""
    length = len(q)
    q, k, v = (np.float64(x).reshape(length, -1, SIZE).transpose(1, 0, 2) for x in (q, k, v))
    k, v = (np.repeat(x, HEADS // KV_HEADS, 0) for x in (k, v))
    scores = np.where(np.tri(length) > 0, q @ k.transpose(0, 2, 1) / SIZE**0.5, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(length, -1)


def test_heads_that_are_normalised():
    """ONNX Runtime has it on GPUs only."""
    weights = f32(SIZE, seed=5), f32(SIZE, seed=6)
    inputs = inputs_of(3, 0, [3, 3], slot14=weights[0], slot15=weights[1])
    options = {"q_norm_epsilon": 0.5, "qk_norm_epsilon": 0.25}
    (found, keys, _) = outputs_of("GroupQueryAttention", inputs, MICROSOFT, batch="N", **OPTIONS, **options)

    def normalised(x, weight, epsilon):
        x = np.float64(x).reshape(*x.shape[:2], -1, SIZE)
        return (x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weight).reshape(*x.shape[:2], -1)

    q, k = normalised(inputs[0], weights[0], 0.5), normalised(inputs[1], weights[1], 0.25)
    for row in range(2):
        np.testing.assert_allclose(found[row], attended(q[row], k[row], inputs[2][row]), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(keys[row].transpose(1, 0, 2).reshape(3, -1), k[row], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("past", [0, 1, 5])
@pytest.mark.parametrize("window", [-1, 3])
def test_caches_that_grow(past, window):
    """Whoever loads the file says that no row is padded: what it says of lengths does not count."""
    inputs = inputs_of(3, past, [past + 3] * 2, rotary=True)
    options = {"do_rotary": 1, "local_window_size": window}
    given, wanted = feeds(inputs), alone(inputs, options)
    model = node_model("GroupQueryAttention", inputs, MICROSOFT, batch="N", **OPTIONS, **options)
    typed = OnnxLoader(growing_caches=True).load_bytes(model.SerializeToString()).into_typed()
    typed.declutter()
    assert not [node for node in typed.nodes if node.op.name == "GatherNd"]
    plan = TypedSimplePlan(typed)
    given["x5"], given["x6"] = given["x5"] * 0, given["x6"] * 0
    found = plan.run([given[name] for name in plan.input_names])
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def alone(inputs, options):
    """What ONNX Runtime gives row by row, as it takes chunks behind a past of one row only."""
    rows = []
    for row in range(2):
        one = [x[row : row + 1] if x is not None and x.ndim > 2 else x for x in inputs]
        one[5] = inputs[5][row : row + 1]
        rows.append(expected(node_model("GroupQueryAttention", one, MICROSOFT, **OPTIONS, **options), feeds(one)))
    return [np.concatenate(parts) for parts in zip(*rows, strict=True)]


def test_what_is_refused():
    fine = inputs_of(1, 6, [3, 4])
    for error, match, inputs, options in (
        (CorruptModel, "wants one, and a past; local_window_size is -1", fine, {"sliding_window_cache": 1}),
        (
            Unsupported,
            "with a bias, and a cache that holds a window",
            inputs_of(1, 6, [3, 4], slot10=f32(1, 1, 1, 4)),
            {"sliding_window_cache": 1, "local_window_size": 4},
        ),
        (FactError, "which does not go in front of", inputs_of(1, 6, [3, 4], slot3=f32(2, 2, 6, 8)), {}),
        (Unsupported, "with a quantised cache", fine, {"v_quant_type": "PER_TENSOR"}),
    ):
        refused(error, match, "GroupQueryAttention", inputs, MICROSOFT, **OPTIONS, **options)
