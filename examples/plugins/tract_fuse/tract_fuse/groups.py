"""Decide which nodes go together. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tract_core.compile.chains import chain_behind
from tract_core.compile.groups import Group, Grouper
from tract_core.data import DatumType
from tract_core.dims import is_one
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.runtime.explain import is_constant
from tract_core.runtime.host import HostNode


@dataclass(frozen=True, slots=True)
class Blocks(Group):
    """Element-wise nodes, each of which reads the one before it."""

    def notes(self) -> Iterator[str]:
        """Why these."""
        yield "each element comes out of those at its place"


@dataclass(frozen=True, slots=True)
class Numpy(Group):
    """Any other node."""

    def notes(self) -> Iterator[str]:
        """Why it is alone."""
        yield "it is left to the node executor"


class FuseGrouper(Grouper[Group]):
    """A group begins with each node; an element-wise one takes those behind it along."""

    def begin(self, node: HostNode) -> Group:
        """The group that begins with a node."""
        if not self._fits(self.model.nodes[node.node], node.inputs):
            return Numpy((node.node,))
        behind = chain_behind(self, OutletId(node.node), self._fits)
        return Blocks((node.node, *(one.id for one in behind)))

    def is_constant(self, outlet: OutletId) -> bool:
        """Whether a tensor is there before the model runs: sizes are not."""
        return is_constant(self.model.nodes[outlet.node].op)

    def _fits(self, node: TypedNode, operands: Sequence[OutletId]) -> bool:
        """Whether a node is element-wise, and its operands are there, in its shape or with one element each."""
        host = self.nodes[node.id]
        if not node.op.by_element or node.op.checks or host.meaning is None or host.needs or host.late:
            return False
        (fact,) = host.facts
        shapes = [tuple(self.model.outlet_fact(outlet).shape) for outlet in operands]
        fit = all(shape == tuple(fact.shape) or all(map(is_one, shape)) for shape in shapes)
        return fit and isinstance(fact.datum_type, DatumType) and not host.makes_texts and all(map(self.has, operands))
