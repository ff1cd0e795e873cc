"""Caches in few bits give each number back within half a step of its group, and take few bytes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from cache_models import RUNTIMES, Array, P, around, pieces, state_of, turn
from tract_transformers.ops.kv_attention import QuantizedKvSdpa, WindowKvSdpa
from tract_transformers.ops.quantised_kv_cache import QuantizedDynKvCache, Stored

import tract_core as tract
from tract_core.api.model import Model
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact

TURNS = [3, 0, 2, 7, 30, 1, 65, 1]
BLOCK = 32


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def half_steps(x: Array, bits: int, *, per_channel: bool) -> Array:
    """How far each number may be from where it was: half of the range of its group over the steps in it, in float64.

    The first four positions are exact, and so are keys that fill no block of 32 yet.
    """
    x = x.astype(np.float64)
    found, rest = np.zeros(x.shape), x[:, :, 4:]
    size, axis = (BLOCK, 3) if per_channel else (1, 4)
    whole = rest.shape[2] // size * size
    blocks = rest[:, :, :whole].reshape(*rest.shape[:2], whole // size, size, rest.shape[3])
    ranges = np.broadcast_to(np.ptp(blocks, axis, keepdims=True), blocks.shape)
    found[:, :, 4 : 4 + whole] = (ranges / (2**bits - 1) / 2).reshape(rest[:, :, :whole].shape)
    return found


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("kind", "channels"), [("f32", 5), ("f16", 6)])
def test_numbers_come_back_within_half_a_step(runtime, bits, per_channel, kind, channels) -> None:
    rng = np.random.default_rng(7)
    op = QuantizedDynKvCache("past", 2, P, bits, per_channel)
    state = state_of(around(op, f"2,3,S,{channels},{kind}"), runtime)
    scales = np.geomspace(0.1, 100, channels)
    coming = [(x * scales).astype(f"f{int(kind[1:]) // 8}") for x in pieces(rng, (2, 3, 0, channels), 2, TURNS, "f8")]
    digits = np.finfo(coming[0].dtype).eps
    for count, piece in enumerate(coming, 1):
        (found,) = turn(state, piece)
        exact = np.concatenate(coming[:count], 2)
        assert found.dtype == exact.dtype
        allowed = half_steps(exact, bits, per_channel=per_channel)
        error = np.abs(found.astype(np.float64) - exact)
        rounding = np.where(allowed > 0, digits * np.abs(exact).max(), 0)  # what is exact is so to the last bit
        assert (error <= allowed * (1 + 1e-3) + rounding).all()
    assert error.max() > 0


@pytest.mark.parametrize("per_channel", [True, False])
def test_how_the_turns_are_cut_changes_nothing(per_channel, rng) -> None:
    model = around(QuantizedDynKvCache("past", 2, P, 4, per_channel), "1,2,S,3,f32")
    (x,) = pieces(rng, (1, 2, 0, 3), 2, [101], "f4")
    (whole,) = turn(state_of(model, "reference"), x)
    state = state_of(model, "reference")
    for begin in range(0, 101, 9):
        (found,) = turn(state, x[:, :, begin : begin + 9])
    np.testing.assert_array_equal(found, whole)
    other = pickle.loads(pickle.dumps(state.freeze())).unfreeze()
    np.testing.assert_array_equal(turn(other, x[:, :, :1])[0], turn(state, x[:, :, :1])[0])


@pytest.mark.parametrize(("bits", "bytes_each"), [(4, 16), (8, 32)])
def test_few_bytes_are_kept(bits, bytes_each, rng) -> None:
    stored = Stored.empty(bits, 1, 1, 32, per_channel=True)
    for x in pieces(rng, (1, 1, 0, 32), 2, [100, 200, 36], "f4"):
        stored = stored.appended(x)
    assert stored.codes.nbytes == 320 * bytes_each  # 4 positions are exact, 12 fill no block
    assert [one.shape[2] for one in (stored.first, stored.low, stored.step, stored.last)] == [4, 10, 10, 12]


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (1, 2, 0), (1, 1, 1)])
@pytest.mark.parametrize("per_channel", [True, False])
def test_axes_of_no_size(shape, per_channel) -> None:
    batch, heads, channels = shape
    state = state_of(around(QuantizedDynKvCache("p", 2, P, 4, per_channel), f"{batch},{heads},S,{channels},f32"), "cpu")
    for size, total in ((3, 3), (0, 3), (40, 43)):
        (found,) = turn(state, np.ones((batch, heads, size, channels), np.float32))
        np.testing.assert_array_equal(found, np.ones((batch, heads, total, channels)))


def test_what_is_not_finite_is_not_hidden() -> None:
    state, x = (
        state_of(around(QuantizedDynKvCache("p", 2, P, 8, False), "1,1,S,2,f32"), "reference"),
        np.ones((1, 1, 7, 2)),
    )
    x[0, 0, 4:, 0] = np.nan, np.inf, 1
    (found,) = turn(state, x.astype(np.float32))
    assert np.isnan(found[0, 0, 4:6]).all()
    np.testing.assert_array_equal(found[0, 0, [0, 6]], 1)


@pytest.mark.parametrize(
    ("bits", "axis", "fact", "problem"),
    [
        (3, 2, "1,2,S,4,f32", "3 bits"),
        (8, 1, "1,2,S,4,f32", "along axis 1"),
        (8, 2, "1,2,S,f32", "wanted .batch, heads, positions, channels."),
        (8, 2, "1,2,S,4,f64", "f16, bf16 or f32"),
        (8, 2, "1,2,S,4,i8", "f16, bf16 or f32"),
    ],
)
def test_other_tensors_are_refused(bits, axis, fact, problem) -> None:
    with pytest.raises(FactError, match=problem):
        QuantizedDynKvCache("past", axis, P, bits, True).output_facts([parse_typed_fact(fact)])


# --- attention with a cache inside ---


def attention(q: Array, k: Array, v: Array, scale: float | None = None) -> Array:
    """In float64, each head of k and v for as many of q as there are more."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * (1 / np.sqrt(q.shape[3]) if scale is None else scale)
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(-1, keepdims=True) @ v


