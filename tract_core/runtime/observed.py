"""States in whose turns somebody looks on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array
    from tract_core.runtime.protocol import Observer


class Observable(Protocol):
    """A state whose turns can be looked at: ``state.run(inputs, observe=...)``."""

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
        observe: Observer | None = None,
    ) -> list[Array]:
        """One turn, as `PlanState.run` describes it, of which ``observe`` sees every part."""
        ...

    def reset(self) -> None:
        """As `PlanState.reset`."""
        ...

    def freeze(self) -> Any:
        """As `PlanState.freeze`."""
        ...

    def thaw(self, frozen: Any) -> None:
        """As `PlanState.thaw`."""
        ...


class ObservedState:
    """A state, with what looks on in all of its turns: what `ObservablePlan.spawn_observed` gives."""

    def __init__(self, state: Observable, observe: Observer) -> None:
        self._state = state
        self._observe = observe

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
    ) -> list[Array]:
        """The next turn."""
        return self._state.run(inputs, out, symbols=symbols, observe=self._observe)

    def reset(self) -> None:
        """Back to a fresh state."""
        self._state.reset()

    def freeze(self) -> Any:
        """A snapshot of the state."""
        return self._state.freeze()

    def thaw(self, frozen: Any) -> None:
        """Go back to a snapshot."""
        self._state.thaw(frozen)
