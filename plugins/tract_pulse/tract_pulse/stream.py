"""What is known of a tensor of which only a part comes at a time."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from tract_core.dims import Dim
from tract_core.errors import TransformError
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId


@frozen
class Stream:
    """Along ``axis``, the tensor comes piece by piece.

    Position i of what comes, counted from the first pulse on, is position ``i - delay`` of the whole tensor, which has
    ``length`` of them. What comes before the first of these and behind the last one means nothing, and may be anything.
    """

    axis: int
    delay: int
    length: Dim


LATE: Final = OutletId(-1)
"""In the place of a tensor that only the end of the signal tells, as its length, or the last state of a loop."""

SQUARE: Final = OutletId(-2)
"""In the place of a tensor that grows with the signal along two axes, which is wired where one of them is joined."""


@frozen
class Wire:
    """A tensor of the model over pulses. ``stream``: ``None`` for one that is whole, and the same in every pulse."""

    outlet: OutletId
    stream: Stream | None = None


PastLimit: TypeAlias = int | Literal["all"]
"""How many positions before its own each one sees, of attention that has no limit of its own."""


class CannotStream(TransformError):
    """A node wants of the signal what a stream does not have. ``hint``: what would make it work.

    ``node_id``: the node, in the model over the whole signal, where that is another one than the one being wired.
    """

    node_id: int | None = None

    def of(self, node_id: int) -> CannotStream:
        """The same error, about a node."""
        self.node_id = node_id
        return self
