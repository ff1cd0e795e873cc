"""How running sums stream: each pulse goes on from the last value of the one before."""

from __future__ import annotations

from dataclasses import replace

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import Running, neutral
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, Running)
def pulse_running(op: Running, node: PulseNode) -> Wire | None:
    """A loop with one turn per pulse, in the order of additions that the whole signal would have.

    Where only a run tells the size of a pulse, there is one turn per position.
    """
    stream = node.wires[0].stream
    if stream is None or stream.axis != op.axis:
        return None
    if op.reverse:
        raise CannotStream("it adds up from the end of the signal to its beginning", hint="add up from the beginning")
    x, fact = node.wires[0].outlet, node.fact(node.wires[0])
    if stream.delay:
        x = node.masked(node.wires[0], neutral(op, fact.datum_type)).outlet
    narrow = fact.datum_type.is_float() and fact.datum_type.itemsize < 4
    if narrow:
        x = node.wire(Cast(DatumType.F32), x, suffix=".wide")
    found = _wire_loop(op, node, x, ".loop" if narrow else "")
    return node.output(node.wire(Cast(fact.datum_type), found) if narrow else found, op.axis, stream.delay)


def _wire_loop(op: Running, node: PulseNode, x: OutletId, suffix: str) -> OutletId:
    fact = node.model.outlet_fact(x)
    shape = (*fact.shape[: op.axis], 1, *fact.shape[op.axis + 1 :])
    nothing = node.model.add_const(f"{node.name}.nothing", neutral(op, fact.datum_type).reshape((1,) * fact.rank))
    start = node.wire(MultiBroadcastTo(shape), nothing, suffix=".start")
    size = fact.shape[op.axis]
    count = 1 if is_symbolic(size) else int(size)
    part = fact.with_shape((*fact.shape[: op.axis], count, *fact.shape[op.axis + 1 :]))
    loop = Scan(
        _body(op, part, start=node.model.outlet_fact(start).without_value()),
        (ScannedInput(op.axis, count), StateInput()),
        (OutputMapping(full=FullOutput(0, op.axis, count)), OutputMapping(state=True)),
    )
    return node.wire(loop, x, start, suffix=suffix)


def _body(op: Running, fact: TypedFact, start: TypedFact) -> TypedModel:
    """A pulse, and what came before it added up, to the running sums and the last of them."""
    body, count = TypedModel(), int(fact.shape[op.axis])
    x, before = body.add_source("x", fact), body.add_source("before", start)
    joined = wire_one(body, "joined", TypedConcat(op.axis), before, x)
    sums = wire_one(body, "sums", replace(op, exclusive=False), joined)
    first = 0 if op.exclusive else 1
    outputs = wire_one(body, "outputs", Slice(op.axis, first, first + count), sums)
    body.set_outputs([outputs, wire_one(body, "last", Slice(op.axis, count, count + 1), sums)])
    return body
