"""An operator of a file in an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.analysis.inference import InferenceOp
from tract_core.errors import FactError, Unsupported
from tract_core.frontend.rows import call_row, outlets_of
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_one
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
        return [
            self._named(model, slot, outlets[slot] if slot < len(outlets) else None, before)
            for slot in range(len(self.names))
        ]

    def _named(self, model: TypedModel, slot: int, outlet: OutletId | None, before: int) -> OutletId:
        tensor, wanted = self.node.outputs[slot], self.names[slot]
        if outlet is None:
            raise Unsupported(f"output {slot}, {wanted!r}, is read, and it is not computed here")
        fact = model.outlet_fact(outlet)
        if tensor.kind is not None and fact.datum_type is not tensor.kind:
            raise FactError(f"output {slot} is {fact}, and the file says that it is {tensor.type_name}")
        if outlet.slot > 0:
            model.set_label(outlet, wanted)
            return outlet
        current = model.nodes[outlet.node].name
        if outlet.node < before or (current != wanted and current in self.names):
            return wire_one(model, wanted, Identity(), outlet)  # it has a name already
        if current != wanted:
            model.rename(outlet.node, wanted)
        return outlet
