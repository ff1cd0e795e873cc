"""What operators keep from turn to turn: tensors that kernels read and write, and what they are as snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


@frozen
class Keeping:
    """How the tensors that an operator keeps become a snapshot of the kind that the operator itself takes, and back."""

    def frozen(self, tensors: Sequence[Array]) -> Any:
        """A snapshot, which later turns do not change."""
        raise NotImplementedError

    def thaw(self, frozen: Any, tensors: Sequence[Array]) -> None:
        """Write a snapshot into tensors of zeros. Raises RunError where it is of other sizes than these."""
        raise NotImplementedError

    def starts(self, tensors: Sequence[Array]) -> Sequence[int]:
        """From which byte on kernels see each tensor in the next turn, as a window may move through memory."""
        return [0] * len(tensors)
