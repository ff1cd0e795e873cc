"""A model as an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.bodies import OpWithBodies, body_cost, sizes_outside
from tract_core.model.connections import axes_of_model
from tract_core.model.fact import TypedFact
from tract_core.model.session import Session
from tract_core.model.typed import TypedModel
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class SubmodelOp(OpWithBodies):
    """The outputs of ``model`` for the inputs given. What its nodes keep between turns is kept."""

    model: TypedModel
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The facts of the model's outputs. Raises FactError, naming the input, when one does not fit the model."""
        outside = self.sizes(inputs)
        return tuple(
            self.model.outlet_fact(outlet).substitute(outside).without_value() for outlet in self.model.outputs
        )

    def sizes(self, inputs: Sequence[TypedFact]) -> dict[str, Dim]:
        """What the symbols of the model are outside. Raises FactError when an input does not fit the model."""
        arity(self, inputs, len(self.model.inputs))
        outside: dict[str, Dim] = {}
        for slot, fact in enumerate(inputs):
            found = sizes_outside(self.model, slot, fact, outside)
            if found is None:
                outlet = self.model.inputs[slot]
                wanted, name = self.model.outlet_fact(outlet), self.model.outlet_name(outlet)
                raise FactError(f"SubmodelOp: input {slot} ({name!r}) is {fact}, the model wants {wanted}")
            outside = found
        return outside


class SubmodelState:
    """The running state of the inner model."""

    def __init__(self, op: SubmodelOp, session: Session) -> None:
        self.inner = session.plan_of(op.model).spawn()

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """One turn of the inner model."""
        return tuple(self.inner.run(inputs, symbols=session.symbols))

    def freeze(self) -> Any:
        """A snapshot of the inner model's state."""
        return self.inner.freeze()

    def thaw(self, frozen: Any) -> None:
        """Go back to a snapshot."""
        self.inner.thaw(frozen)


@ROWS.row(STATE, SubmodelOp)
def submodel_state(op: SubmodelOp, session: Session) -> SubmodelState:
    """The inner model, before its first turn."""
    return SubmodelState(op, session)


@ROWS.row(COST, SubmodelOp)
def cost(op: SubmodelOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """What the inner model costs."""
    return body_cost(op.model, op.sizes(inputs))


@ROWS.row(AXES, SubmodelOp)
def axes(op: SubmodelOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The axes that pass through the whole inner model."""
    return axes_of_model(op.model)
