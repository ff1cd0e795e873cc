"""Windows over any axes, each joined to one element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Final

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.ops.downsample import Downsample
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

MAX_WINDOW: Final = 4096
"""Elements in one window, each of which becomes operators of its own."""

Joined = Callable[[Wired, Wired], Wired]

JOINED: Final[dict[str, Joined]] = {
    "ADD": lambda a, b: a + b,
    "ALL": lambda a, b: a & b,
    "ANY": lambda a, b: a | b,
    "MAXIMUM": Wired.maximum,
    "MINIMUM": Wired.minimum,
    "MUL": lambda a, b: a * b,
}
"""How two elements become one, by the words of the file."""


@tflite_op(ROWS, "REDUCE_WINDOW")
def reduce_window(node: TfliteNode, wire: Wiring) -> Wired:
    """An element to begin with, and those of a window, joined; sizes, strides and distances in it are inputs"""
    x, start = wire.tensor(0), wire.tensor(1)
    what = ("sizes", "strides", "distances")
    sizes, strides, distances = (
        wire.known_ints(wire.input(slot + 2), f"the {name} of windows") for slot, name in enumerate(what)
    )
    join = JOINED[node.choice("reduce_function", JOINED, "UNSUPPORTED")]
    return windows_joined(x, start.reshape(()), join, sizes=sizes, strides=strides, distances=distances)


def windows_joined(
    x: Wired, start: Wired, join: Joined, *, sizes: Sequence[int], strides: Sequence[int], distances: Sequence[int]
) -> Wired:
    """``start`` and the elements of each window, joined. All lists have a number for each axis. Raises ModelError."""
    if not len(sizes) == len(strides) == len(distances) == x.rank or min((*sizes, *strides, *distances), default=1) < 1:
        raise CorruptModel(f"windows of {list(sizes)}, strides {list(strides)}, {list(distances)} apart, on {x.fact}")
    if prod(sizes) > MAX_WINDOW:
        raise LimitExceeded(f"a window has {prod(sizes)} elements, {MAX_WINDOW} are allowed")
    parts = (_places(x, place, sizes, strides, distances) for place in product(*map(range, sizes)))
    return reduce(join, parts, start)


def _places(
    x: Wired, place: Sequence[int], sizes: Sequence[int], strides: Sequence[int], distances: Sequence[int]
) -> Wired:
    """For each window, the element at one place in it."""
    for axis, (at, size, stride, distance) in enumerate(zip(place, sizes, strides, distances, strict=True)):
        length = x.shape[axis]
        first, last = at * distance, length - (size - 1 - at) * distance
        x = x.part(axis, first, last) if (first, last) != (0, length) else x
        x = x if stride == 1 else x.op(Downsample(axis, stride))
    return x
