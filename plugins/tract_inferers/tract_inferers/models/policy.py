"""A model for many agents: every input and every output has them along axis 0, as many as there are in a call."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import Container, DatumType
from tract_core.dims import symbol
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_inferers.slots import Slot


@frozen
class Policy:
    """A model of which all inputs and outputs have the size ``symbol`` along axis 0, and nowhere else.

    ``inputs``, ``outputs``: what they are for one agent. The model is nobody else's, and stays as it is.
    """

    typed: TypedModel
    symbol: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    @staticmethod
    def around(model: TypedModel, name: str) -> Policy:
        """With the slots of the model, whose agents stand along axis 0. Raises Unsupported where they do not."""
        inputs = [_slot(model, outlet, name, f"input {model.outlet_name(outlet)!r}") for outlet in model.inputs]
        outputs = [_slot(model, outlet, name, f"output {model.outlet_name(outlet)!r}") for outlet in model.outputs]
        return Policy(model, name, tuple(inputs), tuple(outputs))

    def for_rows(self, rows: int) -> TypedModel:
        """The model for so many agents and no others, in normal form."""
        return self.typed.substitute({self.symbol: rows}).declutter()


def _slot(model: TypedModel, outlet: OutletId, name: str, where: str) -> Slot:
    fact = model.outlet_fact(outlet)
    shape = fact.shape[1:]
    if fact.rank == 0 or fact.shape[0] != symbol(name) or fact.with_shape(shape).shape.symbols():
        raise Unsupported(f"{fact} does not have the axis of agents, {name}, in front and nowhere else", where=where)
    return Slot(model.outlet_name(outlet), tuple(int(size) for size in shape), element_type(fact, where))


def element_type(fact: TypedFact, where: str) -> np.dtype[Any]:
    """The type of the elements in arrays. Raises Unsupported for texts, and for what is no tensor."""
    kind = fact.datum_type
    if isinstance(kind, Container) or kind.storage is DatumType.STRING:
        raise Unsupported(f"is {kind.short}, wanted numbers", where=where, hint="take it out of the policy")
    return kind.storage.numpy
