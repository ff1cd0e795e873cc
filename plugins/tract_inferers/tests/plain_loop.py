"""What a plain loop over the rows of observations gives: one call of `Runnable.run` for each, without any inferer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tract_inferers import Inferer

import tract_core as tract


def random_observations(inferer: Inferer, rows: int, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Observations for so many agents, by input: normal, or 0 and 1 for what is no float."""
    random = np.random.default_rng(seed)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for slot in inferer.input_shapes():
        shape = (rows, *slot.shape)
        values = random.standard_normal(shape) if slot.dtype.kind == "f" else random.integers(0, 2, shape)
        found[slot.name] = values.astype(slot.dtype)
    return found


def plain_rows(
    content: bytes, observations: Mapping[str, np.ndarray[Any, Any]], axes: Mapping[str, int] | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs by name, the rows along axis 0. ``axes``: where tensors have the agents, where that is not axis 0."""
    runnable = tract.onnx().load_bytes(content).into_model().into_runnable()
    places = axes or {}
    rows = len(next(iter(observations.values())))
    outputs: list[list[np.ndarray[Any, Any]]] = []
    for row in range(rows):
        inputs = {
            name: np.ascontiguousarray(np.moveaxis(array[row : row + 1], 0, places.get(name, 0)))
            for name, array in observations.items()
        }
        outputs.append([one.to_numpy() for one in runnable.run(inputs)])
    return {
        name: np.concatenate([_in_front(one, places.get(name, 0)) for one in column])
        for name, column in zip(runnable.output_names(), zip(*outputs, strict=True), strict=True)
    }


def _in_front(array: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    return np.moveaxis(array, axis, 0) if array.ndim else array[None]
