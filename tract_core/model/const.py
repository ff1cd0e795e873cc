"""Values that are part of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.data import Constant, Value
from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Const(TypedOp):
    """An array, or an array of sizes that the runtime turns into numbers when it binds the symbols."""

    value: Value

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the value, which carries the value."""
        return (TypedFact.of_value(self.value),)


@ROWS.row(REFERENCE, Const)
def reference(op: Const) -> Array:
    """The value itself. By then, sizes have become numbers."""
    return op.value.array


@ROWS.row(COST, Const)
def cost(op: Const, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Parameters held, by element type; sizes do not count."""
    if not isinstance(op.value, Constant):
        return {}
    return {f"PARAMS({outputs[0].datum_type.storage.name})": op.value.array.size}


@ROWS.row(AXES, Const)
def axes(op: Const, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The axes come from nowhere."""
    return AxesMapping.disconnected([], [outputs[0].rank])
