"""What an operator sees of the running model, and the shape of what keeps state: operators, and bodies run for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tract_core.plugins.keys import Array

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.registry import Registry


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


class TellingState(OpState, Protocol):
    """The state of an operator that ``tells`` sizes.

    Turns that fail leave it as it was: `freeze` and `thaw` are called around each, so that they copy no tensors, and
    what `freeze` gave is never changed in place.
    """

    def told(self) -> Sequence[int]:
        """The sizes that the fields in ``tells`` of the operator have in the turn that begins, in that order."""
        ...


class BodyState(Protocol):
    """One execution of the model inside a loop, a branch or a submodel."""

    def run(self, inputs: Sequence[Array], *, symbols: Mapping[str, int]) -> list[Array]:
        """One turn. ``symbols``: the values of the symbols of the models around it."""
        ...

    def freeze(self) -> Any:
        """A snapshot that can be pickled and that later turns do not change."""
        ...

    def thaw(self, frozen: Any) -> None:
        """Go back to a snapshot of a state of the same body."""
        ...


class BodyPlan(Protocol):
    """The model inside an operator, made ready to run by whatever runtime the operator runs on."""

    def spawn(self) -> BodyState:
        """A fresh state."""
        ...


@dataclass(slots=True)
class Session:
    """One turn of one model: the tables to ask, who runs bodies, and the values of the symbols bound so far.

    ``plan_of``: gives the plan of a body, made once for all states of a plan. ``symbols``: in elements.
    """

    registry: Registry
    plan_of: Callable[[TypedModel], BodyPlan]
    symbols: dict[str, int] = field(default_factory=dict[str, int])
