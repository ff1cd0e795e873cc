"""Attention over pages as functions that MLX compiles: what is written in place, and which way tokens meet pages."""

from __future__ import annotations

import numpy as np
import pytest
from gpus import METAL, ON_GPUS
from test_paged_attention import Texts
from tract_transformers.ops.paged_attention import PagedAttention

from tract_core.errors import RunError

pytestmark = pytest.mark.skipif(METAL not in ON_GPUS, reason="MLX is not installed")


def test_mlx_writes_to_pages_in_place() -> None:
    texts = Texts(PagedAttention(0.3, page=8), (1, 2, 4, 4), METAL)
    for place in range(3):
        texts.step([(0, place, place + 1)])
    state = texts.state._inner

    def address() -> int:
        (kept,) = state._kept.values()
        return np.asarray(kept[0]).ctypes.data

    before = address()
    texts.step([(0, 3, 4)])
    assert address() == before
    with pytest.raises(RunError, match="were named"):
        texts.step([(0, 4, 5)], pages=np.array([[99, 1, 2]]))
    assert address() == before
    assert np.abs(texts.step([(0, 4, 5)]) - texts.wanted(0, 4, 5)).max() < 2e-6


@pytest.mark.parametrize("cap", [None, 2.0])
@pytest.mark.parametrize("window", [None, 9])
def test_many_tokens_of_several_texts_meet_all_pages_and_few_their_own(cap: float | None, window: int | None) -> None:
    texts = Texts(PagedAttention(0.3, cap, window, 8, sinks=True), (2, 2, 4, 4), METAL)
    for parts in ([(0, 0, 15), (1, 0, 3), (2, 0, 11)], [(0, 15, 17), (2, 11, 12)]):
        found = texts.step(parts)
        assert np.abs(found - np.concatenate([texts.wanted(*part) for part in parts])).max() < 2e-6
