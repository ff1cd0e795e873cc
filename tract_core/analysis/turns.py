"""Come back to a node that was wired in one of several ways, when something behind it does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tract_core.errors import TractError
from tract_core.model.choices import Choices, is_about_facts
from tract_core.model.graph import OutletId
from tract_core.model.inference import InferenceModel

if TYPE_CHECKING:
    from tract_core.analysis.wire import Analysis


@dataclass(frozen=True, slots=True)
class _Turn:
    """How far things were when the wiring of a node began; ``choices`` is a position in the trail of choices."""

    position: int
    node: int
    wired: int
    outlets: int
    problems: int
    settled: int
    remarks: int
    conditions: int
    symbols: tuple[int, int]
    choices: int


class Turns:
    """The nodes of ``model`` that made choices while they were wired, and how far ``analysis`` was before each."""

    def __init__(self, model: InferenceModel, analysis: Analysis, choices: Choices) -> None:
        self._model = model
        self._analysis = analysis
        self._choices = choices
        self._made: list[tuple[_Turn, int]] = []
        self._now: _Turn | None = None

    def begin(self, position: int, node: int) -> None:
        """The wiring of a node begins."""
        done = self._analysis
        counts = len(done.model.nodes), len(done.outlets), len(done.problems), len(done.settled)
        made = len(done.model.remarks), len(done.model.conditions), done.model.symbols.mark(), len(self._choices.trail)
        self._now = _Turn(position, node, *counts, *made)

    def end(self, problem: TractError | None) -> int | None:
        """The wiring of the node has ended. Returns the position from which to go on, unless that is the next one.

        When there is a problem, that is where the last choice was made that the node depends on and that may be
        another one; everything wired since then is taken back.
        """
        now, end = self._now, len(self._choices.trail)
        assert now is not None  # a turn that ends has begun
        if end > now.choices:
            self._made.append((now, end))
        if problem is None or not self._made or not is_about_facts(problem):
            return None
        before = set(self._model.eval_order([OutletId(now.node)]))
        for index in reversed(range(len(self._made))):
            turn, end = self._made[index]
            at = self._choices.last_open(turn.choices, end) if turn.node in before else None
            if at is not None:
                self._choices.reverse(at, turn.choices)
                del self._made[index:]
                self._rewind(turn)
                return turn.position
        return None

    def _rewind(self, turn: _Turn) -> None:
        done = self._analysis
        done.model.rewind(turn.wired)
        done.model.conditions.rewind(turn.conditions, done.model.symbols)
        done.model.symbols.rewind(turn.symbols)
        del done.model.remarks[turn.remarks :]
        for name in done.fresh.keys() - set(done.model.symbols.names):
            del done.fresh[name]
        noted: list[tuple[dict[Any, Any], int]] = [
            (done.outlets, turn.outlets),
            (done.problems, turn.problems),
            (done.settled, turn.settled),
        ]
        for notes, count in noted:
            for key in list(notes)[count:]:
                del notes[key]
