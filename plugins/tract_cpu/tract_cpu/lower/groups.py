"""Go through the groups of a model, and have each lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tract_llvm.fuse.walk import Refused

from tract_core.errors import FactError
from tract_core.limits import check_time
from tract_core.runtime.host import HostNode
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.group.groups import CpuGroup, Host
from tract_cpu.table import CPU, KINDS, MOVES


class GroupRefused(Exception):
    """A group of several nodes turned out to be none when its kernel was chosen, for the reason ``why``."""

    def __init__(self, group: CpuGroup, why: str) -> None:
        super().__init__(why)
        self.group, self.why = group, why

    @property
    def refused(self) -> Refused:
        """What must not be made a group again: the node is left to the host."""
        return {self.group.nodes[0]: self.why}


def lower_groups(
    lowering: Lowering, groups: Sequence[CpuGroup], nodes: Mapping[int, HostNode]
) -> Iterator[tuple[HostNode, str]]:
    """Lower groups, in order. Gives the nodes that native code cannot compute, with the reason.

    Raises LimitExceeded when the time to prepare the model is up, and `GroupRefused`.
    """
    for group in groups:
        check_time()
        node = nodes[group.nodes[0]]
        why = group.why if isinstance(group, Host) else _lower(Site(lowering, node, group))
        if why is not None and len(group.nodes) > 1:
            raise GroupRefused(group, why)
        if why is not None:
            yield node, why


def _lower(site: Site) -> str | None:
    """Add the steps of a group. Returns why there are none."""
    site.lowering.read_sizes(site.node)
    registry, kind = site.lowering.model.registry, type(site.node.op)
    try:
        lower = registry[KINDS].find(type(site.group))
        if lower is not None:
            return lower(site)
        row = registry[CPU].find(kind) or registry[MOVES].find(kind)
        assert row is not None  # groups are made of what has one
        return row(site.node.op, site)
    except FactError as error:
        return f"sizes do not fit: {error.problem}"
