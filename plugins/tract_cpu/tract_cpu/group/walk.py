"""What a walk over the nodes of a model knows while it puts them into groups."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from tract_llvm.fuse.walk import Refused, Walk
from tract_llvm.llvm_only.on_steps import Dequantize

from tract_core.model.graph import OutletId
from tract_core.runtime.host import HostNode
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.layouts import Layouts


class CpuWalk(Walk):
    """``known``: instructions, too; ``layouts``: in which blocks of channels tensors are by now."""

    known: CpuKnown

    def __init__(self, known: CpuKnown, nodes: Sequence[HostNode], refused: Refused = MappingProxyType({})) -> None:
        super().__init__(known, nodes, refused)
        self.layouts = Layouts(known)

    def ends(self, outlet: OutletId) -> bool:
        """Not where integers are made wider, which whoever reads them does as quickly, and from less memory."""
        node, model = self.model.nodes[outlet.node], self.model
        if not isinstance(node.op, Dequantize):
            return True
        return model.outlet_fact(node.inputs[0]).datum_type.itemsize >= node.op.to.itemsize
