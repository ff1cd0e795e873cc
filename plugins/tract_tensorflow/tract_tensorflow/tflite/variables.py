"""Variables, which hold a tensor from run to run."""

from __future__ import annotations

from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId


class Variables:
    """What variables hold at one place of a graph.

    ``held``: by name, where that is in the model; the keys and the values of tables as well. ``assigned``: those that
    the graph assigned, in order.
    """

    def __init__(self) -> None:
        self.held: dict[str, OutletId] = {}
        self.assigned: dict[str, None] = {}

    def value(self, name: str) -> OutletId:
        """What a variable holds. Raises CorruptModel where nothing was assigned to it."""
        if name not in self.held:
            raise CorruptModel(f"{name[:200]!r} is read before anything is assigned to it")
        return self.held[name]

    def assign(self, name: str, value: OutletId) -> None:
        """Let a variable hold something else from here on."""
        self.held[name] = value
        self.assigned[name] = None
