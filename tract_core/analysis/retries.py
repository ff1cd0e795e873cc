"""Come back to a node that was wired in one of several ways, when something behind it does not fit."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from tract_core.analysis.inference import InferenceModel
from tract_core.analysis.result import Analysis
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_core.model.choices import Choices, is_about_facts
from tract_core.model.graph import OutletId


@frozen
class _Start:
    """How far things were when the wiring of a node began."""

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
    asked: int


class Retries:
    """The nodes of ``model`` that asked for choices while they were wired, and how far ``analysis`` was before each."""

    def __init__(self, model: InferenceModel, analysis: Analysis, choices: Choices) -> None:
        self._model = model
        self._analysis = analysis
        self._choices = choices
        self._starts: list[tuple[_Start, int]] = []
        self._now: _Start | None = None

    def begin(self, position: int, node: int) -> None:
        """The wiring of a node begins."""
        done = self._analysis
        counts = len(done.model.nodes), len(done.outlets), len(done.problems), len(done.settled)
        made = len(done.model.remarks), len(done.model.conditions), done.model.symbols.mark()
        chosen = len(self._choices.trail), len(self._choices.asked)
        self._now = _Start(position, node, *counts, *made, *chosen)

    def end(self, problem: TractError | None) -> int | None:
        """The wiring of the node has ended. Returns the position from which to go on, unless that is the next one.

        When there is a problem, that is where the last choice was made that the node depends on and that has a way
        left; everything wired since then is taken back. Where none has, they are all made in the preferred way, for
        good.
        """
        now, end = self._now, len(self._choices.asked)
        assert now is not None  # what ends has begun
        if end > now.asked:
            self._starts.append((now, end))
        if problem is None or not self._starts or not is_about_facts(problem):
            return None
        before = set(self._model.eval_order([OutletId(now.node)]))
        spans = [(start.asked, end) for start, end in self._starts if start.node in before]
        asked = [one for span in spans for one in self._choices.asked_for(*span) if self._start_of(one.at) is not None]
        if left := [one.at for one in asked if one.is_open]:
            self._choices.reverse(max(left))
            return self._back_to(max(left))
        if astray := [one.at for one in asked if one.is_astray]:
            for at in astray:
                self._choices.settle(at)
            return self._back_to(min(astray))
        return None

    def _start_of(self, at: int) -> int | None:
        """Which start was before the choice at a position of the trail; ``None``: one in the model around this one."""
        index = bisect_right(self._starts, at, key=lambda made: made[0].choices) - 1
        return None if index < 0 else index

    def _back_to(self, at: int) -> int:
        """Take back the node that made the choice at a position of the trail, and those wired after it."""
        index = self._start_of(at)
        assert index is not None  # others are left to the model around this one
        start, _ = self._starts[index]
        del self._starts[index:]
        self._rewind(start)
        return start.position

    def _rewind(self, start: _Start) -> None:
        done = self._analysis
        self._choices.rewind(start.choices, start.asked)
        done.model.rewind(start.wired)
        done.model.conditions.rewind(start.conditions)
        done.model.symbols.rewind(start.symbols)
        del done.model.remarks[start.remarks :]
        for name in done.fresh.keys() - set(done.model.symbols.names):
            del done.fresh[name]
        noted: list[tuple[dict[Any, Any], int]] = [
            (done.outlets, start.outlets),
            (done.problems, start.problems),
            (done.settled, start.settled),
        ]
        for notes, count in noted:
            for key in list(notes)[count:]:
                del notes[key]
