"""The table ``onnx``: for each operator, and each version of it that changed its meaning, the function that wires it.

A function takes the node and its surroundings, adds core operators, and returns the outlet (or outlets) of the result:

    @onnx_op(ROWS, "Softmax", since=13)
    def softmax(node: OnnxNode, wire: Wiring) -> OutletId: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tract_core.plugins.tables import Rows, TableKey, function_row
from tract_onnx.operators import DEFAULT_DOMAIN, MICROSOFT_DOMAIN, ML_DOMAIN, OLDEST, OnnxOps, row_key

if TYPE_CHECKING:
    from tract_core.ops.wired import Results
    from tract_onnx.node import OnnxNode
    from tract_onnx.wiring import Wiring

__all__ = [
    "DEFAULT_DOMAIN",
    "MICROSOFT_DOMAIN",
    "ML_DOMAIN",
    "OLDEST",
    "ONNX",
    "OnnxFn",
    "OnnxOps",
    "onnx_op",
    "row_key",
]

OnnxFn = Callable[["OnnxNode", "Wiring"], "Results"]
"""``(node, wire) -> outlet``, or one outlet per output of the operator, ``None`` for one that is not computed."""


def _row(key: str, value: object) -> str | None:
    parts = key.split("/")
    if len(parts) < 3 or not all(parts) or not parts[-1].isdecimal():
        return "has a key that is not 'domain/OpType/version': use tract_onnx.registry.onnx_op"
    return function_row(key, value)


def _operator(key: str) -> str:
    """The versions of one operator come from one distribution: a version in between would take over from the others."""
    return key.rpartition("/")[0]


ONNX: TableKey[str, OnnxFn] = TableKey(
    "onnx", "how an ONNX operator is wired, by domain, name and first version", _row, _operator
)


def onnx_op(rows: Rows, *op_types: str, since: int = 1, domain: str = DEFAULT_DOMAIN) -> Callable[[OnnxFn], OnnxFn]:
    """Decorator: offer the decorated function for these operators, from version ``since`` of the domain on."""
    return rows.row(ONNX, *(row_key(op_type, since, domain) for op_type in op_types))
