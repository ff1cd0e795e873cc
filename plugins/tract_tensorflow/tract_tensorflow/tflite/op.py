"""An operator of a file in an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.analysis.inference import InferenceOp
from tract_core.errors import FactError
from tract_core.frontend.names import named
from tract_core.frontend.rows import call_row, outlets_of
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import TfliteFn
from tract_tensorflow.tflite.wiring import Wiring


@frozen
class TfliteOp(InferenceOp):
    """An operator, and the function that wires it.

    ``slots``: for each of its inputs, which input of this one it is; ``None`` for one left out. ``names``: what the
    nodes that yield its outputs are called.
    """

    node: TfliteNode
    function: TfliteFn
    slots: tuple[int | None, ...]
    names: tuple[str, ...]

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__

    @property
    def name(self) -> str:
        """The operator's name in the file."""
        return self.node.op_type

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """The core operators; the node that yields an output gets the name of its tensor. Raises TractError."""
        given = [None if slot is None else inputs[slot] for slot in self.slots]
        before = len(model.nodes)
        result = call_row(model.registry, self.function, self.node, Wiring(model, name, given, self.node))
        outlets = outlets_of(model, self.function, result)
        for slot, (tensor, outlet) in enumerate(zip(self.node.outputs, outlets, strict=False)):
            found = None if outlet is None else model.outlet_fact(outlet)
            if found is not None and tensor.kind not in (None, found.datum_type):
                raise FactError(f"output {slot} is {found}, and the file says that it is {tensor.type_name}")
        return named(model, self.names, outlets, before)
