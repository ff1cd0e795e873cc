"""Hand the state of loops to whoever runs the model, who gives it back in the next turn.

The names are those of the tract engines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tract_core.frozen import frozen
from tract_core.model.graph import InletId, Outlet, OutletId
from tract_core.model.identity import Identity
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.scan import Scan
from tract_core.runtime.streams import add_whole


@frozen
class ForceScanExternalState:
    """Have every loop begin each turn with its state inputs, which the caller hands from turn to turn."""

    name: ClassVar[str] = "force_scan_external_state"

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with its loops so; those inside of other operators stay as they are."""
        result = model.clone()
        for node in result.live_nodes():
            if isinstance(node.op, Scan):
                node.op = replace(node.op, external_state=True)
        return result


@frozen
class ExportScanState:
    """Make the state of loops of one iteration inputs and outputs of the model: what comes out goes in the next time.

    Such a loop is no loop any more when the model is simplified.
    """

    name: ClassVar[str] = "export_scan_state"

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with an input ``LOOP.state_in`` and an output ``LOOP.state_out`` for each state of its loops.

        Several of one loop are numbered: ``LOOP.state_in.0``. They come behind the inputs and outputs that there are,
        in the order in which the loops run. A loop stays as it is if it has more iterations than one, skips some,
        forgets its state by itself (``reset_every_turn``), begins with what an input of the model decides, or is inside
        of another operator.
        """
        result = model.clone()
        inputs, outputs = len(result.inputs), len(result.outputs)
        for node in [result.nodes[place] for place in result.eval_order()]:
            if isinstance(node.op, Scan) and _fits(result, node, node.op):
                export_states(result, node, node.op)
        add_whole(result, len(result.inputs) - inputs, len(result.outputs) - outputs)
        result.prune()
        result.check_consistency()
        return result


def _fits(model: TypedModel, node: TypedNode, op: Scan) -> bool:
    if op.skip or op.reset_every_turn or not op.state_inputs or op.iterations(model.input_facts(node)) != 1:
        return False
    needed = model.order_of_edges([node.inputs[slot] for slot in op.state_inputs])
    return not any(isinstance(model.nodes[place].op, TypedSource) for place in needed)


def export_states(model: TypedModel, node: TypedNode, op: Scan) -> list[OutletId]:
    """Give a loop a source for each state, the last inputs of the model, and its last value, the last outputs.

    Returns what the states began with.
    """
    began = [node.inputs[slot] for slot in op.state_inputs]
    mappings, slots = list(op.outputs), len(node.outputs)
    for slot in op.state_outputs:
        if mappings[slot].last is None:
            mappings[slot] = replace(mappings[slot], last=slots)
            slots += 1
    states = len(op.state_inputs)
    numbers = [""] if states == 1 else [f".{place}" for place in range(states)]
    for slot, number in zip(op.state_inputs, numbers, strict=True):
        fact = model.outlet_fact(node.inputs[slot]).without_value()
        source = model.add_source(model.unique_name(f"{node.name}.state_in{number}"), fact)
        model.reconnect(InletId(node.id, slot), source)
    op = replace(op, outputs=tuple(mappings), external_state=True)
    node.op = op
    for slot, fact in enumerate(model.facts_for(op, model.input_facts(node))):
        if slot == len(node.outputs):
            node.outputs.append(Outlet(fact))
        node.outputs[slot].fact = fact
    for slot, number in zip(op.state_outputs, numbers, strict=True):
        name, last = model.unique_name(f"{node.name}.state_out{number}"), mappings[slot].last
        assert last is not None  # given above
        model.outputs += model.wire_node(name, Identity(), [OutletId(node.id, last)])
    return began
