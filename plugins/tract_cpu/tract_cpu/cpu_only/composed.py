"""Operators of others that compute single elements, by the operators that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from tract_llvm.elements.expressions import Composite, Expression

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops import binary
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Original:
    """The operator of somebody else, with its NumPy meaning. ``inputs``: how many inputs it has."""

    op: TypedOp
    meaning: Callable[..., Any]
    inputs: int

    def __repr__(self) -> str:
        return ""  # nothing that is compiled depends on it


@frozen
class Composed(Composite):
    """What ``original`` computes of its inputs, which have one rank, and stretch.

    ``expression``: that, of the elements at one position. Behind the inputs come the arrays that are part of it.
    """

    original: Original
    expression: Expression
    by_element: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What the operator is called."""
        return self.original.op.name

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Those of the operator. Raises FactError as it does."""
        return self.original.op.output_facts(inputs[: self.original.inputs])


@ROWS.row(REFERENCE, Composed)
def reference(op: Composed, *inputs: Array) -> Any:
    """What the operator itself computes."""
    return op.original.meaning(op.original.op, *inputs[: op.original.inputs])


@ROWS.row(COST, Composed)
def cost(op: Composed, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per element for each operator that it is made of."""
    (result,) = outputs
    return {f"FMA({result.datum_type.storage.name})": len(op.expression.steps) * result.shape.volume}


@ROWS.row(AXES, Composed)
def axes(op: Composed, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """As for any operator on elements."""
    return binary.axes(binary.Add(), inputs, outputs)  # only the facts are looked at
