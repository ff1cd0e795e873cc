"""Branches: `torch.cond`."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.if_then_else import Branch, IfThenElse
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.bodies import Body, flag
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "higher_order.cond")
def cond(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """One of two graphs"""
    condition = flag(wire, call.operand("pred", wire, DatumType.BOOL))
    bodies: list[Body] = []
    for name in ("true_fn", "false_fn"):
        body = Body(call, wire)
        body.model.set_outputs(body.call(call.graph(name), body.outer(call.operands("operands"))))
        bodies.append(body)
    read = list(dict.fromkeys(outlet for body in bodies for outlet in body.captured))
    branches = [Branch(body.model, tuple(read.index(one) + 1 for one in body.captured)) for body in bodies]
    shapes = tuple(tuple(call.dim_of(size) for size in result.shape) for result in call.results)
    return wire.ops(IfThenElse(branches[0], branches[1], shapes), condition, *read)
