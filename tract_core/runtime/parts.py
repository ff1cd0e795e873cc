"""Parts of a model that run as one: a single node, or several that a runtime fuses, in the model or in a body of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tract_core.frozen import frozen
from tract_core.model.bodies import bodies_of

if TYPE_CHECKING:
    from tract_core.model.graph import OutletId
    from tract_core.model.typed import TypedModel, TypedNode

BodyPath = tuple[tuple[int, int], ...]
"""The way to a body: from the model inwards, the id of a node and the number of its body. Empty for the model."""


@frozen
class Part:
    """Nodes that run as one, by their ids, in order of execution; ``body`` says in which model those ids count."""

    nodes: tuple[int, ...]
    body: BodyPath = ()

    def within(self, model: TypedModel) -> list[TypedNode]:
        """The nodes. ``model``: the one from which ``body`` leads inwards."""
        graph = body_at(model, self.body)
        return [graph.nodes[node] for node in self.nodes]

    def names(self, model: TypedModel) -> tuple[str, ...]:
        """The names of the nodes, in a body as ``loop/sum``, in the second of several bodies as ``choice[1]/sum``."""
        around = prefix_of(model, self.body)
        return tuple(f"{around}{node.name}" for node in self.within(model))

    def ops(self, model: TypedModel) -> tuple[str, ...]:
        """The names of the operators."""
        return tuple(node.op.name for node in self.within(model))

    def results(self, model: TypedModel) -> list[OutletId]:
        """The tensors that others than these nodes read, or that are outputs of the model or the body."""
        graph = body_at(model, self.body)
        outputs = frozenset(graph.outputs)
        return [
            outlet
            for node in self.within(model)
            for outlet in node.outlets()
            if len(self.nodes) == 1
            or outlet in outputs
            or any(reader.node not in self.nodes for reader in graph.outlet(outlet).successors)
        ]


def body_at(model: TypedModel, body: BodyPath) -> TypedModel:
    """The body to which a path leads."""
    for node, number in body:
        model = bodies_of(model.nodes[node].op)[number]
    return model


def prefix_of(model: TypedModel, body: BodyPath) -> str:
    """What stands before the names of the nodes of a body, as ``loop/``."""
    parts: list[str] = []
    for node, number in body:
        bodies = bodies_of(model.nodes[node].op)
        parts.append(f"{model.nodes[node].name}[{number}]/" if len(bodies) > 1 else f"{model.nodes[node].name}/")
        model = bodies[number]
    return "".join(parts)


def bodies_within(model: TypedModel, path: BodyPath = ()) -> Iterator[tuple[BodyPath, TypedModel]]:
    """The model, and every body that it needs at any depth, each with the way to it, in order of execution."""
    yield path, model
    for node in model.eval_order():
        for number, body in enumerate(bodies_of(model.nodes[node].op)):
            yield from bodies_within(body, (*path, (node, number)))
