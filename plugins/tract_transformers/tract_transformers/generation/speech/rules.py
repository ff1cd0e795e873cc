"""Which token may come next where a model says when something was said, and which ones never come.

Times come in pairs, the end of one part and the beginning of the next, but for the first and the last one; they never
go back; an answer begins with one; and one comes as soon as all of them together are likelier than any word (Radford
et al., arXiv:2212.04356, and the implementation that is published with it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tract_core.frozen import frozen
from tract_transformers.generation.speech.tokens import SpeechTokens

Logits = npt.NDArray[Any]


@frozen
class Rules:
    """``tokens``: of the model. ``begin``: how many tokens an answer has in front. ``timed``: whether it says when."""

    tokens: SpeechTokens
    begin: int
    timed: bool

    def __call__(self, seen: Sequence[int], logits: Logits) -> Logits:
        """The logits [V] of the token behind ``seen``, where minus infinity stands for what may not come."""
        tokens, found = self.tokens, logits.copy()
        self._forbid(found, tokens.never)
        written = list(seen[self.begin :])
        if not written:
            self._forbid(found, tokens.not_first)
        if self.timed:
            self._timed(found, written)
        return found

    def _forbid(self, logits: Logits, tokens: Sequence[int]) -> None:
        logits[[one for one in tokens if one < len(logits)]] = -np.inf

    def _timed(self, logits: Logits, written: list[int]) -> None:
        tokens, first = self.tokens, self.tokens.first_time
        logits[tokens.untimed] = -np.inf
        times = [one for one in written if one >= first]
        after_time = bool(written) and written[-1] >= first
        in_pair = after_time and (len(written) < 2 or written[-2] >= first)
        if in_pair:
            logits[first:] = -np.inf
        elif after_time:
            logits[: tokens.end] = -np.inf
        if times:
            again = after_time and not in_pair
            logits[first : times[-1] + (not again)] = -np.inf
        if not written:
            logits[:first] = -np.inf
            if tokens.latest is not None:
                logits[first + tokens.latest + 1 :] = -np.inf
        _prefer_times(logits, first)


def _prefer_times(logits: Logits, first: int) -> None:
    """Leave times alone where they are together likelier than each word."""
    times, words = logits[first:].astype(np.float64), logits[:first]
    most = times.max(initial=-np.inf)
    if most == -np.inf or np.isnan(most):
        return
    together = most + np.log(np.exp(times - most).sum())
    if together > words.max(initial=-np.inf):
        logits[:first] = -np.inf
