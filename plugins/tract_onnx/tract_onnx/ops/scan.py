"""Scan: a graph that runs once per slice.

In version 8 the inputs are batches of sequences, which may have different lengths: a loop over the batch has the loop
over the slices inside. From version 9 on there is no batch, and any axis may be cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.pad import Pad, PadConstant
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
from tract_core.ops.slice import wire_dyn_slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_onnx.body import Body, read_body
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring, zero_of

ROWS = Rows()


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
    count, inputs, wanted = node.integer("num_scan_inputs"), wire.all_inputs(), len(node.graph("body").input)
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
    axes, backward = (node.integers(f"scan_{side}_{what}", (0,) * count) for what in ("axes", "directions"))
    if not len(axes) == len(backward) == count:
        raise CorruptModel(f"Scan has {count} {side}s, {len(axes)} axes and {len(backward)} directions for them")
    return axes, backward


def _resized(fact: TypedFact, axis: int, sizes: tuple[int, ...]) -> TypedFact:
    """``fact`` with one axis replaced by others of these sizes."""
    return fact.with_shape((*fact.shape[:axis], *sizes, *fact.shape[axis + 1 :]))


@onnx_op(ROWS, "Scan")
def scan_of_batch(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """For each entry of the batch, a graph that runs once per slice and hands states from one run to the next"""
    count, given = node.integer("num_scan_inputs"), [wire.input(slot) for slot in range(1, len(wire.slots))]
    graph, lengths = node.graph("body"), wire.optional_input(0)
    if not 1 <= count <= len(given) or len(given) != len(graph.input):
        raise CorruptModel(
            f"Scan has {len(given)} inputs, {count} of them cut into slices; its body has {len(graph.input)}"
        )
    backward = node.integers("directions", (0,) * count)
    if len(backward) != count or any(wire.rank(x) < 1 for x in given) or any(wire.rank(x) < 2 for x in given[-count:]):
        raise CorruptModel(
            f"Scan has {count} inputs to cut, {len(backward)} directions, and {len(given)} inputs with a batch axis"
        )
    states = [_without_axes(wire.fact(x), 1) for x in given[:-count]]
    pieces = [_without_axes(wire.fact(x), 2) for x in given[-count:]]
    inner = read_body(node, wire, graph, [*states, *pieces])
    inputs = [*given, *([] if lengths is None else [lengths]), *inner.captured]
    body = wire.model.empty_like()
    entries = _sources(body, wire, inputs, len(given) + (lengths is not None))
    outputs = _one_entry(body, inner, entries, _Cut(len(states), tuple(backward), lengths is not None))
    body.set_outputs([wire_one(body, f"batch{slot}", AddAxis(0), outlet) for slot, outlet in enumerate(outputs)])
    batched: list[InputMapping] = [ScannedInput(0) for _ in range(len(inputs) - len(inner.captured))]
    joined = tuple(OutputMapping(full=FullOutput(slot, 0)) for slot in range(len(outputs)))
    op = Scan(forgetful(body), (*batched, *(FullInput() for _ in inner.captured)), joined, reset_every_turn=True)
    return wire.ops(op, *inputs)


@frozen
class _Cut:
    """How many states there are, in which direction each input is cut, and whether the lengths are given."""

    states: int
    backward: tuple[int, ...]
    has_lengths: bool


def _sources(body: TypedModel, wire: Wiring, inputs: Sequence[OutletId], batched: int) -> list[OutletId]:
    """The inputs of the body for one entry of the batch, those with a batch axis without it."""
    entries: list[OutletId] = []
    for slot, x in enumerate(inputs):
        fact = wire.fact(x).without_value()
        if slot < batched:
            source = body.add_source(f"entry{slot}", fact.with_shape((1, *fact.shape[1:])))
            entries.append(wire_one(body, f"entry{slot}.alone", RmAxis(0), source))
        else:
            entries.append(body.add_source(f"outer{slot}", fact))
    return entries


def _one_entry(body: TypedModel, inner: Body, entries: Sequence[OutletId], cut: _Cut) -> list[OutletId]:
    """The loop over the slices of one entry; returns the last states and the joined outputs."""
    first, last = cut.states, cut.states + len(cut.backward)
    states, whole, outer = entries[:first], entries[first:last], entries[last + cut.has_lengths :]
    longest = body.outlet_fact(whole[0]).shape[0]
    slices = list(whole)
    if cut.has_lengths:
        zero = body.add_const("start", 0)
        for slot, x in enumerate(whole):
            slices[slot] = wire_dyn_slice(body, f"used{slot}", x, 0, start=zero, end=entries[last])
    read = [*states, *slices, *outer]
    model, outputs = _body_of_slices(body, inner, [body.outlet_fact(x).without_value() for x in read], cut)
    inputs: list[InputMapping] = [StateInput() for _ in states]
    inputs += [ScannedInput(0, -1 if back else 1) for back in cut.backward]
    inputs += [FullInput() for _ in outer]
    found = body.wire_node("entry", Scan(model, tuple(inputs), outputs, external_state=True), read)
    return [*found[:first], *(_padded(body, f"all{slot}", x, longest) for slot, x in enumerate(found[first:]))]


def _body_of_slices(
    around: TypedModel, inner: Body, facts: Sequence[TypedFact], cut: _Cut
) -> tuple[TypedModel, tuple[OutputMapping, ...]]:
    """The graph with slices of one position as inputs and outputs, and what becomes of its outputs."""
    body = around.empty_like()
    read: list[OutletId] = []
    for slot, fact in enumerate(facts):
        is_slice = cut.states <= slot < cut.states + len(cut.backward)
        source = body.add_source(f"x{slot}", fact.with_shape((1, *fact.shape[1:])) if is_slice else fact)
        read.append(wire_one(body, f"x{slot}.whole", RmAxis(0), source) if is_slice else source)
    results = inline_body(body, inner.model, read)
    if len(results) < cut.states:
        raise CorruptModel(f"the body of Scan has {len(results)} outputs and {cut.states} states")
    joined = [wire_one(body, f"y{slot}", AddAxis(0), x) for slot, x in enumerate(results[cut.states :])]
    body.set_outputs([*results[: cut.states], *joined])
    ends = [OutputMapping(state=True, last=slot) for slot in range(cut.states)]
    return body, (*ends, *(OutputMapping(full=FullOutput(cut.states + slot, 0)) for slot in range(len(joined))))


def _padded(body: TypedModel, name: str, x: OutletId, longest: Dim) -> OutletId:
    """Zeros behind what a shorter sequence gives."""
    fact = body.outlet_fact(x)
    missing = longest - fact.shape[0]
    if missing == 0:
        return x
    pads = ((0, missing), *((0, 0) for _ in fact.shape[1:]))
    zero = zero_of(fact.datum_type)
    return wire_one(body, name, Pad(pads, PadConstant(zero)), x)


def _without_axes(fact: TypedFact, count: int) -> TypedFact:
    return fact.with_shape(fact.shape[count:])
