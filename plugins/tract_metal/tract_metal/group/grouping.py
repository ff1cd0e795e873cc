"""The groups of a model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tract_core.compile.groups import Group, Grouper
from tract_core.model.typed import TypedModel
from tract_core.runtime.host import HostNode
from tract_metal.group.groups import Single
from tract_metal.table import STARTS


class MetalGrouper(Grouper[Group]):
    """Puts nodes into groups by the table ``metal_groups``; others are alone: MLX fuses what is element-wise."""

    def __init__(self, model: TypedModel, nodes: Sequence[HostNode], refused: Collection[int]) -> None:
        """``refused``: nodes that no group of several begins with, as MLX does not compute it."""
        super().__init__(model, nodes)
        self.refused = refused

    def begin(self, node: HostNode) -> Group | None:
        """The group that begins with a node; ``None`` where it waits for another one."""
        start = None if node.node in self.refused else self.model.registry[STARTS].find(type(node.op))
        waited = self.waits(node.node)
        found = None if start is None else start(node.op, self, self.model.nodes[node.node])
        if found is None and self.waits(node.node) and not waited:
            return None
        return found or Single((node.node,))
