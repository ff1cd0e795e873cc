"""Models wired anew, with the agents of each input and each output along axis 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.dims import is_symbolic, symbol
from tract_core.errors import Unsupported
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import MoveAxis
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_inferers.models.follow import LOST, Trail, followed


def in_front(model: TypedModel, axes: Sequence[int], name: str) -> TypedModel:
    """The model, whose inputs have the agents along ``axes``, with those of inputs and outputs along axis 0.

    ``name``: the symbol that stands for their number. Raises Unsupported for an output without one axis of agents.
    """
    trail = followed(model, axes, name)
    places = [_output_axis(model, outlet, trail, name) for outlet in model.outputs]
    if places.count(0) == len(places) and not any(axes):
        return model
    target = model.empty_like()
    target.symbols, target.conditions = model.symbols.copy(), model.conditions.copy()
    wired: dict[OutletId, OutletId] = {}
    for outlet, axis in zip(model.inputs, axes, strict=True):
        wired[outlet] = _source(target, model, outlet, axis)
    for node_id in model.eval_order():
        node = model.nodes[node_id]
        if not isinstance(node.op, TypedSource):
            wired.update(zip(node.outlets(), _wire(target, node, node.op, wired), strict=True))
    outputs = [_moved(target, wired[outlet], axis, name) for outlet, axis in zip(model.outputs, places, strict=True)]
    target.set_outputs(outputs)
    _name_outputs(target, model)
    target.properties.update(model.properties)
    return target


def with_symbol(model: TypedModel, axes: Sequence[int], name: str) -> TypedModel:
    """The model for one agent, whose inputs have it along ``axes``, with the symbol ``name`` there in the place of 1.

    Raises Unsupported, with the node, where it cannot be told where the agents stand.
    """
    target = model.empty_like()
    target.symbols = model.symbols.copy()
    target.symbols.add(name)
    target.conditions = model.conditions.copy()
    trail = followed(model, axes, None)
    wired: dict[OutletId, OutletId] = {}
    for outlet, axis in zip(model.inputs, axes, strict=True):
        wired[outlet] = target.add_source(model.outlet_name(outlet), _with_size(model, outlet, axis, name))
    for node_id in model.eval_order():
        node = model.nodes[node_id]
        if isinstance(node.op, TypedSource):
            continue
        found = [trail.axes[outlet] for outlet in node.outlets()]
        op = _stretched(node.op, found[0], name)
        wired.update(zip(node.outlets(), _wire(target, node, op, wired), strict=True))
        for outlet, axis in zip(node.outlets(), found, strict=True):
            if axis == LOST or (axis is not None and target.outlet_fact(wired[outlet]).shape[axis] != symbol(name)):
                problem = "is for one agent: behind it, it cannot be told where several would stand"
                hint = "BasicInferer takes it; or export it with an axis of agents"
                raise Unsupported(problem, where=f"node {node.name!r} ({node.op.name})", hint=hint)
    target.set_outputs(wired[outlet] for outlet in model.outputs)
    _name_outputs(target, model)
    target.properties.update(model.properties)
    return target


def _with_size(model: TypedModel, outlet: OutletId, axis: int, name: str) -> TypedFact:
    fact = model.outlet_fact(outlet)
    return fact.with_shape([*fact.shape[:axis], symbol(name), *fact.shape[axis + 1 :]])


def _stretched(op: TypedOp, axis: int | None, name: str) -> TypedOp:
    """The operator for several agents, where it names the size of their axis."""
    if isinstance(op, MultiBroadcastTo) and axis is not None and axis != LOST:
        return MultiBroadcastTo((*op.shape[:axis], symbol(name), *op.shape[axis + 1 :]))
    return op


def _source(target: TypedModel, model: TypedModel, outlet: OutletId, axis: int) -> OutletId:
    fact, name = model.outlet_fact(outlet), model.outlet_name(outlet)
    shape = list(fact.shape)
    shape.insert(0, shape.pop(axis))
    source = target.add_source(name, TypedFact.of(fact.datum_type, shape))
    if not axis:
        return source
    (moved,) = target.wire_node(f"{name}.agents", MoveAxis(0, axis), [source])
    return moved


def _wire(target: TypedModel, node: TypedNode, op: TypedOp, wired: Mapping[OutletId, OutletId]) -> Sequence[OutletId]:
    if isinstance(op, Const):
        return [target.add_const(node.name, op.value)]
    return target.wire_node(node.name, op, [wired[outlet] for outlet in node.inputs])


def _moved(target: TypedModel, outlet: OutletId, axis: int | None, name: str) -> OutletId:
    """The output with the agents along axis 0: moved there, or, where it is the same for all, given to each."""
    if axis == 0:
        return outlet
    shape = target.outlet_fact(outlet).shape
    op = MultiBroadcastTo((symbol(name), *shape[1:])) if axis is None else MoveAxis(axis, 0)
    (moved,) = target.wire_node(f"{target.outlet_name(outlet)}.agents", op, [outlet])
    return moved


def _name_outputs(target: TypedModel, model: TypedModel) -> None:
    """Let outputs have the names that they had. Those that are inputs, or another output, keep theirs."""
    for new, old in zip(target.outputs, model.outputs, strict=True):
        name = model.outlet_name(old)
        if target.outlet_name(new) != name and new not in target.inputs:
            target.set_label(new, name)


def _output_axis(model: TypedModel, outlet: OutletId, trail: Trail, name: str) -> int | None:
    """Where an output has the agents; ``None`` where it is the same for all, with a size of 1 in their place."""
    fact = model.outlet_fact(outlet)
    found = [axis for axis, size in enumerate(fact.shape) if size == symbol(name)]
    if len(found) == 1 and sum(map(is_symbolic, fact.shape)) == 1:
        return found[0]
    if trail.axes[outlet] is None and fact.shape[:1] == (1,):
        return None
    where = f"output {model.outlet_name(outlet)!r}"
    hint = "export it with one row for each agent, or leave it out: set_output_names(...)"
    raise Unsupported(f"{fact} does not have the size {name}, that of the agents, once", where=where, hint=hint)
