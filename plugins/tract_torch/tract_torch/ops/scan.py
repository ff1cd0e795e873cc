"""Loops over the slices of tensors: `scan` and `map`."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scan import (
    FullInput,
    FullOutput,
    InputMapping,
    OutputMapping,
    Scan,
    ScannedInput,
    StateInput,
    forgetful,
)
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.bodies import Body, tensors_only
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "higher_order.scan")
def scan(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """A graph that runs once per slice along the first axis, and hands states from one run to the next"""
    states = tensors_only("what scan starts from", call.operands("init"))
    return _loop(call, wire, "combine_fn", states)


@aten(ROWS, "higher_order.map_impl")
def map_impl(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """A graph that runs once per slice along the first axis"""
    return _loop(call, wire, "f", [])


def _loop(call: Call, wire: NodeWiring, graph: str, states: Sequence[OutletId]) -> Sequence[OutletId]:
    """The last states, and what the iterations give besides, along a new first axis."""
    slices = tensors_only("what is cut into slices", call.operands("xs"))
    made = Body(call, wire)
    before = made.own("state", [wire.fact(state) for state in states])
    facts = [wire.fact(x) for x in slices]
    cut = made.own("slice", [fact.with_shape((1, *fact.shape[1:])) for fact in facts])
    whole = [wire_one(made.model, f"slice{slot}.whole", RmAxis(0), one) for slot, one in enumerate(cut)]
    outputs = made.call(call.graph(graph), [*before, *whole, *made.outer(call.operands("additional_inputs"))])
    count = len(states)
    joined = [
        wire_one(made.model, made.model.unique_name(f"output{slot}"), AddAxis(0), one)
        for slot, one in enumerate(outputs[count:])
    ]
    made.model.set_outputs([*outputs[:count], *joined])
    inputs: list[InputMapping] = [*(StateInput() for _ in states), *(ScannedInput(0) for _ in slices)]
    inputs += [FullInput() for _ in made.captured]
    mappings = [OutputMapping(state=True, last=slot) for slot in range(count)]
    mappings += [OutputMapping(full=FullOutput(count + slot, 0)) for slot in range(len(joined))]
    op = Scan(forgetful(made.model), tuple(inputs), tuple(mappings), reset_every_turn=True)
    return wire.ops(op, *states, *slices, *made.captured)
