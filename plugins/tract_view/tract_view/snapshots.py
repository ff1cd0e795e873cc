"""A model at each stage from the file to what runs, as `tract MODEL dump --pass` has them, taken in one go.

A stage that changes nothing is left out. Transforms are stages of their own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_view.constants import ConstantTable
from tract_view.entries import Entry, entries_of
from tract_view.timing import Placing, Times, placings_of

if TYPE_CHECKING:
    from tract_core.cli.pipeline import Pipeline
    from tract_core.model.typed import TypedModel
    from tract_core.runtime.protocol import Plan
    from tract_core.transforms.transform import Transform

RUNS: Final = "optimize"
"""The stage of the model that a runtime runs."""


@frozen
class Snapshot:
    """A model after a ``stage``. ``entries``: what is shown of it.

    ``placings``: what computes them, by their numbers; ``times``: how long that takes. Both only of what runs.
    """

    stage: str
    entries: tuple[Entry, ...]
    placings: dict[int, Placing]
    times: Times | None = None


class Snapshots:
    """The stages of a model as they are made. ``constants``: those of all of them. ``remarks``: what went wrong."""

    def __init__(self) -> None:
        self.constants = ConstantTable()
        self.found: list[Snapshot] = []
        self.remarks: list[str] = []

    def take(self, stage: str, model: Any) -> None:
        """Keep what a model is like now, unless it is as it was after the stage before."""
        entries = tuple(entries_of(model, self.constants))
        if not self.found or self.found[-1].entries != entries:
            self.found.append(Snapshot(stage, entries, {}))

    def take_running(self, model: TypedModel, plan: Plan) -> None:
        """Keep the model that a plan runs, with what computes its nodes."""
        entries = tuple(entries_of(model, self.constants))
        self.found.append(Snapshot(RUNS, entries, placings_of(entries, plan.explain())))

    def walk(self, pipeline: Pipeline, last: str) -> Any:
        """Take all stages up to ``last``, and return the model there.

        A stage that fails ends the walk, and is told in the remarks: what can be shown is. Raises TractError where
        nothing can.
        """
        from tract_core.cli.stages import stages

        names = stages()
        model = pipeline.at(names[0])
        self.take(names[0], model)
        pipeline.before_transform = self._before_transform
        for before, name in pairwise(names[: names.index(last) + 1]):
            try:
                model = pipeline.onwards(model, name, before)
            except TractError as error:
                self.remarks.append(f"the model is shown as it is before '{name}', which fails: {error}")
                return None
            self._taken(pipeline, name, model)
        return model

    def _taken(self, pipeline: Pipeline, name: str, model: Any) -> None:
        if name == RUNS and pipeline.plan is not None:
            self.take_running(model, pipeline.plan)
        else:
            self.take(self._applied or name, model)
        self._applied = ""

    _applied = ""
    """The transform whose result is taken next."""

    def _before_transform(self, transform: Transform, model: TypedModel) -> None:
        self.take(self._applied or "declutter", model)
        self._applied = transform.name
