"""Tables of texts and numbers by keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any], int]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """From texts to numbers and back, and how large they are."""
    words, numbers = ["one", "two", "", "four"], np.array([1, 2, 0, 44], np.int64)
    asked = np.array([[2, 7, 0], [44, 1, 1]], np.int64)
    yield ("texts of numbers", table(numbers, words, (2, 3), "none"), [asked], 2)
    texts = np.array(["two", "", "three", "one"], object)
    yield ("numbers of texts", table(words, numbers, (4,), -1), [texts], 2)
    again = [1, 2, 1]
    many = draw.permutation(np.arange(-300, 300, 3))
    some = draw.integers(-300, 300, (4, 5))
    named = [str(one) for one in many.tolist()]
    yield ("many keys", table(many, named, (4, 5), "none"), [some], 2)
    yield ("many texts", table(named, many, (4, 5), -1), [some.astype(str).astype(object)], 2)
    yield ("equal keys", table(np.array(again, np.int64), ["a", "b", "c"], (2, 3), "?"), [asked], 1)


def packed(texts: Any) -> bytes:
    """Texts as files have them."""
    raw = [str(one).encode() for one in texts]
    places = np.cumsum([8 + 4 * len(raw), *map(len, raw)]).astype("<i4")
    return np.array([len(raw)], "<i4").tobytes() + places.tobytes() + b"".join(raw)


def of(values: Any, shape: tuple[int, ...] | None = None) -> Tensor:
    """A constant, also of texts."""
    if isinstance(values, np.ndarray):
        return const(values)
    return Tensor(shape or (len(values),), "STRING", raw=packed(values))


def table(keys: Any, values: Any, shape: tuple[int, ...], default: Any) -> bytes:
    kinds = ["INT64" if isinstance(one, np.ndarray) else "STRING" for one in (keys, values)]
    unknown = of([default], ()) if isinstance(default, str) else const(np.array(default, np.int64))
    numbers = {"INT64": 4, "STRING": 5}
    options = {"tableId": 3, "keyDtype": numbers[kinds[0]], "valueDtype": numbers[kinds[1]]}
    handle = Tensor((1,), "RESOURCE")
    fill = Graph(
        [handle, of(keys), of(values)],
        [
            Op("HASHTABLE", [], [0], "HashtableOptions", options),
            Op("HASHTABLE_IMPORT", [0, 1, 2], [], "HashtableImportOptions"),
        ],
        [], [],
    )  # fmt: skip
    main = Graph(
        [Tensor(shape, kinds[0]), handle, unknown, Tensor(shape, kinds[1]), Tensor((1,), "INT64")],
        [
            Op("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 1}),
            Op("HASHTABLE", [], [1], "HashtableOptions", options),
            Op("HASHTABLE_FIND", [1, 0, 2], [3], "HashtableFindOptions"),
            Op("HASHTABLE_SIZE", [1], [4], "HashtableSizeOptions"),
        ],
        [0], [3, 4],
    )  # fmt: skip
    return file(main, fill)
