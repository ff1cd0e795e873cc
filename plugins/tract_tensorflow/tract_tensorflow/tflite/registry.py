"""The table ``tflite``: for each operator of TFLite, the function that wires it.

A function takes the node and its surroundings, adds core operators, and returns the outlet (or outlets) of the result:

    @tflite_op(ROWS, "SOFTMAX")
    def softmax(node: TfliteNode, wire: Wiring) -> OutletId: ...

A custom operator is named ``custom/NAME``. On quantised tensors, which hold integers that stand for numbers, an
operator is another one, named ``quantized/NAME``: what only moves elements is offered as both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tract_core.plugins.tables import Rows, TableKey, function_row
from tract_tensorflow.tflite.options import CUSTOM, OPERATORS

if TYPE_CHECKING:
    from tract_core.ops.wired import Results
    from tract_tensorflow.tflite.node import TfliteNode
    from tract_tensorflow.tflite.wiring import Wiring

TfliteFn = Callable[["TfliteNode", "Wiring"], "Results"]
"""``(node, wire) -> outlet``, or one outlet per output of the operator, ``None`` for one that is not computed."""

QUANTIZED: Final = "quantized/"


def _row(key: str, value: object) -> str | None:
    name = key.removeprefix(QUANTIZED)
    if not name.startswith(CUSTOM) and name not in OPERATORS:
        return f"is for {key!r}, which is no operator of TFLite; a custom one is named '{CUSTOM}NAME'"
    return function_row(key, value)


TFLITE: TableKey[str, TfliteFn] = TableKey("tflite", "how an operator of TFLite is wired, by name", _row)


def tflite_op(rows: Rows, *names: str) -> Callable[[TfliteFn], TfliteFn]:
    """Decorator: offer the decorated function for these operators."""
    return rows.row(TFLITE, *names)


def quantized_op(rows: Rows, *names: str) -> Callable[[TfliteFn], TfliteFn]:
    """Decorator: offer the decorated function for these operators on quantised tensors."""
    return rows.row(TFLITE, *(QUANTIZED + name for name in names))
