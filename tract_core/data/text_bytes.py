"""What texts take in memory."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

POINTER: Final = 8
"""Bytes of an element that leads to its text."""


def text_bytes(array: Array) -> int:
    """Bytes of an array of texts, each counted as UTF-8 wherever it stands; 0 for an array of anything else.

    An axis along which the same elements are repeated (of stride 0) is looked at once.
    """
    if array.dtype.kind != "O":
        return 0
    repeated = [size if stride == 0 else 1 for size, stride in zip(array.shape, array.strides, strict=True)]
    once = array[(*(slice(0, 1) if factor > 1 else slice(None) for factor in repeated), ...)]
    return prod(repeated) * (POINTER * once.size + sum(map(_length, once.flat)))


def _length(element: object) -> int:
    if isinstance(element, str):
        return len(element) if element.isascii() else len(element.encode("utf-8", "surrogatepass"))
    return len(element) if isinstance(element, bytes) else 0
