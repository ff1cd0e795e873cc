"""Branches and loops."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import is_symbolic
from tract_core.errors import CorruptModel, FactError, TractError
from tract_core.model.choices import inside, is_about_facts, questions
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.if_then_else_wiring import Body, wire_if
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
from tract_onnx.body import read_body
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "If")
def if_then_else(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """One of two graphs; the right one takes the node's place when the condition is known"""
    condition = wire.input(0)
    taken = _taken(wire, condition)
    if taken is not None:
        body = read_body(node, wire, node.graph("then_branch" if taken else "else_branch"))
        return inline_body(wire.model, body.model, body.captured)
    since = questions()
    then, other = (_branch(node, wire, name) for name in ("then_branch", "else_branch"))
    return wire.through(wire_if, condition, then, other, since=since)


def _taken(wire: Wiring, condition: OutletId) -> bool | None:
    """Whether the condition holds, where that is known. Raises FactError unless it has one element."""
    value = wire.fact(condition).value
    if value is None:
        return None
    if value.array.size != 1:
        raise FactError(f"the condition of If has {value.array.size} elements, 1 is wanted")
    element = value.array.reshape(()).item()
    if is_symbolic(element):
        element = wire.model.symbols.simplify(element)
    return None if is_symbolic(element) else bool(element)


def _branch(node: OnnxNode, wire: Wiring, name: str) -> Body | TractError:
    """A branch, or why it cannot be typed. Raises TractError for what is wrong with it whatever the sizes."""
    try:
        with inside(name):
            body = read_body(node, wire, node.graph(name), apart=True)
    except TractError as error:
        if not is_about_facts(error):
            raise
        return error
    return body.model, body.captured


@onnx_op(ROWS, "Scan", since=9)
def scan(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """A graph that runs once per slice of some inputs, and hands states from one run to the next"""
    states, slices, cuts = _inputs(node, wire)
    facts = [wire.fact(state).without_value() for state in states]
    pieces = [_resized(wire.fact(x), cut.axis, (1,)) for x, cut in zip(slices, cuts, strict=True)]
    whole = [_resized(fact, cut.axis, ()) for fact, cut in zip(pieces, cuts, strict=True)]
    inner = read_body(node, wire, node.graph("body"), [*facts, *whole])
    body = wire.model.empty_like()
    read = [body.add_source(f"state{slot}", fact) for slot, fact in enumerate(facts)]
    for slot, (fact, cut) in enumerate(zip(pieces, cuts, strict=True)):
        read.append(wire_one(body, f"slice{slot}.whole", RmAxis(cut.axis), body.add_source(f"slice{slot}", fact)))
    for slot, outlet in enumerate(inner.captured):
        read.append(body.add_source(f"outer{slot}", wire.fact(outlet).without_value()))
    outputs = _outputs(node, wire, body, inline_body(body, inner.model, read), len(states))
    inputs: list[InputMapping] = [*(StateInput() for _ in states), *cuts, *(FullInput() for _ in inner.captured)]
    external = any(wire.constant(state) is None for state in states)
    op = Scan(forgetful(body), tuple(inputs), outputs, external_state=external)
    return wire.ops(op, *states, *slices, *inner.captured)


def _inputs(node: OnnxNode, wire: Wiring) -> tuple[list[OutletId], list[OutletId], list[ScannedInput]]:
    """The initial states, the tensors that are cut into slices, and how these are cut."""
    count, inputs, wanted = node.int("num_scan_inputs"), wire.all_inputs(), len(node.graph("body").input)
    if not 1 <= count <= len(inputs) or len(inputs) != wanted:
        raise CorruptModel(f"Scan has {len(inputs)} inputs, {count} of them cut into slices; its body has {wanted}")
    axes, backward = _per_slice(node, "input", count)
    states, slices = inputs[:-count], inputs[-count:]
    cuts = [
        ScannedInput(wire.axis(axis, wire.rank(x)), -1 if back else 1)
        for x, axis, back in zip(slices, axes, backward, strict=True)
    ]
    return states, slices, cuts


def _outputs(
    node: OnnxNode, wire: Wiring, body: TypedModel, outputs: Sequence[OutletId], states: int
) -> tuple[OutputMapping, ...]:
    """Set the outputs of ``body``, and say what becomes of them: states end as outputs, the others are joined."""
    if len(outputs) < states:
        raise CorruptModel(f"the body of Scan has {len(outputs)} outputs and {states} states")
    mappings = [OutputMapping(state=True, last=slot) for slot in range(states)]
    written = list(outputs[:states])
    axes, backward = _per_slice(node, "output", len(outputs) - states)
    for slot, (outlet, given, back) in enumerate(zip(outputs[states:], axes, backward, strict=True)):
        axis = wire.axis(given, body.outlet_fact(outlet).rank + 1)
        written.append(wire_one(body, f"output{slot}", AddAxis(axis), outlet))
        mappings.append(OutputMapping(full=FullOutput(states + slot, axis, -1 if back else 1)))
    body.set_outputs(written)
    return tuple(mappings)


def _per_slice(node: OnnxNode, side: str, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes along which tensors are cut or joined, and for each whether it goes backwards."""
    axes, backward = (node.ints(f"scan_{side}_{what}", (0,) * count) for what in ("axes", "directions"))
    if not len(axes) == len(backward) == count:
        raise CorruptModel(f"Scan has {count} {side}s, {len(axes)} axes and {len(backward)} directions for them")
    return axes, backward


def _resized(fact: TypedFact, axis: int, sizes: tuple[int, ...]) -> TypedFact:
    """``fact`` with one axis replaced by others of these sizes."""
    return fact.with_shape((*fact.shape[:axis], *sizes, *fact.shape[axis + 1 :]))
