"""What the tables say of one node of a model."""

from __future__ import annotations

from collections.abc import Mapping

from tract_core.dims import Dim
from tract_core.model.axes import AxesMapping
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import AXES, COST


def node_cost(model: TypedModel, node: TypedNode, sizes: Mapping[str, Dim] | None = None) -> dict[str, Dim]:
    """How many operations a node takes, by kind, possibly symbolic; empty when no row says so.

    ``sizes``: values of symbols, without which some rows, as that of a Fourier transform, have no formula.
    """
    facts = (model.input_facts(node), model.output_facts(node))
    inputs, outputs = ([fact.substitute(sizes or {}) for fact in one] for one in facts)
    return dict(model.registry.answer(COST, node.op, inputs, outputs) or {})


def node_axes(model: TypedModel, node: TypedNode) -> AxesMapping | None:
    """Which axis of which input of a node becomes which axis of which output; ``None`` when no row says so."""
    return model.registry.answer(AXES, node.op, model.input_facts(node), model.output_facts(node))
