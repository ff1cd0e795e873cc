"""What an operator sees of the running model, and the shape of operators that keep state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tract_core.plugins.keys import Array

if TYPE_CHECKING:
    from tract_core.plugins.registry import Registry


@dataclass(slots=True)
class Session:
    """One turn of one model: the tables to ask, and the values of the symbols bound so far, in elements."""

    registry: Registry
    symbols: dict[str, int] = field(default_factory=dict[str, int])


class OpState(Protocol):
    """What one node keeps between turns, and how it computes with it."""

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Compute one turn. The inputs are not written to."""
        ...

    def freeze(self) -> Any:
        """A snapshot that can be pickled and that later turns do not change."""
        ...

    def thaw(self, frozen: Any) -> None:
        """Go back to a snapshot."""
        ...
