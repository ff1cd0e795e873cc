"""Choose which tensors of a model are its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from tract_core.errors import GraphError, TransformError
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.knowledge import Conditions
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.plugins.parameters import texts


@frozen
class SelectOutputs:
    """Make other tensors the outputs of the model."""

    name: ClassVar[str] = "select_outputs"
    outputs: Sequence[str] = field(
        metadata={"doc": "names of tensors: of an output, a node, or its second output as 'name:1'"}
    )

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with these outputs, in this order. Raises TransformError for names that are not there."""
        result = model.clone()
        before = set(result.outputs)
        result.set_outputs(_find_all(result, self.name, "outputs", self.outputs))
        _retire_checks(result, before)
        conditions, result.conditions = result.conditions, Conditions()
        result.conditions = conditions.about(_symbols_needed(result))
        result.prune()
        return result


def _retire_checks(model: TypedModel, before: set[OutletId]) -> None:
    """Let the nodes go that check what led to the outputs of ``before`` and leads to none now.

    One that nothing reads stays: what it checks went into facts, of which nobody knows any more where they are used.
    """
    needed = set(model.order_of_edges(model.outputs))
    for node in model.live_nodes():
        led_on = any(outlet.successors for outlet in node.outputs) or not before.isdisjoint(node.outlets())
        if node.op.checks and led_on and node.id not in needed:
            node.op = Identity()


def _symbols_needed(model: TypedModel) -> frozenset[str]:
    """The symbols of the inputs and of what the outputs need."""
    nodes = [model.nodes[node] for node in model.eval_order()]
    return model.given_symbols().union(*(fact.symbols() for node in nodes for fact in model.output_facts(node)))


@frozen
class SelectInputs:
    """Make other tensors the inputs of the model; what computed them is cut off."""

    name: ClassVar[str] = "select_inputs"
    inputs: Sequence[str] = field(
        metadata={"doc": "names of tensors: of an input, a node, or its second output as 'name:1'"}
    )

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with these inputs, in this order.

        Raises TransformError for names that are not there, for constants, and when an input that is left out is still
        needed.
        """
        result = model.clone()
        chosen = _find_all(result, self.name, "inputs", self.inputs)
        result.inputs = [outlet if outlet in result.inputs else _cut(result, outlet) for outlet in chosen]
        _retire_what_is_cut_off(result)
        _refuse_if_needed(result)
        result.prune()
        for outlet in result.inputs:
            label = result.outlet_labels.get(outlet)
            if label is not None and not result.has_node(label):
                result.rename(outlet.node, label)
        return result


def _retire_what_is_cut_off(model: TypedModel) -> None:
    """Let the nodes go that check what is computed from inputs that are none any more, where the outputs need none."""
    needed = set(model.order_of_edges(model.outputs))
    for node in model.live_nodes():
        if node.op.checks and node.id not in needed and _sources_missing(model, [OutletId(node.id)]):
            node.op = Identity()


def _sources_missing(model: TypedModel, targets: Sequence[OutletId]) -> list[str]:
    """The names of the sources that ``targets`` are computed from and that are no inputs."""
    nodes = [model.nodes[node_id] for node_id in model.order_of_edges(targets)]
    return [node.name for node in nodes if isinstance(node.op, TypedSource) and OutletId(node.id) not in model.inputs]


def _cut(model: TypedModel, outlet: OutletId) -> OutletId:
    """A source that takes the place of a computed tensor, under its name."""
    fact, label = model.outlet_fact(outlet), model.outlet_name(outlet)
    if fact.value is not None:
        raise TransformError(f"select_inputs: {label!r} is a constant, which cannot become an input")
    source = OutletId(model.add_node(label, TypedSource(fact), [fact]).id)
    for inlet in list(model.outlet(outlet).successors):
        model.reconnect(inlet, source)
    model.outputs = [source if one == outlet else one for one in model.outputs]
    model.outlet_labels.pop(outlet, None)
    model.set_label(source, label)
    return source


def _refuse_if_needed(model: TypedModel) -> None:
    missing = [
        model.nodes[node_id].name
        for node_id in model.eval_order()
        if isinstance(model.nodes[node_id].op, TypedSource) and OutletId(node_id) not in model.inputs
    ]
    if missing:
        raise TransformError(
            f"select_inputs: the outputs still need {', '.join(map(repr, missing))}",
            hint="name these inputs too, or choose outputs that do not need them first, with select_outputs",
        )


def _find_all(model: TypedModel, transform: str, key: str, names: Sequence[str]) -> list[OutletId]:
    wanted = texts(transform, key, names)
    if not wanted:
        raise TransformError(f"{transform}: {key!r} is empty, wanted at least one name")
    twice = [name for name in wanted if wanted.count(name) > 1]
    if twice:
        raise TransformError(f"{transform}: {twice[0]!r} is named twice")
    try:
        return [model.outlet_named(name) for name in wanted]
    except GraphError as error:
        raise TransformError(f"{transform}: {error.problem}", hint=error.hint) from None
