"""More frames before and after a signal: copies of its first and of its last one.

Models of speech look at frames around each one. Files of some exporters leave it to the caller to give them frames
before the first and after the last; with a context, a model takes the bare signal.
"""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.analysis.inference import InferenceModel, InferenceOp
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.pad import Pad, PadEdge


@frozen
class EdgeContext(InferenceOp):
    """``before`` copies of the first frame and ``after`` of the last one; frames lie along the first axis."""

    before: int
    after: int

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """A `Pad`. Raises FactError where the first axis need not be that of frames: for other ranks than 1 and 2."""
        fact = model.outlet_fact(inputs[0])
        if fact.rank not in (1, 2):
            raise FactError(
                f"frames lie along the first axis of an input with one or two axes, this one is {fact}",
                hint="name the inputs that get a context, as in --edge-left-context NAME=5",
            )
        pads = ((self.before, self.after), (0, 0))
        return model.wire_node(name, Pad(pads[: fact.rank], PadEdge()), inputs)


def add_edge_context(model: InferenceModel, outlet: OutletId, before: int, after: int) -> None:
    """Give whatever reads ``outlet``, an input of the model, that many frames more. The input itself stays as it is."""
    readers = list(model.outlet(outlet).successors)
    name = f"{model.outlet_name(outlet)}.context"
    kind = model.outlet_fact(outlet).datum_type
    node = model.add_node(name, EdgeContext(before, after), [InferenceFact(kind)], [outlet])
    for inlet in readers:
        model.reconnect(inlet, OutletId(node.id))
