"""Decide which nodes go together. Nothing is computed here."""

from __future__ import annotations

from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import ElementWise
from tract_core.runtime.host import HostNode, host_nodes


def steps_of(model: TypedModel) -> list[tuple[HostNode, ...]]:
    """The nodes of a model in an order of execution: one by one, or chains of element-wise ones.

    In a chain, each node but the last has one reader, the next one, and its tensor is no output of the model.
    """
    steps: list[tuple[HostNode, ...]] = []
    chain_ending_in: dict[int, int] = {}
    for node in host_nodes(model):
        before = chain_ending_in.pop(node.inputs[0].node, None) if is_element_wise(node) else None
        if before is None:
            steps.append((node,))
        else:
            steps[before] = (*steps[before], node)
        if is_element_wise(node) and _is_read_once(model, node):
            chain_ending_in[node.node] = len(steps) - 1 if before is None else before
    return steps


def is_element_wise(node: HostNode) -> bool:
    """Whether any part of the output comes out of the same part of the input, whatever the sizes."""
    return isinstance(node.op, ElementWise) and node.meaning is not None and not node.needs and node.state is None


def _is_read_once(model: TypedModel, node: HostNode) -> bool:
    (outlet,) = model.nodes[node.node].outlets()
    return len(model.outlet(outlet).successors) == 1 and outlet not in model.outputs
