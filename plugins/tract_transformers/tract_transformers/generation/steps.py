"""Steps of a model that serve several texts: who waits for tokens to be seen, and which of them are seen together.

Texts that write, a token or some that were drafted, are seen together, up to as many tokens as have the same bits
alone; a piece of a prompt is seen by itself. The two take turns, and each in the order in which it was asked for. So no
text waits for more than a piece of another one's prompt, and none gets other numbers because of others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Condition, Event, Thread
from time import monotonic
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tract_core.errors import RunError
from tract_transformers.language_model.paged import PagedPast, PagedTexts, TextPart

Array = npt.NDArray[Any]

TOGETHER: Final = 16
"""Tokens that are seen together. For more, kernels sum in another order."""

PATIENCE: Final = 0.003
"""Seconds for which a step waits for texts that are about to ask."""


class Steps:
    """A thread that has the model see what texts ask for."""

    def __init__(self, texts: PagedTexts) -> None:
        self._texts = texts
        self._asked = Condition()
        self._short: deque[tuple[TextPart, Future[Array]]] = deque()
        self._long: deque[tuple[TextPart, Future[Array]]] = deque()
        self._writing = 0
        self._is_over = self._is_idle = False
        self._thread = Thread(target=self._run, name="tract-engine", daemon=True)
        self._thread.start()

    def see(self, part: TextPart) -> Array:
        """Have tokens seen, and wait for it. Raises as `Past.extend` does, and RunError when the engine is over."""
        done: Future[Array] = Future()
        with self._asked:
            if self._is_over:
                raise RunError("the engine is closed")
            (self._short if len(part.tokens) <= TOGETHER else self._long).append((part, done))
            if self._is_idle or self._is_everybody():  # else there is nothing to do yet for who is woken
                self._asked.notify()
        return done.result()

    def begin(self) -> None:
        """One more text writes, and may ask any time."""
        with self._asked:
            self._writing += 1

    def end(self) -> None:
        """One less."""
        with self._asked:
            self._writing -= 1
            self._asked.notify()

    def close(self) -> None:
        """Nobody is served any more."""
        with self._asked:
            self._is_over = True
            self._asked.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._asked:
                self._is_idle = True
                self._asked.wait_for(lambda: self._short or self._long or self._is_over)
                self._is_idle = False
                if self._is_over:
                    for _, done in (*self._short, *self._long):
                        done.set_exception(RunError("the engine is closed"))
                    return
                self._wait_for_others()
                together = self._next_short()
                alone = [self._long.popleft()] if self._long else []
            for some in (together, alone):
                if some:
                    self._step(some)

    def _wait_for_others(self) -> None:
        """Give texts that write a moment to ask, so that they are seen together."""
        until = monotonic() + PATIENCE
        while not self._is_everybody() and not self._is_over:
            left = until - monotonic()
            if left <= 0 or not self._asked.wait(left):
                return

    def _is_everybody(self) -> bool:
        return len(self._short) + len(self._long) >= self._writing

    def _next_short(self) -> list[tuple[TextPart, Future[Array]]]:
        found: list[tuple[TextPart, Future[Array]]] = []
        count = 0
        while self._short and count + len(self._short[0][0].tokens) <= TOGETHER:
            found.append(self._short.popleft())
            count += len(found[-1][0].tokens)
        return found

    def _step(self, some: Sequence[tuple[TextPart, Future[Array]]]) -> None:
        """One step; where it fails for several, each alone, so that one that asks for nonsense harms no other."""
        try:
            rows = self._texts.extend([part for part, _ in some])
        except BaseException as error:  # whoever asked is told, whatever it is
            if len(some) == 1:
                some[0][1].set_exception(error)
            else:
                for one in some:
                    self._step([one])
            return
        for part, _ in some:
            if len(part.tokens) > TOGETHER:
                self._texts.remember(part.text)
        for (_, done), row in zip(some, rows, strict=True):
            done.set_result(np.array(row))


class ClosedText(RunError):
    """Nobody wants a text any more."""


class SteppedPast(PagedPast):
    """A past whose tokens are seen together with those of others."""

    def __init__(self, texts: PagedTexts, steps: Steps, closed: Event | None = None) -> None:
        """``closed``: is set when nobody wants the text any more; then `extend` raises ClosedText."""
        super().__init__(texts)
        self._steps, self._closed = steps, closed

    def extend(self, tokens: Sequence[int], *, every: bool = False) -> Array:
        """As the protocol says."""
        if self._closed is not None and self._closed.is_set():
            raise ClosedText("the text was closed")
        return self._steps.see(TextPart(self._text, tokens, every))
