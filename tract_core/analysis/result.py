"""What an analysis has found so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from tract_core.errors import ContradictoryFacts, TractError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel


@dataclass(slots=True)
class Analysis:
    """What wiring gave: the typed model, where each outlet of the file went, and one problem per node that failed.

    ``fresh``: symbols that stand for sizes of inputs that nobody named, each with the input and the axis. ``settled``:
    what some of them are, as was said of a tensor further down; the model does not know that yet. ``set_aside``: what
    the file says of the outputs of the node that was wired last, and what they are not; ``doubt``: where that is a
    rank, which decides between ways to wire a node before.
    """

    model: TypedModel
    outlets: dict[OutletId, OutletId] = field(default_factory=dict[OutletId, OutletId])
    problems: dict[str, TractError] = field(default_factory=dict[str, TractError])
    fresh: dict[str, tuple[OutletId, int]] = field(default_factory=dict[str, tuple[OutletId, int]])
    settled: dict[str, int] = field(default_factory=dict[str, int])
    set_aside: list[ContradictoryFacts] = field(default_factory=list[ContradictoryFacts])
    doubt: ContradictoryFacts | None = None
