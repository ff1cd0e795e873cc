"""The inference model: a file's own nodes, with whatever the file and the user said about types and shapes.

Its operators know one thing: how to wire themselves, in core operators, into a `TypedModel`. Facts come out of that
wiring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tract_core.data import Constant
from tract_core.dims import SymbolScope
from tract_core.errors import MissingOperator
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import Graph, Node, OutletId
from tract_core.model.op import Op
from tract_core.model.typed import TypedModel

if TYPE_CHECKING:
    from tract_core.plugins.registry import Registry


class InferenceOp(Op, Protocol):
    """An operator of a file, before types and shapes are known."""

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """Add core operators to ``model`` that compute this one, the last named ``name``; returns the outputs.

        Raises TractError when the inputs do not fit, or when something must be known that is not.
        """
        ...


@dataclass(frozen=True, slots=True)
class Source(InferenceOp):
    """An input of the model. Its fact is that of its outlet."""

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """Never called: the analysis adds sources itself, as only it knows their facts."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Known(InferenceOp):
    """A constant of the file."""

    value: Constant

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """A `Const`."""
        return (model.add_const(name, self.value),)


@dataclass(frozen=True, slots=True)
class Unknown(InferenceOp):
    """An operator of the file that nothing here can wire. The analysis reports all of them at once.

    ``node_name``: what the file calls the node, where that is not the name of what it computes.
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


InferenceNode = Node[InferenceFact, InferenceOp]


class InferenceModel(Graph[InferenceFact, InferenceOp]):
    """A model with minimum or partial type information."""

    def __init__(self, symbols: SymbolScope | None = None, registry: Registry | None = None) -> None:
        super().__init__(symbols)
        self._registry = registry

    @property
    def registry(self) -> Registry | None:
        """The tables that the typed model will ask; ``None`` for those of the installed plugins."""
        return self._registry

    def add_source(self, name: str, fact: InferenceFact) -> OutletId:
        """Add an input to the model."""
        outlet = OutletId(self.add_node(name, Source(), [fact]).id)
        self.inputs.append(outlet)
        return outlet

    def add_const(self, name: str, array: np.ndarray[Any, Any]) -> OutletId:
        """Add a constant of the file."""
        value = Constant(array)
        fact = InferenceFact(value.datum_type, array.shape, value)
        return OutletId(self.add_node(name, Known(value), [fact]).id)

    def analyse(self) -> InferenceModel:
        """Find all types and shapes that can be found, and note them as the outlets' facts; returns the model.

        Raises ModelError when facts contradict each other.
        """
        from tract_core.analysis import analyse

        analyse(self)
        return self

    def into_typed(self) -> TypedModel:
        """The model in core operators. Raises ModelError, listing every node that cannot be wired and why."""
        from tract_core.analysis import into_typed

        return into_typed(self)
