"""A node of an ONNX file in an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.analysis.inference import InferenceOp
from tract_core.frontend.names import named
from tract_core.frontend.rows import call_row, outlets_of
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_onnx.node import OnnxNode
from tract_onnx.registry import DEFAULT_DOMAIN, OnnxFn
from tract_onnx.wiring import Wiring


@frozen
class OnnxOp(InferenceOp):
    """A node, and the function that wires it.

    ``slots``: for each input of the ONNX node, which input of this one it is; ``None`` for an optional one left out.
    ``outer``: the names of the values that the graphs inside the node capture; they are the inputs that follow.
    """

    node: OnnxNode
    function: OnnxFn
    slots: tuple[int | None, ...]
    outer: tuple[str, ...] = ()

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__

    @property
    def name(self) -> str:
        """The operator's name in the file, with its domain where that is not the default one."""
        return _display(self.node)

    def name_in_file(self) -> str:
        """The name of the ONNX node, which may have none."""
        return self.node.name

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """The core operators. The node that yields an output of the ONNX node gets that output's name.

        Raises TractError; whatever else goes wrong in a row of the table becomes a ModelError.
        """
        captured = dict(zip(self.outer, inputs[len(inputs) - len(self.outer) :], strict=True))
        given = [None if slot is None else inputs[slot] for slot in self.slots]
        before = len(model.nodes)
        result = call_row(model.registry, self.function, self.node, Wiring(model, name, given, captured))
        return named(model, self.node.output_names, outlets_of(model, self.function, result), before)


def _display(node: OnnxNode) -> str:
    return node.op_type if node.domain == DEFAULT_DOMAIN else f"{node.domain}.{node.op_type}"
