"""Wire a model anew, node by node: the one walk of all that make another model of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode

T = TypeVar("T")


def empty_twin(model: TypedModel) -> TypedModel:
    """A model without nodes that knows of sizes what ``model`` does, for one that is wired anew."""
    twin = model.empty_like()
    twin.symbols, twin.conditions = model.symbols.copy(), model.conditions.copy()
    twin.properties.update(model.properties)
    return twin


def translate(
    model: TypedModel,
    place: dict[OutletId, T],
    wire: Callable[[TypedNode, list[T]], Sequence[T] | None],
    targets: Sequence[OutletId] | None = None,
) -> None:
    """Wire every node that ``targets`` (the outputs) need, in an order in which inputs come before their readers.

    ``place``: what the tensors of ``model`` have become: outlets of the other model, or whatever stands for them. What
    is in it already, as the inputs, is not wired; the rest is filled in. ``wire``: takes a node and what its inputs
    have become, and returns what its outputs become, or ``None`` for a node that becomes nothing, nor do those behind.
    """
    for node_id in model.eval_order(targets):
        node = model.nodes[node_id]
        if OutletId(node_id) in place or not all(outlet in place for outlet in node.inputs):
            continue
        found = wire(node, [place[outlet] for outlet in node.inputs])
        if found is not None:
            place.update(zip(node.outlets(), found, strict=True))
