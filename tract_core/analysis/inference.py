"""The inference model: a file's own nodes, with whatever the file and the user said about types and shapes.

Its operators know one thing: how to wire themselves, in core operators, into a `TypedModel`. Facts come out of that
wiring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.data import Constant
from tract_core.dims import SymbolScope
from tract_core.errors import InputError, MissingOperator
from tract_core.frozen import frozen
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import Graph, Node, Outlet, OutletId
from tract_core.model.op import Op
from tract_core.model.typed import TypedModel

if TYPE_CHECKING:
    from tract_core.plugins.registry import Registry


class InferenceOp(Op):
    """An operator of a file, before types and shapes are known."""

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """Add core operators to ``model`` that compute this one, the last named ``name``; returns the outputs.

        Raises TractError when the inputs do not fit, or when something must be known that is not.
        """
        raise NotImplementedError

    def name_in_file(self) -> str:
        """What the file calls the node, where that is not what it calls the tensor that the node computes."""
        return ""


@frozen
class Source(InferenceOp):
    """An input of the model. Its fact is that of its outlet."""

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """Never called: the analysis adds sources itself, as only it knows their facts."""
        raise NotImplementedError


@frozen
class KnownTensor(InferenceOp):
    """A constant of the file. ``value``: what it is."""

    value: Constant

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """A `Const`."""
        return (model.add_const(name, self.value),)


@frozen
class Unknown(InferenceOp):
    """An operator of the file that nothing here can wire. The analysis reports all of them at once.

    ``node_name``: what the file calls the node, where that is not the name of what it computes. ``op_name``: what
    the file calls the operator. ``reason``: why it cannot be wired; ``hint``: what to do about it.
    """

    op_name: str
    reason: str
    hint: str | None = None
    node_name: str = ""

    @property
    def name(self) -> str:
        """What the file calls the operator."""
        return self.op_name

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """Raises MissingOperator, always."""
        raise MissingOperator(self.reason, hint=self.hint)

    def name_in_file(self) -> str:
        """The field ``node_name``."""
        return self.node_name


InferenceNode = Node[InferenceFact, InferenceOp]


def place_of(node: InferenceNode) -> str:
    """A node, as messages name it: by the file's own name for it."""
    return f"node {node.op.name_in_file() or node.name!r} ({node.op.name})"


class InferenceModel(Graph[InferenceFact, InferenceOp]):
    """A model with minimum or partial type information.

    The fact of an outlet in the graph is a contract: what an input is, and what whoever sets it demands of another
    tensor. What a file says of the tensors that its nodes compute is a claim, which counts where the operators leave
    something open. What `analyse` finds is kept apart from both. `outlet_fact` shows the best of the three.

    ``strict_facts``: a claim that the operators contradict is an error, and not only set aside. ``has_warned``: whether
    it was said what was set aside, as ``warning`` has it.
    """

    def __init__(self, symbols: SymbolScope | None = None, registry: Registry | None = None) -> None:
        super().__init__(symbols)
        self._registry = registry
        self._claims: dict[OutletId, InferenceFact] = {}
        self._found: dict[OutletId, InferenceFact] = {}
        self.strict_facts = False
        self.has_warned = False
        self.warning = ""

    @property
    def registry(self) -> Registry | None:
        """The tables that the typed model will ask; ``None`` for those of the installed plugins."""
        return self._registry

    def add_source(self, name: str, fact: InferenceFact) -> OutletId:
        """Add an input to the model."""
        outlet = OutletId(self.add_node(name, Source(), [fact]).id)
        self.inputs.append(outlet)
        self._found.clear()
        return outlet

    def add_const(self, name: str, array: np.ndarray[Any, Any]) -> OutletId:
        """Add a constant of the file."""
        value = Constant(array)
        fact = InferenceFact(value.datum_type, array.shape, value)
        return OutletId(self.add_node(name, KnownTensor(value), [fact]).id)

    def add_claim(self, outlet: OutletId, fact: InferenceFact) -> None:
        """Note what the file says of a tensor that a node computes, if it says anything."""
        if fact != InferenceFact():
            self._claims[outlet] = fact

    def claim(self, outlet: OutletId) -> InferenceFact | None:
        """What only the file says of an outlet."""
        return self._claims.get(outlet)

    def contract(self, outlet: OutletId) -> InferenceFact:
        """What an input is, or what was demanded of another outlet."""
        return self.outlet(outlet).fact

    def said(self, outlet: OutletId) -> InferenceFact:
        """The contract of an outlet, or else the claim."""
        return self._claims.get(outlet) or self.contract(outlet)

    def set_found(self, facts: Mapping[OutletId, InferenceFact]) -> None:
        """Note what an analysis found, until something else is said of any outlet."""
        self._found = dict(facts)

    def outlet_fact(self, outlet: OutletId) -> InferenceFact:
        """What is known of an outlet: what an analysis found, what was said of it, or what the file claims."""
        return self._found.get(outlet) or self.said(outlet)

    def set_outlet_fact(self, outlet: OutletId, fact: InferenceFact) -> None:
        """Say what an outlet is, in place of whatever was known of it. An input with a value becomes a constant.

        Raises InputError for the value of a tensor that a node computes.
        """
        if fact.value is not None and not isinstance(self.nodes[outlet.node].op, (Source, KnownTensor)):
            hint = "make the tensor an input first, with set_input_names or --input-node"
            raise InputError("a node computes it, so it has no other value", where=self.outlet_name(outlet), hint=hint)
        super().set_outlet_fact(outlet, fact)
        self._claims.pop(outlet, None)
        self._found.clear()

    def input_facts(self, node: InferenceNode) -> list[InferenceFact]:
        """What is known of a node's inputs, in order."""
        return [self.outlet_fact(outlet) for outlet in node.inputs]

    def output_facts(self, node: InferenceNode) -> list[InferenceFact]:
        """What is known of a node's outputs, in order."""
        return [self.outlet_fact(outlet) for outlet in node.outlets()]

    def analyse(self) -> InferenceModel:
        """Find all types and shapes that can be found, and note them as the outlets' facts; returns the model.

        Raises ModelError when facts contradict each other.
        """
        from tract_core.analysis import analyse

        analyse(self)
        return self

    def with_input_facts(self, facts: Mapping[OutletId, InferenceFact]) -> InferenceModel:
        """The same model with other facts for some of its inputs. Nodes are shared; neither changes the other."""
        other = InferenceModel(self.symbols.copy(), self._registry)
        other.nodes, other._ids, other.limits = list(self.nodes), self._ids, self.limits
        for outlet, fact in facts.items():
            node = self.nodes[outlet.node]
            outlets = [Outlet(fact, node.outputs[0].successors)]
            other.nodes[node.id] = Node(node.id, node.name, node.op, list(node.inputs), outlets)
        other.inputs, other.outputs = list(self.inputs), list(self.outputs)
        other.outlet_labels, other.properties = dict(self.outlet_labels), dict(self.properties)
        other._claims = dict(self._claims)
        other.strict_facts, other.has_warned = self.strict_facts, self.has_warned
        other.warning = self.warning
        return other

    def into_typed(self) -> TypedModel:
        """The model in core operators. Raises ModelError, listing every node that cannot be wired and why."""
        from tract_core.analysis import into_typed

        return into_typed(self)
