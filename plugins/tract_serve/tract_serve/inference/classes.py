"""The classification extension: of an output, its largest elements with their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_serve.errors import BadRequest

Array = np.ndarray[Any, Any]


def classes(scores: Array, count: int, labels: Sequence[str] = ()) -> Array:
    """Of the last axis, the ``count`` largest elements, largest first, each as the text ``SCORE:PLACE``.

    Behind it stands ``:LABEL``, where there is one for the place.

    Raises BadRequest for an output of texts, or without axes.
    """
    if scores.dtype.kind == "O" or not scores.ndim:
        raise BadRequest("classification is asked for of an output that has no scores")
    order = _descending(scores)[..., :count]
    values = _written(np.take_along_axis(scores, order, -1).reshape(-1))
    result: Array = np.empty(order.size, object)
    pairs = zip(values, order.reshape(-1).tolist(), strict=True)
    result[:] = [f"{value}:{place}{_label(labels, place)}" for value, place in pairs]
    return result.reshape(order.shape)


def _label(labels: Sequence[str], place: int) -> str:
    return f":{labels[place]}" if place < len(labels) else ""


def _written(scores: Array) -> list[str]:
    """Each as a text, whole numbers without a fraction."""
    if scores.dtype.kind in "iub":
        return [str(int(one)) for one in scores]
    return [f"{one:f}" for one in scores.astype(np.float64).tolist()]


def _descending(scores: Array) -> Array:
    """The places of the last axis, the largest element first, of equal ones the first; what is no number last."""
    if scores.dtype.kind not in "iub":
        return np.argsort(-scores.astype(np.float64), axis=-1, kind="stable")
    backwards = np.argsort(scores[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return scores.shape[-1] - 1 - backwards
