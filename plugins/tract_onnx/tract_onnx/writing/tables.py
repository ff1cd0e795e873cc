"""Tables of bytes that are a function between two roundings, as engines have them: which function a table is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.frozen import frozen

Array = np.ndarray[Any, Any]


@frozen
class Spelled:
    """A function as a node of ONNX: ``operator`` with its ``attributes``.

    ``times_input``: whether what it gives is then multiplied by what it was given.
    """

    operator: str
    attributes: Mapping[str, float]
    times_input: bool = False


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _leaky(slope: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x < 0, np.float32(slope) * x, x)


_FUNCTIONS: Final[Sequence[tuple[Spelled, Callable[[Array], Array]]]] = (
    (Spelled("Sigmoid", {}), _sigmoid),
    (Spelled("Sigmoid", {}, times_input=True), lambda x: x * _sigmoid(x)),
    (Spelled("Tanh", {}), np.tanh),
    (Spelled("HardSwish", {}), lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    *((Spelled("LeakyRelu", {"alpha": slope}), _leaky(slope)) for slope in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.3)),
)
"""Those that are looked for, and what they compute."""


def function_of(table: Array, given: Array, made: tuple[Array, Array]) -> Spelled | None:
    """The function that makes every entry of a table.

    ``given``: the numbers that the bytes stand for, in order; ``made``: scale and zero point of the entries. ``None``
    where no function that is known makes all of them.
    """
    scale, zero = made
    ends = np.iinfo(table.dtype)
    for spelled, function in _FUNCTIONS:
        with np.errstate(over="ignore"):
            steps = np.rint(function(given).astype(np.float32) / scale)
        if np.array_equal(np.clip(steps + int(zero), ends.min, ends.max), table):
            return spelled
    return None
