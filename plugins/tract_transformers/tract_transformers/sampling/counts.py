"""Which tokens are in a text, as penalties ask."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


class Counts:
    """The tokens of one text, counted as they come: those of the prompt, and those of the answer.

    Arrays of the whole vocabulary would cost more than the draw itself, so only tokens that occur are kept.
    """

    def __init__(self, prompt: Iterable[int] = (), answer: Iterable[int] = ()) -> None:
        self._seen = dict.fromkeys(prompt, 1)
        """How often each is there, those of the prompt once."""
        self._times: dict[int, int] = {}
        for token in answer:
            self.add(token)

    def add(self, token: int) -> None:
        """One more token of the answer."""
        for times in (self._seen, self._times):
            times[token] = times.get(token, 0) + 1

    def take_back(self, token: int) -> None:
        """The answer is without one of its tokens."""
        for times in (self._seen, self._times):
            times[token] -= 1
            if not times[token]:
                del times[token]

    @property
    def length(self) -> int:
        """How many tokens the answer has."""
        return sum(self._times.values())

    @property
    def seen(self) -> npt.NDArray[np.intp]:
        """The tokens of the prompt and the answer, each once."""
        return np.fromiter(self._seen, np.intp, len(self._seen))

    @property
    def answered(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """The tokens of the answer, each once, and how often each is there."""
        tokens = np.fromiter(self._times, np.intp, len(self._times))
        return tokens, np.fromiter(self._times.values(), np.float64, len(self._times))
