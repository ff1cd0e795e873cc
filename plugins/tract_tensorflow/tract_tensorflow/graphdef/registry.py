"""The table ``tensorflow``: for each operator of TensorFlow, the function that wires it.

A function takes the node and its surroundings, adds core operators, and returns the outlet (or outlets) of the result:

    @tf_op(ROWS, "Softmax")
    def softmax(node: GraphNode, wire: GraphWiring) -> OutletId: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tract_core.plugins.tables import Rows, TableKey, function_row

if TYPE_CHECKING:
    from tract_core.ops.wired import Results
    from tract_tensorflow.graphdef.node import GraphNode
    from tract_tensorflow.graphdef.wiring import GraphWiring

TensorflowFn = Callable[["GraphNode", "GraphWiring"], "Results"]
"""``(node, wire) -> outlet``, or one outlet per output of the operator, ``None`` for one that is not computed."""

TENSORFLOW: TableKey[str, TensorflowFn] = TableKey(
    "tensorflow", "how an operator of TensorFlow is wired, by its name", function_row
)


def tf_op(rows: Rows, *op_types: str) -> Callable[[TensorflowFn], TensorflowFn]:
    """Decorator: offer the decorated function for these operators."""
    return rows.row(TENSORFLOW, *op_types)
