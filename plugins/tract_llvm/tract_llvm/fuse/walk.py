"""What a walk over the nodes of a model knows while it puts them into groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tract_core.compile.groups import Grouper
from tract_core.model.graph import OutletId
from tract_core.runtime.host import HostNode
from tract_llvm.fuse.known import Known

Refused = Mapping[int, str]
"""Nodes whose groups turned out to be none when their kernel was chosen, and why: they are left to the host."""


class Walk(Grouper[Any]):
    """``known``: types, sizes and constants. ``refused``: what is left to the host besides."""

    def __init__(self, known: Known, nodes: Sequence[HostNode], refused: Refused = MappingProxyType({})) -> None:
        super().__init__(known.model, nodes)
        self.known, self.refused = known, refused

    def ends(self, outlet: OutletId) -> bool:
        """Whether a chain may end there, rather than earlier. A compiler says where that is of no use."""
        return True
