"""Rules for loops: run them less often, hand them less, keep outside what need not be inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tract_core.data import Constant
from tract_core.errors import TractError
from tract_core.model.bodies import bodies_of
from tract_core.model.const import Const
from tract_core.model.forgotten import refusing
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.scan import FullInput, OutputMapping, Scan, ScannedInput
from tract_core.plugins.keys import DECLUTTER, STATE
from tract_core.plugins.tables import Rows

ROWS = Rows()

T = TypeVar("T")


@rewrites(Scan)
def single_iteration(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """Scan of one iteration that keeps no state between turns -> the nodes of its body"""
    facts = model.input_facts(node)
    if op.skip or op.iterations(facts) != 1 or not _forgets(op) or not _whole_slices(op, model, node):
        return None
    patch = ModelPatch(model)
    inputs = [patch.tap(outlet) for outlet in node.inputs]
    try:
        results = inline_body(patch.model, op.body, inputs, op.sizes(facts), prefix=f"{node.name}.")
    except TractError:
        return None  # the body cannot run, which it says when it does
    patch.retire(node.id)
    for mapping, result in zip(op.outputs, results, strict=True):
        for slot in slots_of(mapping):
            patch.shunt(OutletId(node.id, slot), result)
    return patch


def _forgets(op: Scan) -> bool:
    """Whether a turn leaves nothing for the next one: neither the loop's own state nor one inside the body."""
    if any(op.body.registry[STATE].find(type(node.op)) is not None for node in op.body.live_nodes()):
        return False
    return op.reset_every_turn or op.external_state or not op.state_inputs


def _whole_slices(op: Scan, model: TypedModel, node: TypedNode) -> bool:
    """Whether the one slice of each scanned input is that input itself."""
    pairs = zip(op.inputs, model.input_facts(node), strict=True)
    return all(
        fact.shape[mapping.axis] == abs(mapping.chunk) for mapping, fact in pairs if isinstance(mapping, ScannedInput)
    )


def slots_of(mapping: OutputMapping) -> list[int]:
    """The outputs of the loop that one output of the body becomes."""
    slots = [mapping.full.slot if mapping.full is not None else None, mapping.last]
    return [slot for slot in slots if slot is not None]


@rewrites(Scan)
def constants_into_body(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """A constant that every iteration sees in full -> a constant of the body"""
    moved = [
        slot
        for slot, (mapping, outlet) in enumerate(zip(op.inputs, node.inputs, strict=True))
        if isinstance(mapping, FullInput) and isinstance(model.outlet_fact(outlet).value, Constant)
    ]
    if not moved:
        return None
    body = op.body.clone()
    for slot in moved:
        value = model.outlet_fact(node.inputs[slot]).value
        assert isinstance(value, Constant)  # chosen above
        hold_constant(body, body.inputs[slot], value)
    return _without_inputs(model, node, replace(op, body=body), moved)


def hold_constant(body: TypedModel, source: OutletId, value: Constant) -> None:
    """Have a body read a constant where it read one of its inputs, which stays, unread."""
    held = body.add_const(f"{body.outlet_name(source)}.value", value)
    for inlet in list(body.outlet(source).successors):
        body.reconnect(inlet, held)
    body.outputs = [held if outlet == source else outlet for outlet in body.outputs]


@rewrites(Scan)
def unused_inputs(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """An input that the body does not read -> left out, as long as one is left to count the iterations"""
    needed = set(op.body.eval_order())
    scanned = [slot for slot, mapping in enumerate(op.inputs) if isinstance(mapping, ScannedInput)]
    unread = [
        slot
        for slot, (mapping, source) in enumerate(zip(op.inputs, op.body.inputs, strict=True))
        if isinstance(mapping, (FullInput, ScannedInput)) and source.node not in needed
    ]
    if scanned and set(scanned) <= set(unread):
        unread.remove(scanned[0])
    return _without_inputs(model, node, op, unread) if unread else None


def _without_inputs(model: TypedModel, node: TypedNode, op: Scan, slots: Sequence[int]) -> ModelPatch:
    body = op.body.clone()
    body.inputs = _without(body.inputs, slots)
    body.compact()
    lighter = replace(op, body=body, inputs=tuple(_without(op.inputs, slots)))
    return ModelPatch.replace_op(model, node, lighter, _without(node.inputs, slots))


def _without(values: Sequence[T], places: Sequence[int]) -> list[T]:
    return [value for place, value in enumerate(values) if place not in places]


@rewrites(Scan)
def unread_outputs(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """An output that nothing reads -> left out, and what the body computed for it alone"""
    read = [is_read(model, outlet) for outlet in node.outlets()]
    if all(read) or not any(read):
        return None
    places = {slot: place for place, slot in enumerate(slot for slot, wanted in enumerate(read) if wanted)}
    kept = [_with_slots(mapping, places.get) for mapping in op.outputs]
    used = [index for index, mapping in enumerate(kept) if mapping.state or slots_of(mapping)]
    body = op.body.clone()
    body.set_outputs([body.outputs[index] for index in used])
    body.compact()
    if refusing(body) != refusing(op.body):
        return None
    lighter = replace(op, body=body, outputs=tuple(kept[index] for index in used))
    patch = ModelPatch(model)
    outlets = patch.wire(node.name, lighter, [patch.tap(outlet) for outlet in node.inputs])
    patch.retire(node.id)
    for slot, place in places.items():
        patch.shunt(OutletId(node.id, slot), outlets[place])
    return patch


def is_read(model: TypedModel, outlet: OutletId) -> bool:
    """Whether a node reads an outlet, or the model gives it."""
    return bool(model.outlet(outlet).successors) or outlet in model.outputs


def may_go_unread(model: TypedModel, node: TypedNode, outlet: OutletId) -> bool:
    """Whether an output of a loop may be left unread: another one is read, or no iteration refuses what it sees."""
    if any(is_read(model, other) for other in node.outlets() if other != outlet):
        return True
    return not any(map(refusing, bodies_of(node.op)))


def _with_slots(mapping: OutputMapping, place: Callable[[int], int | None]) -> OutputMapping:
    """The mapping with the outputs of the loop at other places; those that are at none are left out."""
    full = mapping.full
    if full is not None:
        slot = place(full.slot)
        full = None if slot is None else replace(full, slot=slot)
    return replace(mapping, full=full, last=None if mapping.last is None else place(mapping.last))


@rewrites(Scan)
def constant_outputs(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """The last value of an output that is a constant of the body -> that constant, where an iteration is sure to run"""
    if op.skip or model.known.less_or_equal(1, op.iterations(model.input_facts(node))) is not True:
        return None
    for index, mapping in enumerate(op.outputs):
        inner = op.body.producer(op.body.outputs[index]).op
        if (
            mapping.last is None
            or mapping.state
            or not isinstance(inner, Const)
            or not isinstance(inner.value, Constant)
        ):
            continue
        old = OutletId(node.id, mapping.last)
        if not is_read(model, old) or not may_go_unread(model, node, old):
            continue
        patch = ModelPatch(model)
        patch.shunt(old, patch.model.add_const(f"{node.name}.{mapping.last}", inner.value))
        return patch
    return None


for rule in (single_iteration, constants_into_body, unused_inputs, unread_outputs, constant_outputs):
    ROWS.add(DECLUTTER, rule.name, rule)
