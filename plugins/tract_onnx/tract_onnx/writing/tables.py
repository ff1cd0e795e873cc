"""Tables of bytes that are a function between two roundings, as engines have them: which function a table is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.frozen import frozen

Array = np.ndarray[Any, Any]


STEP: Final = np.float32(1 / 255)
"""One of as many as a byte has, from 0 to 1."""


@frozen
class Spelled:
    """A function as a node of ONNX: ``operator`` with its ``attributes``.

    ``times_input``: whether what it gives is then multiplied by what it was given; ``rounded``: whether it is rounded
    to bytes before, in 255 steps from 0 to 1.
    """

    operator: str
    attributes: Mapping[str, float]
    times_input: bool = False
    rounded: bool = False


_HALF_WAY: Final = 0.5 + 2.0**-10
"""So far a step may be from the number that is rounded: where that lies half way between two, engines differ."""


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _rounded(x: Array) -> Array:
    return np.rint(x.astype(np.float32) / STEP) * STEP


def _leaky(slope: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x < 0, np.float32(slope) * x, x)


_FUNCTIONS: Final[Sequence[tuple[Spelled, Callable[[Array], Array]]]] = (
    (Spelled("Sigmoid", {}), _sigmoid),
    (Spelled("Sigmoid", {}, times_input=True, rounded=True), lambda x: x * _rounded(_sigmoid(x))),
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
            steps = function(given).astype(np.float32) / scale + int(zero)
        if (np.abs(np.clip(steps, ends.min, ends.max) - table) <= _HALF_WAY).all():
            return spelled
    return None
