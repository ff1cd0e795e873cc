"""The table ``aten``: for each operator of PyTorch that is kept, the function that wires it.

A function takes the call and its surroundings, adds core operators, and returns the outlet (or outlets) of the result:

    @aten(ROWS, "aten.softmax.int", "aten._softmax")
    def softmax(call: Call, wire: NodeWiring) -> OutletId: ...

A name without an overload stands for all of them; those that run graphs are named as ``higher_order.cond``. Operators
without a row are decomposed by PyTorch, where it can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from torch._ops import HigherOrderOperator

from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows, Table, TableKey, function_row
from tract_torch.wiring.call import Call

if TYPE_CHECKING:
    from tract_core.ops.wired import Results

AtenFn = Callable[[Call, NodeWiring], "Results"]
"""``(call, wire) -> outlet``, or one outlet per output of the operator."""


def _row(key: str, value: object) -> str | None:
    parts = key.split(".")
    if len(parts) not in (2, 3) or not all(parts):
        return "has a key that is not 'library.operator' or 'library.operator.overload'"
    return function_row(key, value)


F = TypeVar("F", bound=AtenFn)

ATEN: TableKey[str, AtenFn] = TableKey("aten", "how an operator of PyTorch is wired, by its name", _row)


def aten(rows: Rows, *names: str) -> Callable[[F], F]:
    """Decorator: offer the decorated function for these operators, as ``"aten.add.Tensor"`` or ``"aten.add"``."""
    return rows.row(ATEN, *names)


def find(table: Table[str, AtenFn], name: str) -> AtenFn | None:
    """The function for an operator, by its name with the overload: that of the overload, or that of all."""
    return table.find(name) or table.find(name.rpartition(".")[0])


def name_of(target: object) -> str:
    """What the table calls the target of a node."""
    return f"higher_order.{target.name()}" if isinstance(target, HigherOrderOperator) else str(target)
