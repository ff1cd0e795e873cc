"""Loops that end when a condition says so: `while_loop`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.loop import wire_loop
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.bodies import Body, call_graph, flag, tensors_only
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "higher_order.while_loop")
def while_loop(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """A graph that runs as long as another one says so"""
    condition, step = call.graph("cond_fn"), call.graph("body_fn")
    carried = tensors_only("what while_loop carries", call.operands("carried_inputs"))
    more = call.operands("additional_inputs")
    (begin,) = call_graph(call, condition, wire.model, [*carried, *more])

    def body(facts: Sequence[TypedFact]) -> tuple[TypedModel, Sequence[OutletId]]:
        made = Body(call, wire)
        (_iteration,) = made.own("iteration", [TypedFact.of(DatumType.I64, ())])
        before, outer = made.own("carried", facts), made.outer(more)
        after = made.call(step, [*before, *outer])
        (again,) = made.call(condition, [*after, *outer])
        made.model.set_outputs([flag(NodeWiring(made.model, "again"), again), *after])
        return made.model, made.captured

    most = wire.const(Constant(np.array(np.iinfo(np.int64).max)))
    found = wire.through(wire_loop, most, flag(wire, begin), carried, make_body=body)
    return [one for one in found if one is not None]
