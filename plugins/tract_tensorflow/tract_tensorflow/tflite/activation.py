"""What is fused behind operators on floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tract_core.errors import Unsupported
from tract_core.ops.wired import Wired
from tract_tensorflow.tflite.node import TfliteNode

ACTIVATIONS: Final[dict[str, Callable[[Wired], Wired]]] = {
    "NONE": lambda x: x,
    "RELU": lambda x: x.maximum(0),
    "RELU_N1_TO_1": lambda x: x.maximum(-1).minimum(1),
    "RELU6": lambda x: x.maximum(0).minimum(6),
    "TANH": Wired.tanh,
}
"""By their names in the file."""


def activated(x: Wired, node: TfliteNode) -> Wired:
    """What an operator says is done to its result. Raises Unsupported."""
    if node.activation not in ACTIVATIONS:
        raise Unsupported(f"{node.activation}, fused into another operator")
    return ACTIVATIONS[node.activation](x)
