"""The typed model as its operators and those who compare it see it: without wiring and simplifying.

Operators hold models, and models hold operators. What looks into the fields of an operator, and finds a body there,
needs to know no more than this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.dims import Dim, SymbolScope
from tract_core.model.fact import TypedFact
from tract_core.model.graph import Graph, Node, OutletId
from tract_core.model.knowledge import Conditions
from tract_core.model.op import TypedOp

TypedNode = Node[TypedFact, TypedOp]


class TypedGraph(Graph[TypedFact, TypedOp]):
    """A graph in which the element type and the shape of every tensor are known. Each is a `TypedModel`.

    ``conditions``: what its operators want of sizes that only a run knows; every run checks them.
    """

    def __init__(self, symbols: SymbolScope | None = None) -> None:
        super().__init__(symbols)
        self.conditions = Conditions()

    def order_of_edges(self, targets: Sequence[OutletId]) -> list[int]:
        """The nodes that ``targets`` need by their inputs, and not to bind symbols; each after what it reads."""
        return super().eval_order(targets)

    def substitute(self, values: Mapping[str, Dim]) -> TypedGraph:
        """With symbols replaced: see `TypedModel.substitute`."""
        raise NotImplementedError
