"""Take out of loops what each slice goes through by itself: computed for all slices at once, in front or behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.questions import node_axes
from tract_core.model.rewriter import rewrites
from tract_core.model.substitute import substitute_in
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.scan import FullInput, Scan, ScannedInput
from tract_core.plugins.keys import DECLUTTER, STATE
from tract_core.plugins.tables import Rows
from tract_core.rules.scan import is_read, may_go_unread

ROWS = Rows()


@frozen
class Slices:
    """A tensor of the body that goes through a loop slice by slice: its outlet, and the axis of size 1 it is cut on."""

    outlet: OutletId
    axis: int


@rewrites(Scan)
def batch_in_front(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """Scan over f(slice of x) -> Scan over slices of f(x), where the sliced axis passes through f"""
    body = op.body
    place = {outlet: slot for slot, outlet in enumerate(body.inputs)}
    for node_id in body.eval_order():
        inner = body.nodes[node_id]
        scanned = [(place[o], op.inputs[place[o]]) for o in inner.inputs if o in place and not _is_full(op, place[o])]
        if not scanned or not _can_move(body, inner, op, place, [slot for slot, _ in scanned]):
            continue
        mappings = [mapping for _, mapping in scanned if isinstance(mapping, ScannedInput)]
        if len(mappings) < len(scanned) or len({mapping.chunk for mapping in mappings}) != 1:
            continue
        cut = {
            place_of: mapping.axis for place_of, mapping in zip([slot for slot, _ in scanned], mappings, strict=True)
        }
        axis = _axis_behind(body, inner, {body.inputs[slot]: axis for slot, axis in cut.items()})
        if axis is not None and abs(mappings[0].chunk) == 1:
            patch = _pulled_in_front(model, node, op, inner, ScannedInput(axis, mappings[0].chunk))
            if patch is not None:
                return patch
    return None


def _is_full(op: Scan, slot: int) -> bool:
    return isinstance(op.inputs[slot], FullInput)


def _can_move(
    body: TypedModel, inner: TypedNode, op: Scan, place: Mapping[OutletId, int], moving: Sequence[int]
) -> bool:
    """Whether what ``inner`` reads, but for the inputs ``moving``, is there outside of the loop too."""
    if len(inner.outputs) != 1 or not inner.op.pure or body.registry[STATE].find(type(inner.op)) is not None:
        return False
    if OutletId(inner.id) in body.inputs or not inner.inputs:
        return False
    return all(
        (place[o] in moving or _is_full(op, place[o])) if o in place else isinstance(body.nodes[o.node].op, Const)
        for o in inner.inputs
    )


def _axis_behind(body: TypedModel, inner: TypedNode, cut: Mapping[OutletId, int]) -> int | None:
    """Where the axis on which the tensors ``cut`` are cut stands in the output; ``None`` when it does not pass."""
    mapping = node_axes(body, inner)
    if mapping is None:
        return None
    names = {term[cut[o]] for o, term in zip(inner.inputs, mapping.inputs, strict=True) if o in cut}
    if len(names) != 1:
        return None
    (name,) = names
    others = [term for o, term in zip(inner.inputs, mapping.inputs, strict=True) if o not in cut]
    if mapping.outputs[0].count(name) != 1 or any(name in term for term in others):
        return None
    return mapping.outputs[0].index(name)


def _pulled_in_front(
    model: TypedModel, node: TypedNode, op: Scan, inner: TypedNode, mapping: ScannedInput
) -> ModelPatch | None:
    patch = ModelPatch(model)
    taps = [patch.tap(outlet) for outlet in node.inputs]
    outside = dict(zip(op.body.inputs, taps, strict=True))
    whole = _wired_outside(model, node, op, inner, (patch, outside))
    if whole is None:
        return None
    body = op.body.clone()
    fact = body.outlet_fact(OutletId(inner.id))
    source = body.add_source(f"{inner.name}.slice", fact)
    _reroute(body, OutletId(inner.id), source)
    body.compact()
    try:
        outlets = patch.wire(node.name, replace(op, body=body, inputs=(*op.inputs, mapping)), [*taps, whole])
    except TractError:
        return None
    patch.retire(node.id)
    for old, new in zip(node.outlets(), outlets, strict=True):
        patch.shunt(old, new)
    return patch


def _reroute(body: TypedModel, old: OutletId, new: OutletId) -> None:
    for inlet in list(body.outlet(old).successors):
        body.reconnect(inlet, new)
    body.outputs = [new if outlet == old else outlet for outlet in body.outputs]


def _wired_outside(
    model: TypedModel,
    node: TypedNode,
    op: Scan,
    inner: TypedNode,
    where: tuple[ModelPatch, Mapping[OutletId, OutletId]],
) -> OutletId | None:
    """``inner`` wired in the patch, on what its inputs are there; ``None`` when it does not take the larger tensors."""
    patch, outside = where
    sizes = op.sizes(model.input_facts(node))
    inputs: list[OutletId] = []
    for outlet in inner.inputs:
        if outlet in outside:
            inputs.append(outside[outlet])
            continue
        constant = op.body.nodes[outlet.node]
        inputs.append(patch.wire(f"{node.name}.{constant.name}", substitute_in(constant.op, sizes), [])[0])
    try:
        (result,) = patch.wire(f"{node.name}.{inner.name}", substitute_in(inner.op, sizes), inputs)
    except TractError:
        return None
    return result


@rewrites(Scan)
def batch_behind(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """Scan that gives f(h), slice by slice -> f of what a Scan that gives h gives"""
    if op.skip:
        return None  # what is not run gives zeros, which f may change
    body = op.body
    place = {outlet: slot for slot, outlet in enumerate(body.inputs)}
    for index, mapping in enumerate(op.outputs):
        outlet = body.outputs[index]
        inner = body.nodes[outlet.node]
        if mapping.full is None or mapping.state or mapping.last is not None or abs(mapping.full.chunk) != 1:
            continue
        if body.outlet(outlet).successors or body.outputs.count(outlet) > 1:
            continue
        found = _slices_before(body, op, inner, place, mapping.full.axis)
        patch = None if found is None else _pulled_behind(model, node, op, index, found)
        if patch is not None:
            return patch
    return None


def _slices_before(
    body: TypedModel, op: Scan, inner: TypedNode, place: Mapping[OutletId, int], axis: int
) -> Slices | None:
    """The one tensor of the body that ``inner`` reads and that changes from slice to slice."""
    changing = {
        o
        for o in inner.inputs
        if not (_is_full(op, place[o]) if o in place else isinstance(body.nodes[o.node].op, Const))
    }
    if len(changing) != 1 or len(inner.outputs) != 1 or not inner.op.pure:
        return None
    (outlet,) = changing
    if outlet in place or body.registry[STATE].find(type(inner.op)) is not None:
        return None
    found = [at for at in range(body.outlet_fact(outlet).rank) if _axis_behind(body, inner, {outlet: at}) == axis]
    return Slices(outlet, found[0]) if len(found) == 1 else None


def _pulled_behind(model: TypedModel, node: TypedNode, op: Scan, index: int, found: Slices) -> ModelPatch | None:
    full = op.outputs[index].full
    inner = op.body.nodes[op.body.outputs[index].node]
    assert full is not None  # the caller asked
    outputs = list(op.outputs)
    outputs[index] = replace(outputs[index], full=replace(full, axis=found.axis))
    body = op.body.clone()
    body.outputs[index] = found.outlet
    body.compact()
    patch = ModelPatch(model)
    taps = [patch.tap(outlet) for outlet in node.inputs]
    try:
        outlets = patch.wire(node.name, replace(op, body=body, outputs=tuple(outputs)), taps)
    except TractError:
        return None
    outside = {**dict(zip(op.body.inputs, taps, strict=True)), found.outlet: outlets[full.slot]}
    whole = _wired_outside(model, node, op, inner, (patch, outside))
    if whole is None or patch.fact(whole).shape != node.outputs[full.slot].fact.shape:
        return None
    patch.retire(node.id)
    for slot, old in enumerate(node.outlets()):
        patch.shunt(old, whole if slot == full.slot else outlets[slot])
    return patch


@rewrites(Scan)
def handed_on(model: TypedModel, node: TypedNode, op: Scan) -> ModelPatch | None:
    """Scan that gives the slices of x as they are -> x"""
    for index, mapping in enumerate(op.outputs):
        outlet, full = op.body.outputs[index], mapping.full
        if full is None or op.skip or outlet not in op.body.inputs:
            continue
        slot = op.body.inputs.index(outlet)
        old = OutletId(node.id, full.slot)
        may_go = is_read(model, old) and may_go_unread(model, node, old)
        if may_go and op.inputs[slot] == ScannedInput(full.axis, full.chunk) and abs(full.chunk) == 1:
            patch = ModelPatch(model)
            patch.shunt(old, patch.tap(node.inputs[slot]))
            return patch
    return None


for rule in (handed_on, batch_in_front, batch_behind):
    ROWS.add(DECLUTTER, rule.name, rule)
