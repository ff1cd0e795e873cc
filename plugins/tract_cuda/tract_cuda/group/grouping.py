"""The groups of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_llvm.elements.expressions import ELEMENTS
from tract_llvm.fuse.chain import Chain, chain_from, extended, plain
from tract_llvm.fuse.known import Known
from tract_llvm.fuse.region import region_from
from tract_llvm.fuse.walk import Walk

from tract_core.compile.groups import Group
from tract_core.errors import FactError
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AxisOp
from tract_core.runtime.host import HostNode
from tract_cuda.group.blocks import packed_of
from tract_cuda.group.groups import Alone, Elements, Host, Reduced
from tract_cuda.lowering import Target
from tract_cuda.table import CUDA, STARTS

NO_KERNEL = "there is no kernel for this operator yet"


class CudaKnown(Known):
    """What kernels may rely on. Which types they only move, the rows of ``cuda`` say themselves."""

    def moves(self, op: TypedOp) -> bool:
        """Whether there is a kernel that is no chain."""
        return self.model.registry[CUDA].find(type(op)) is not None


class CudaGrouper(Walk):
    """Puts nodes into groups by the table ``cuda_groups``.

    What has no row there, or makes no group, is alone where ``cuda`` has a row for it; or it begins a program for rows
    or a chain. The rest is left to the host.
    """

    def __init__(
        self, model: TypedModel, nodes: Sequence[HostNode], target: Target, refused: Mapping[int, str]
    ) -> None:
        """``refused``: nodes that no group of several begins with, as there was no kernel for it, and why."""
        super().__init__(CudaKnown(model, model.given_symbols()), nodes, refused)
        self.target = target

    def begin(self, node: HostNode) -> Group | None:
        """The group that begins with a node; ``None`` where it waits for another one."""
        typed, waited = self.model.nodes[node.node], self.waits(node.node)
        why = self.known.why_unfit(node.node)
        try:
            found = None if why is not None else self._begun(typed)
        except FactError as error:  # more is known now than when it was wired: every run is refused
            found, why = None, f"sizes do not fit: {error.problem}"
        if self.waits(node.node) and not waited:
            return None
        return found or Host((node.node,), why or self.refused.get(node.node) or NO_KERNEL)

    def begin_early(self, node: HostNode) -> Group | None:
        """Element-wise operators, and those on axes, may be computed before their turn."""
        kind = type(node.op)
        if not issubclass(kind, AxisOp) and self.model.registry[ELEMENTS].find(kind) is None:
            return None
        found = self.begin(node) if self.known.why_unfit(node.node) is None else None
        return None if isinstance(found, Host) else found

    def added(self, group: Group) -> None:
        """Note what is known of sizes that a node of the host gives values."""
        for number in group.nodes if isinstance(group, Host) else ():
            if self.nodes[number].binds:
                self.known.learn(self.nodes[number])

    def extended(self, start: Chain) -> Chain:
        """The chain with all nodes behind it that can be computed along. ``start``: what its node computes."""
        return extended(self, start, plain(self.known))

    def _begun(self, node: TypedNode) -> Group | None:
        """The group that begins with a node whose types and sizes kernels know; ``None`` where there is no kernel."""
        packed = packed_of(self.model, node)
        if packed is not None:
            return packed
        several = node.id not in self.refused
        start = self.model.registry[STARTS].find(type(node.op)) if several else None
        found = None if start is None else start(node.op, self, node)
        if found is not None:
            return found
        if self.known.moves(node.op):
            return Alone((node.id,))
        return self._computed(node) if several else None

    def _computed(self, node: TypedNode) -> Group | None:
        """A program for rows; where nothing is reduced, a chain."""
        region = region_from(self, node.id, plain(self.known))
        if region is not None:
            return Reduced(region.nodes, region)
        chain = chain_from(self, node.id, plain(self.known))
        return None if chain is None else Elements(chain.nodes, chain)
