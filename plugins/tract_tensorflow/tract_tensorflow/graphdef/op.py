"""A node of a graph of TensorFlow in an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.analysis.inference import InferenceOp
from tract_core.frontend.names import named
from tract_core.frontend.rows import call_row, outlets_of
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import TensorflowFn
from tract_tensorflow.graphdef.wiring import GraphWiring, Mark


@frozen
class GraphOp(InferenceOp):
    """A node, and the function that wires it.

    ``slots``: for each input of the node, which input of this one it is; ``None`` for the handle of a variable.
    ``marks``: the inputs that are no tensors.
    """

    node: GraphNode
    function: TensorflowFn
    slots: tuple[int | None, ...]
    marks: Mapping[int, Mark]

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__

    @property
    def name(self) -> str:
        """The operator's name in the file."""
        return self.node.op_type

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """The core operators. The node that yields an output gets that output's name.

        Raises TractError; whatever else goes wrong in a row of the table becomes a ModelError.
        """
        given = [None if slot is None else inputs[slot] for slot in self.slots]
        before = len(model.nodes)
        result = call_row(model.registry, self.function, self.node, GraphWiring(model, name, given, self.marks))
        found = named(model, self.node.output_names, outlets_of(model, self.function, result), before)
        _keep_apart(model, found, before)
        return found


def _keep_apart(model: TypedModel, outputs: Sequence[OutletId], before: int) -> None:
    """Label what would be called as a later output of the node, ``NAME:1``, and is none: it is cast behind."""
    for node in model.nodes[before:]:
        for outlet in node.outlets()[1:]:
            if outlet not in outputs and outlet not in model.outlet_labels:
                model.set_label(outlet, f"{node.name}.{outlet.slot}")
