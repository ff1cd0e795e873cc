"""Running sums and their like as loops, for those who have no operator of them."""

from __future__ import annotations

from math import log
from typing import Final

from tract_core.data import Constant
from tract_core.errors import TractError
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Eq, Lt, Max, Min, Mul, Ne, Or, Sub
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cumsum import CumLogSumExp, CumMax, CumMin, CumProd, CumSum, Running, neutral
from tract_core.ops.elementwise import Exp, Ln
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput

_MOST: Final = 16
"""Nodes of a body; none of these loops has as many."""


def running_loop(op: Running, x: TypedFact) -> Scan:
    """The loop over slices of ``x``, whose second input is what is joined with the first of them, of size 1 there.

    f16 and bf16 are joined as they are: cast them before. Raises FactError for what the operator does not take.
    """
    op.output_facts([x])
    body = TypedModel()
    piece = x.without_value().with_shape((*x.shape[: op.axis], 1, *x.shape[op.axis + 1 :]))
    new, before = (body.add_source(name, piece) for name in ("x", "before"))
    joined = _joined(op, NodeWiring(body, "joined"), before, new)
    chunk = -1 if op.reverse else 1
    full = FullOutput(0, op.axis, chunk)
    body.set_outputs([joined, before] if op.exclusive else [joined])
    outputs = [OutputMapping(state=True, full=None if op.exclusive else full)]
    if op.exclusive:
        outputs.append(OutputMapping(full=full))
    return Scan(body, (ScannedInput(op.axis, chunk), StateInput()), tuple(outputs), reset_every_turn=True)


def _joined(op: Running, wire: NodeWiring, before: OutletId, x: OutletId) -> OutletId:
    if isinstance(op, CumSum):
        return wire.op(Add(), before, x)
    if isinstance(op, CumProd):
        return wire.op(Mul(), before, x)
    if isinstance(op, CumLogSumExp):
        return _log_of_sum(wire, before, x)
    extreme = Max() if isinstance(op, CumMax) else Min()
    if not wire.dtype(x).is_float():
        return wire.op(extreme, before, x)
    pair = (before, x) if isinstance(op, CumMax) else (x, before)
    further = wire.op(Or(), wire.op(Lt(), *pair), wire.op(Ne(), x, x))  # others pass over what is no number
    equal = wire.select(wire.op(Eq(), before, x), wire.op(extreme, before, x), before)
    return wire.select(further, x, equal)


def _log_of_sum(wire: NodeWiring, a: OutletId, b: OutletId) -> OutletId:
    """As numpy.logaddexp: the larger one, and the rest relative to it, of which equal infinities have none."""
    larger, smaller = wire.op(Max(), a, b), wire.op(Min(), a, b)
    rest = wire.op(Exp(), wire.op(Sub(), smaller, larger))
    total = wire.op(Add(), larger, wire.op(Ln(), wire.op(Add(), wire.scalar(1, a), rest)))
    return wire.select(wire.op(Eq(), a, b), wire.op(Add(), a, wire.scalar(log(2), a)), total)


def running_of(loop: Scan, x: TypedFact) -> Running | None:
    """The operator of which `running_loop` makes this loop; ``None`` for any other one."""
    if len(loop.inputs) != 2 or not isinstance(loop.inputs[0], ScannedInput) or loop.skip:
        return None
    if sum(1 for _ in loop.body.live_nodes()) > _MOST:
        return None
    axis, reverse = loop.inputs[0].axis, loop.inputs[0].chunk < 0
    for kind in (CumSum, CumProd, CumMax, CumMin, CumLogSumExp):
        for exclusive in (False, True):
            op = kind(axis, exclusive, reverse)
            try:
                wanted = running_loop(op, x)
            except TractError:
                continue
            alike = (loop.inputs, loop.outputs) == (wanted.inputs, wanted.outputs)
            if alike and same_model(loop.body, wanted.body.declutter()):
                return op
    return None


def begins_so(model: TypedModel, start: OutletId, op: Running) -> bool:
    """Whether a tensor is all `neutral` to the operator."""
    node = model.producer(start)
    if isinstance(node.op, MultiBroadcastTo):
        node = model.producer(node.inputs[0])
    value = node.op.value if isinstance(node.op, Const) else None
    if not isinstance(value, Constant):
        return False
    first = neutral(op, value.datum_type).tobytes()
    return bool(value.array.size) and {one.tobytes() for one in value.array.reshape(-1)} == {first}
