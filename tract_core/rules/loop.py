"""Rules for loops that end when a condition says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tract_core.data import Constant
from tract_core.model.forgotten import refusing
from tract_core.model.graph import OutletId
from tract_core.model.identity import origin
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.loop import Loop
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.scan import hold_constant

ROWS = Rows()


@rewrites(Loop)
def unchanged_value(model: TypedModel, node: TypedNode, op: Loop) -> ModelPatch | None:
    """A carried value that the body hands on as it is -> a value that every iteration sees"""
    body = op.body
    kept = [slot for slot in range(op.carried) if origin(body, body.outputs[1 + slot]) == body.inputs[1 + slot]]
    if not kept:
        return None
    changing = [slot for slot in range(op.carried) if slot not in kept]
    order = [*changing, *kept, *range(op.carried, len(body.inputs) - 1)]
    lighter = body.clone()
    lighter.inputs = [body.inputs[0], *(body.inputs[1 + slot] for slot in order)]
    inputs = [*node.inputs[:2], *(node.inputs[2 + slot] for slot in order)]
    patch, new = _with_outputs(model, node, replace(op, body=lighter, carried=len(changing)), inputs, dropped=kept)
    for slot in kept:
        patch.shunt(OutletId(node.id, slot), patch.tap(node.inputs[2 + slot]))
    for old, outlet in new.items():
        patch.shunt(OutletId(node.id, old), outlet)
    return patch


@rewrites(Loop)
def unread_value(model: TypedModel, node: TypedNode, op: Loop) -> ModelPatch | None:
    """A value that no iteration hands on and that nothing reads -> left out, and what the body computed for it alone"""
    unread = [
        slot
        for slot in range(op.carried, len(node.outputs))
        if not node.outputs[slot].successors and OutletId(node.id, slot) not in model.outputs
    ]
    lost = _symbols(node, unread) - _symbols(node, [slot for slot in range(len(node.outputs)) if slot not in unread])
    if not unread or len(unread) == len(node.outputs) or not lost <= model.given_symbols():
        return None  # other operators may rely on the sizes that only these outputs tell
    last, body = op.last - sum(slot < op.carried + op.last for slot in unread), op.body.clone()
    patch, new = _with_outputs(model, node, replace(op, body=body, last=last), node.inputs, dropped=unread)
    if refusing(body) != refusing(op.body):
        return None
    for old, outlet in new.items():
        patch.shunt(OutletId(node.id, old), outlet)
    return patch


@rewrites(Loop)
def constants_into_loop(model: TypedModel, node: TypedNode, op: Loop) -> ModelPatch | None:
    """A constant that every iteration sees -> a constant of the body"""
    values = [model.outlet_fact(outlet).value for outlet in node.inputs[2 + op.carried :]]
    moved = {slot: value for slot, value in enumerate(values, 1 + op.carried) if isinstance(value, Constant)}
    if not moved:
        return None
    body = op.body.clone()
    for slot, value in moved.items():
        hold_constant(body, body.inputs[slot], value)
    body.inputs = [outlet for slot, outlet in enumerate(body.inputs) if slot not in moved]
    body.compact()
    inputs = [outlet for slot, outlet in enumerate(node.inputs, -1) if slot not in moved]
    patch = ModelPatch(model)
    patch.retire(node.id)
    outlets = patch.wire(node.name, replace(op, body=body), [patch.tap(outlet) for outlet in inputs])
    for slot, outlet in enumerate(outlets):
        patch.shunt(OutletId(node.id, slot), outlet)
    return patch


def _symbols(node: TypedNode, slots: Iterable[int]) -> frozenset[str]:
    return frozenset[str]().union(*(node.outputs[slot].fact.shape.symbols() for slot in slots))


def _with_outputs(
    model: TypedModel, node: TypedNode, op: Loop, inputs: Iterable[OutletId], *, dropped: list[int]
) -> tuple[ModelPatch, dict[int, OutletId]]:
    """A patch with the loop without some of its outputs, and for each of the others the outlet in the patch."""
    places = [slot for slot in range(len(node.outputs)) if slot not in dropped]
    op.body.set_outputs([op.body.outputs[0], *(op.body.outputs[1 + slot] for slot in places)])
    op.body.compact()
    patch = ModelPatch(model)
    patch.retire(node.id)
    lighter = replace(op, shapes=tuple(op.shapes[slot] for slot in places))
    outlets = patch.wire(node.name, lighter, [patch.tap(outlet) for outlet in inputs])
    return patch, dict(zip(places, outlets, strict=True))


for rule in (unchanged_value, unread_value, constants_into_loop):
    ROWS.add(DECLUTTER, rule.name, rule)