FACTS = ("2,4,S,8,{0}", "2,2,S,8,{0}", "2,2,S,3,{0}")


def coming(rng: np.random.Generator, size: int, kind: str) -> list[Array]:
    """Queries, keys and values for so many positions, as `FACTS` says."""
    return [rng.normal(size=(2, heads, size, width)).astype(kind) for heads, width in ((4, 8), (2, 8), (2, 3))]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("kind", "tolerance"), [("f32", 2e-6), ("f16", 2e-3)])
@pytest.mark.parametrize("scale", [None, 0.25])
@pytest.mark.parametrize("window", [1, 5])
def test_attention_over_the_last_positions(runtime, kind, tolerance, scale, window) -> None:
    rng = np.random.default_rng(7)
    state = state_of(around(WindowKvSdpa(2, window, scale), *(fact.format(kind) for fact in FACTS)), runtime)
    keys, values = np.zeros((2, 2, 0, 8)), np.zeros((2, 2, 0, 3))
    for size in (0, 1, 2, 1, 7, 1, 0):
        q, k, v = coming(rng, size, f"f{int(kind[1:]) // 8}")
        (found,) = turn(state, q, k, v)
        keys, values = (np.concatenate(pair, 2)[:, :, -window:] for pair in ((keys, k), (values, v)))
        np.testing.assert_allclose(found, attention(q, keys, values, scale), rtol=0, atol=tolerance)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_attention_over_positions_in_8_bits(runtime, rng) -> None:
    state = state_of(around(QuantizedKvSdpa(2), *(fact.format("f32") for fact in FACTS)), runtime)
    keys, values = np.zeros((2, 2, 0, 8)), np.zeros((2, 2, 0, 3))
    for size in (3, 0, 1, 40, 1):
        q, k, v = coming(rng, size, "f4")
        (found,) = turn(state, q, k, v)
        keys, values = np.concatenate([keys, k], 2), np.concatenate([values, v], 2)
        off_keys, off_values = (half_steps(x, 8, per_channel=x is keys).max(initial=0) for x in (keys, values))
        off_scores = np.abs(q).sum(-1).max(initial=0) * off_keys / np.sqrt(8)
        allowed = off_values + (np.exp(2 * off_scores) - 1) * np.abs(values).max(initial=0) + 1e-5
        assert np.abs(found - attention(q, keys, values)).max(initial=0) <= allowed
    assert allowed < 0.3


@pytest.mark.parametrize("op", [WindowKvSdpa(2, 3), QuantizedKvSdpa(2)])
def test_attention_keeps_its_state_when_it_refuses(op, rng) -> None:
    model = around(op, *["1,H,S,4,f32"] * 3)
    state, other = state_of(model, "reference"), state_of(model, "reference")
    x, y = pieces(rng, (1, 2, 0, 4), 2, [3, 1], "f4")
    turn(state, x, x, x)
    turn(other, x, x, x)
    with pytest.raises(RunError, match="node 'op'"):
        turn(state, *[y[:, :1]] * 3)
    np.testing.assert_array_equal(turn(state, y, y, y)[0], turn(other, y, y, y)[0])
    again = pickle.loads(pickle.dumps(state.freeze())).unfreeze()
    np.testing.assert_array_equal(turn(again, y, y, y)[0], turn(state, y, y, y)[0])


@pytest.mark.parametrize(
    ("op", "facts", "problem"),
    [
        (WindowKvSdpa(2, 0), ["1,2,S,4,f32"] * 3, "window of 0"),
        (WindowKvSdpa(1, 2), ["1,2,S,4,f32"] * 3, "along axis 1"),
        (WindowKvSdpa(2, 2), ["1,2,S,4,f32", "1,2,S,4,f16", "1,2,S,4,f32"], "one element type"),
        (QuantizedKvSdpa(2), ["1,3,S,4,f32", "1,2,S,4,f32", "1,2,S,4,f32"], "3 heads of q cannot share 2"),
        (QuantizedKvSdpa(2), ["1,2,S,4,f32", "1,2,S,5,f32", "1,2,S,4,f32"], "do not fit"),
        (QuantizedKvSdpa(2), ["2,S,4,f32"] * 3, "wanted .batch, heads, positions, channels."),
        (QuantizedKvSdpa(2), ["1,2,S,4,f32"] * 2, "takes 3 inputs"),
    ],
)
def test_other_attention_is_refused(op, facts, problem) -> None:
    with pytest.raises(FactError, match=problem):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_a_run_is_held_to_its_memory() -> None:
    model = around(QuantizedKvSdpa(2), *["1,1,S,1,f32"] * 3)
    x = np.zeros((1, 1, 60_000, 1), np.float32)  # its scores alone would take 14 GB
    with pytest.raises(RunError, match="node 'op'"):
        tract.runtime_for_name("reference").prepare(Model(model)).run([x, x, x])
