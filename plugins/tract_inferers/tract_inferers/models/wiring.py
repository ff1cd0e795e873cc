"""Models wired anew, with the agents of each input and each output along axis 0."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import is_symbolic, symbol
from tract_core.errors import Unsupported
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_inferers.models.follow import Trail, followed


def in_front(model: TypedModel, axes: Sequence[int], name: str) -> TypedModel:
    """The model, whose inputs have the agents along ``axes``, with those of inputs and outputs along axis 0.

    ``name``: the symbol that stands for their number. Raises Unsupported for an output without one axis of agents.
    """
    trail = followed(model, axes, name)
    places = [_output_axis(model, outlet, trail, name) for outlet in model.outputs]
    if places.count(0) == len(places) and not any(axes):
        return model
    target = empty_twin(model)
    sources = (_source(target, model, outlet, axis) for outlet, axis in zip(model.inputs, axes, strict=True))
    wired = dict(zip(model.inputs, sources, strict=True))
    translate(model, wired, lambda node, inputs: target.wire_node(node.name, node.op, inputs))
    outputs = [_moved(target, wired[outlet], axis, name) for outlet, axis in zip(model.outputs, places, strict=True)]
    target.set_outputs(outputs)
    name_outputs(target, model)
    return target


def _source(target: TypedModel, model: TypedModel, outlet: OutletId, axis: int) -> OutletId:
    fact, name = model.outlet_fact(outlet), model.outlet_name(outlet)
    shape = list(fact.shape)
    shape.insert(0, shape.pop(axis))
    source = target.add_source(name, TypedFact.of(fact.datum_type, shape))
    if not axis:
        return source
    (moved,) = target.wire_node(f"{name}.agents", MoveAxis(0, axis), [source])
    return moved


def _moved(target: TypedModel, outlet: OutletId, axis: int | None, name: str) -> OutletId:
    """The output with the agents along axis 0: moved there, or, where it is the same for all, given to each."""
    if axis == 0:
        return outlet
    shape = target.outlet_fact(outlet).shape
    op = MultiBroadcastTo((symbol(name), *shape[1:])) if axis is None else MoveAxis(axis, 0)
    (moved,) = target.wire_node(f"{target.outlet_name(outlet)}.agents", op, [outlet])
    return moved


def name_outputs(target: TypedModel, model: TypedModel) -> None:
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
