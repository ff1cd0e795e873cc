"""Parts of transformers, as files name them, mean what NumPy computes."""

from __future__ import annotations

import numpy as np
import pytest
from documents import document, load, run_text, shape_of

from tract_core import errors

RANDOM = np.random.default_rng(11)


def floats(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def computed(call, *inputs, shapes=None, symbols=()):
    shapes = shapes or [shape_of(array) for array in inputs]
    text = document(f"o = {call};", shapes, ["o"], registries=["tract_core", "tract_transformers"], symbols=symbols)
    return run_text(text, *inputs)[0]


def softmax(x):
    powers = np.exp(x - np.where(np.isinf(x.max(-1, keepdims=True)), 0, x.max(-1, keepdims=True)))
    return powers / powers.sum(-1, keepdims=True)


def attention(q, k, v, mask=0.0, scale=None):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    if q.ndim == 4:
        k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    return softmax(q @ k.swapaxes(-1, -2) * scale + mask) @ v


@pytest.mark.parametrize("shape", [(3, 4), (1, 3, 4), (1, 1, 3, 4), (4,), (1,)])
def test_rope_rotates_the_halves(shape) -> None:
    x, cos, sin = floats(2, 2, 3, 4), floats(*shape), floats(*shape)
    rotated = np.concatenate([-x[..., 2:], x[..., :2]], -1)
    found = computed("tract_transformers_apply_rope(x, y, z)", x, cos, sin)
    np.testing.assert_allclose(found, x * cos + rotated * sin, rtol=1e-5, atol=1e-6)


SCORES = floats(2, 3, 4)
SEEN = np.array([[True, False, True, True], [False] * 4, [True] * 4])


def test_what_a_mask_leaves_out_has_no_share() -> None:
    found = computed("tract_transformers_scaled_masked_softmax(x, y, 0.5, true)", SCORES, SEEN)
    with np.errstate(invalid="ignore"):
        wanted = np.where(SEEN, softmax(np.where(SEEN, SCORES * 0.5, -np.inf)), 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_mask_of_numbers_is_added() -> None:
    mask = floats(3, 4)
    found = computed("tract_transformers_scaled_masked_softmax(x, y, scale = 2.0)", SCORES, mask)
    np.testing.assert_allclose(found, softmax(SCORES * 2.0 + mask), rtol=1e-5)


@pytest.mark.parametrize(("heads", "shared"), [(1, 1), (4, 4), (4, 2), (6, 1)])
@pytest.mark.parametrize("lengths", [(3, 5), (1, 4), (4, 4), (0, 2)])
def test_heads_attend(heads, shared, lengths) -> None:
    q, k, v = floats(2, heads, lengths[0], 8), floats(2, shared, lengths[1], 8), floats(2, shared, lengths[1], 3)
    call = "tract_transformers_sdpa(x, y, z, datum_type = 'f32', acc_datum_type = 'f32', is_causal = {})"
    np.testing.assert_allclose(computed(call.format("false"), q, k, v), attention(q, k, v), rtol=1e-4, atol=1e-6)
    seen = np.tri(*lengths, lengths[1] - lengths[0])
    wanted = attention(q, k, v, np.where(seen, 0, -np.inf))
    np.testing.assert_allclose(computed(call.format("true"), q, k, v), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 5), (1, 1, 3, 5), (2, 1, 1, 5), (1, 4, 3, 5), (2, 4, 1, 1)])
@pytest.mark.parametrize("logical", [False, True])
def test_masks_of_every_shape(shape, logical) -> None:
    q, k, v = floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 8)
    mask = floats(*shape)
    if logical:
        mask = mask > -0.8
        mask[..., 0] = True
    added = np.where(mask, 0, -np.inf) if logical else mask
    found = computed("tract_transformers_sdpa(x, y, z, t, scale = 0.25)", q, k, v, mask)
    np.testing.assert_allclose(found, attention(q, k, v, added, 0.25), rtol=1e-4, atol=1e-6)


def test_sizes_may_be_symbols() -> None:
    q, k, v = floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 8)
    found = computed(
        "tract_transformers_sdpa(x, y, z, is_causal = true)",
        *(q, k, v),
        shapes=["F32[B, 4, S, 8]", "F32[B, 2, P + S, 8]", "F32[B, 2, P + S, 8]"],
        symbols=["B", "S", "P"],
    )
    wanted = attention(q, k, v, np.where(np.tri(3, 5, 2), 0, -np.inf))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_three_axes_have_no_heads_and_types_are_as_asked() -> None:
    q, k, v = (floats(2, 3, 4).astype(np.float16) for _ in range(3))
    found = computed("tract_transformers_sdpa(x, y, z, datum_type = 'f32')", q, k, v)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, attention(q, k, v), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("tract_transformers_apply_rope(z, z, z)", "has no halves"),
        ("tract_transformers_scaled_masked_softmax(x, x, 1.0, true)", "of booleans"),
        ("tract_transformers_sdpa(x, y, z)", "of one rank, 3 or 4"),
        ("tract_transformers_sdpa(x, y, y)", "3 heads of q cannot share 2 heads of k"),
        ("tract_transformers_sdpa(x, x, x, x, is_causal = true)", "a mask and be causal"),
        ("tract_transformers_sdpa(y, y, y)", "last axis of q is N"),
    ],
)
def test_what_does_not_fit_is_refused(call, message) -> None:
    shapes = ["F32[1, 3, 4, 8]", "F32[1, 2, 4, N]", "F32[1, 4, 3]"]
    text = document(f"o = {call};", shapes, ["o"], registries=["tract_core", "tract_transformers"], symbols=["N"])
    with pytest.raises(errors.TractError, match=f"(?s)line .*{message}"):
        load(text)
