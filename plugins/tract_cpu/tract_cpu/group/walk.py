"""What a walk over the nodes of a model knows while it puts them into groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tract_core.compile.groups import Grouping
from tract_core.runtime.host import HostNode
from tract_cpu.group.known import Known
from tract_cpu.group.layouts import Layouts

Refused = Mapping[int, str]
"""Nodes whose groups turned out to be none when their kernel was chosen, and why: they are left to the host."""


class Walk(Grouping[Any]):
    """``known``: types, sizes and instructions; ``layouts``: in which blocks of channels tensors are by now.

    ``refused``: what is left to the host besides.
    """

    def __init__(self, known: Known, nodes: Sequence[HostNode], refused: Refused = MappingProxyType({})) -> None:
        super().__init__(known.model, nodes)
        self.known, self.layouts, self.refused = known, Layouts(known), refused
