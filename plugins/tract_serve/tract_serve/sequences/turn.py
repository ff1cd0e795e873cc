"""One turn of a state, on its way to the thread that does it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class SequenceTurn(list[Array]):
    """The inputs of a turn, which a `Lane` takes as any others, with what is done to them.

    A client that leaves in the middle of the turn does not stop it: `left` tells when it is over, and what it gave.
    """

    def __init__(self, inputs: Iterable[Array], work: Callable[[], list[Array]]) -> None:
        """``work``: gives the outputs; not called where the client has left before."""
        super().__init__(inputs)
        self._work, self._lock = work, Lock()
        self._has_begun = self._is_over = self._has_left = False
        self._told: Callable[[], None] | None = None
        self.outputs: list[Array] | None = None

    def __call__(self) -> list[Array]:
        """Do it, once. Called by whichever thread the lane has."""
        with self._lock:
            if self._has_left:
                return []
            self._has_begun = True
        try:
            self.outputs = self._work()
            return self.outputs
        finally:
            with self._lock:
                self._is_over, told = True, self._told
            if told is not None:
                told()

    async def left(self) -> bool:
        """The client has left: return once the turn is over, and whether it was done."""
        loop, is_over = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            self._has_left = True
            if not self._has_begun:
                return False
            if self._is_over:
                return True
            self._told = partial(_tell, loop, is_over)
        while not is_over.is_set():
            try:
                await is_over.wait()
            except asyncio.CancelledError:
                continue  # it is cancelled already
        return True


def _tell(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    loop.call_soon_threadsafe(event.set)
