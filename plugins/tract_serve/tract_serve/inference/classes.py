"""The classification extension: of an output, its largest elements with their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_serve.errors import BadRequest

Array = np.ndarray[Any, Any]


def classes(scores: Array, count: int) -> Array:
    """Of the last axis, the ``count`` largest elements, largest first, each as the text ``SCORE:PLACE``.

    Raises BadRequest for an output of texts, or without axes.
    """
    if scores.dtype.kind == "O" or not scores.ndim:
        raise BadRequest("classification is asked for of an output that has no scores")
    kept = min(count, scores.shape[-1])
    order = np.argsort(-scores.astype(np.float64), axis=-1, kind="stable")[..., :kept]
    found = np.take_along_axis(scores, order, -1)
    texts = [f"{float(score):f}:{place}" for score, place in zip(found.reshape(-1), order.reshape(-1), strict=True)]
    result: Array = np.empty(len(texts), object)
    result[:] = texts
    return result.reshape(found.shape)
