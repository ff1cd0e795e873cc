"""Branches and bodies of loops, which are graphs inside of nodes, as models of their own."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import GraphModule

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.node_wiring import NodeWiring
from tract_torch.wiring.call import Call, Known
from tract_torch.wiring.graph import Graph


class Body:
    """A body of a call, under construction.

    ``captured``: what its inputs read outside, but for those that it has of its own.
    """

    def __init__(self, call: Call, wire: NodeWiring) -> None:
        self.model = wire.model.empty_like()
        self.captured: list[OutletId] = []
        self._call = call
        self._wire = wire
        self._inside: dict[OutletId, OutletId] = {}

    def own(self, label: str, facts: Sequence[TypedFact]) -> list[OutletId]:
        """Inputs of its own."""
        return [self.model.add_source(f"{label}{slot}", fact.without_value()) for slot, fact in enumerate(facts)]

    def outer(self, operands: Sequence[Known]) -> list[Known]:
        """What operands outside are inside: what is known there is known here too, the rest become inputs."""
        return [self._captured(one) if isinstance(one, OutletId) else one for one in operands]

    def _captured(self, outlet: OutletId) -> OutletId:
        if outlet not in self._inside:
            fact = self._wire.fact(outlet)
            name = self.model.unique_name(self._wire.model.outlet_name(outlet))
            if fact.value is not None:
                self._inside[outlet] = self.model.add_const(name, fact.value)
            else:
                self._inside[outlet] = self.model.add_source(name, fact)
                self.captured.append(outlet)
        return self._inside[outlet]

    def call(self, graph: GraphModule, operands: Sequence[Known]) -> list[OutletId]:
        """The tensors that a graph returns, wired in the body."""
        return call_graph(self._call, graph, self.model, operands)


def call_graph(call: Call, graph: GraphModule, model: TypedModel, operands: Sequence[Known]) -> list[OutletId]:
    """The tensors that a graph returns for these operands, wired in a model. Raises Unsupported for what is none."""
    found = Graph(graph, model, call.symbols, call.lowering).called(operands)
    outlets = [one for one in found if isinstance(one, OutletId)]
    if len(outlets) != len(found):
        raise Unsupported(f"a branch or a loop returns {found}, wanted tensors", hint="return torch.tensor(...) of it")
    return outlets


def tensors_only(what: str, operands: Sequence[Known]) -> list[OutletId]:
    """The operands, which must be tensors. Raises Unsupported."""
    outlets = [one for one in operands if isinstance(one, OutletId)]
    if len(outlets) != len(operands):
        raise Unsupported(f"{what} is a number, wanted a tensor", hint="give torch.tensor(...) of it")
    return outlets


def flag(wire: NodeWiring, outlet: OutletId) -> OutletId:
    """One boolean without axes, of a tensor of one element."""
    return wire.cast(wire.number(outlet), DatumType.BOOL)
