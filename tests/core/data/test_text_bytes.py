"""What texts take: counted one by one, whatever strides the array has."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tract_core.data.text_bytes import text_bytes

TEXTS = np.array([["a", "éé", ""], ["\ud800", "𝒩", "abc"]], object)


def by_hand(array: np.ndarray) -> int:
    texts = [one if isinstance(one, bytes) else one.encode("utf-8", "surrogatepass") for one in array.ravel().tolist()]
    return sum(8 + len(text) for text in texts)


@pytest.mark.parametrize(
    "array",
    [
        TEXTS,
        TEXTS.T,
        TEXTS[:, ::-1],
        TEXTS[:1],
        TEXTS[:0],
        TEXTS[1, 2:].reshape(()),
        np.broadcast_to(TEXTS, (4, 2, 3)),
        np.broadcast_to(TEXTS[:, :1], (2, 5)),
        np.broadcast_to(TEXTS[:, :0], (2, 0)),
        np.broadcast_to(np.array("éa", object), (2, 3)),
        np.array([b"\xff\xfe", "a"], object),
    ],
    ids=range(11),
)
def test_every_text_counts(array: np.ndarray) -> None:
    assert text_bytes(array) == by_hand(array)


def test_numbers_are_no_texts() -> None:
    assert text_bytes(np.zeros((2, 3))) == 0


def test_what_is_repeated_is_looked_at_once() -> None:
    start = time.process_time()
    assert text_bytes(np.broadcast_to(TEXTS, (10**12, 2, 3))) == 10**12 * by_hand(TEXTS)
    assert time.process_time() - start < 1
