"""How operators with bodies stream: each body as a model of its own, where no stream decides what is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tract_core.dims import Dim
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.ops.if_then_else import Branch, IfThenElse, branch_sizes
from tract_core.ops.loop import Loop
from tract_core.ops.submodel import SubmodelOp
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.body import Body
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import LATE, CannotStream, Stream, Wire

ROWS = Rows()

_DECIDED: Final = "let a constant decide, or an input without the symbol"


@ROWS.row(PULSE, SubmodelOp)
def pulse_submodel(op: SubmodelOp, node: PulseNode) -> Sequence[Wire] | None:
    """The model over pulses, which keeps what its nodes keep."""
    if _all_whole(node):
        return None
    inner = Body(node, "its model", op.model, _read(node, node.wires), op.sizes(_facts(node)))
    return _wired(node, node.wire_all(SubmodelOp(inner.model), *(wire.outlet for wire in node.wires)), inner.streams)


@ROWS.row(PULSE, IfThenElse)
def pulse_if_then_else(op: IfThenElse, node: PulseNode) -> Sequence[Wire] | None:
    """The branch that is taken for the whole signal is taken for each pulse, and goes on from where it was."""
    if _all_whole(node):
        return None
    if node.wires[0].stream is not None or node.wires[0].outlet == LATE:
        raise CannotStream("which branch is taken depends on the signal", hint=_DECIDED)
    bodies = [_branch(node, "its then branch", op.then_branch), _branch(node, "its else branch", op.else_branch)]
    streams = [_common(node, slot, bodies) for slot in range(len(node.output_facts))]
    shapes = tuple(_of_pulse(node, *pair) for pair in zip(node.output_facts, streams, strict=True))
    then, other = (
        Branch(body.model, branch.inputs) for body, branch in zip(bodies, (op.then_branch, op.else_branch), strict=True)
    )
    outlets = node.wire_all(IfThenElse(then, other, shapes), *(wire.outlet for wire in node.wires))
    return _wired(node, outlets, streams)


def _branch(node: PulseNode, name: str, branch: Branch) -> Body:
    inputs = _read(node, [node.wires[slot] for slot in branch.inputs])
    return Body(node, name, branch.body, inputs, branch_sizes(name, branch, _facts(node)))


def _common(node: PulseNode, slot: int, bodies: Sequence[Body]) -> Stream | None:
    """How an output comes from either of two branches, the later one of which the other one waits for."""
    one, other = (body.streams[slot] for body in bodies)
    if one is None and other is None:
        return None
    shape = node.output_facts[slot].shape
    fits = one is not None and other is not None and one.axis == other.axis
    if not fits or not all(
        stream is None or node.are_equal(stream.length, shape[stream.axis]) for stream in (one, other)
    ):
        raise CannotStream(
            f"its branches do not give streams of one length and along one axis as output {slot}",
            hint="let both give as many positions along the signal",
        )
    assert one is not None
    assert other is not None
    latest = max(one.delay, other.delay)
    for body, stream in zip(bodies, (one, other), strict=True):
        body.later(slot, latest - stream.delay)
    return replace(one, delay=latest)


@ROWS.row(PULSE, Loop)
def pulse_loop(op: Loop, node: PulseNode) -> Sequence[Wire] | None:
    """Each pulse has its own loop, where iterations look at nothing but the same position."""
    if _all_whole(node):
        return None
    if any(wire.stream is not None or wire.outlet == LATE for wire in node.wires[:2]):
        raise CannotStream("how many iterations there are depends on the signal", hint=_DECIDED)
    wires, delay = node.in_step(node.wires)
    number = op.body.outlet_fact(op.body.inputs[0])
    body = Body(node, "its body", op.body, [(number, None), *_read(node, wires[2:])], op.sizes(_facts(node)))
    condition, *found = body.streams
    if condition is not None:
        raise CannotStream("whether it goes on depends on the signal", hint=_DECIDED)
    if body.keeps or any(stream is not None and stream.delay != delay for stream in found):
        raise CannotStream(
            "its iterations look at other positions, of which each iteration would have to keep its own",
            hint="write the iterations one after the other, if their number is known",
        )
    carried = [wire.stream for wire in wires[2 : 2 + op.carried]]
    if any(_place(one) != _place(other) for one, other in zip(found, carried, strict=False)):
        raise CannotStream("its iterations hand on something that comes in another way than what they begin with")
    first = op.carried + op.last
    streams = [
        stream if stream is None or slot < first else replace(stream, axis=stream.axis + 1)
        for slot, stream in enumerate(found)
    ]
    shapes = tuple(_of_pulse(node, *pair) for pair in zip(node.output_facts, streams, strict=True))
    outlets = node.wire_all(replace(op, body=body.model, shapes=shapes), *(wire.outlet for wire in wires))
    return _wired(node, outlets, streams)


def _all_whole(node: PulseNode) -> bool:
    return all(wire.stream is None for wire in node.wires)


def _facts(node: PulseNode) -> list[TypedFact]:
    return [node.input_fact(slot) for slot in range(len(node.wires))]


def _read(node: PulseNode, wires: Sequence[Wire]) -> list[tuple[TypedFact, Stream | None]]:
    """What a body takes. Raises CannotStream where that is only known at the end of the signal."""
    if any(wire.outlet == LATE for wire in wires):
        raise CannotStream("it reads what is only known when the signal has ended")
    return [(node.fact(wire), wire.stream) for wire in wires]


def _wired(node: PulseNode, outlets: Sequence[OutletId], streams: Sequence[Stream | None]) -> list[Wire]:
    return [
        Wire(outlet) if stream is None else node.output(outlet, stream.axis, stream.delay, slot)
        for slot, (outlet, stream) in enumerate(zip(outlets, streams, strict=True))
    ]


def _place(stream: Stream | None) -> tuple[int, int] | None:
    return None if stream is None else (stream.axis, stream.delay)


def _of_pulse(node: PulseNode, fact: TypedFact, stream: Stream | None) -> tuple[Dim, ...]:
    """The sizes of an output in one pulse."""
    shape = list(fact.shape)
    if stream is not None:
        shape[stream.axis] = node.rate.growth(shape[stream.axis])
    return tuple(shape)
