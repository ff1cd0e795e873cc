"""How well a model foretells a text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_transformers.generation.reading import CHUNK
from tract_transformers.language_model.past import Past
from tract_transformers.sampling.sampler import check_logits
from tract_transformers.sampling.steps import log_probabilities


@frozen
class Perplexity:
    """``value``: e to the mean of the negative log-probabilities. ``error``: its standard error.

    ``count``: of the tokens that were looked at, in so many ``windows``.
    """

    value: float
    error: float
    count: int
    windows: int

    def to_json(self) -> dict[str, float]:
        """The figures, for JSON."""
        return {"perplexity": self.value, "error": self.error, "tokens": self.count, "windows": self.windows}


def perplexity(
    past: Past,
    tokens: Sequence[int],
    context: int,
    *,
    begin: Sequence[int] = (),
    windows: int | None = None,
    say: Callable[[str], None] | None = None,
) -> Perplexity:
    """That of a model for a text, in windows that do not overlap; of each, the second half is looked at.

    ``past``: of a model that gives the logits of all tokens. ``begin``: stands in the place of the first tokens of each
    window, where models know a beginning. ``windows``: how many are looked at; all of them unless given. ``say``: is
    told what is done.

    Raises InputError for a text of less than one window.
    """
    whole = len(tokens) // context
    if not whole:
        problem = f"the text has {len(tokens)} tokens, less than one window of {context}"
        raise InputError(problem, hint="give a longer text, or a smaller context")
    count = whole if windows is None else min(whole, windows)
    found: list[float] = []
    for at in range(count):
        if say is not None:
            say(f"measuring window {at + 1} of {count} of")
        window = list(tokens[at * context : (at + 1) * context])
        window[: len(begin)] = begin
        found += _unlikely(past, window, min(len(window) // 2, len(window) - 2))
    losses = np.array(found)
    mean = float(losses.mean())
    value = math.exp(mean) if mean < 700 else math.inf
    error = float(losses.std(ddof=1)) / math.sqrt(losses.size) if losses.size > 1 else 0.0
    return Perplexity(value, value * error, losses.size, count)


def _unlikely(past: Past, window: Sequence[int], first: int) -> list[float]:
    """The negative log-probability of each token of a window behind ``first``."""
    past.truncate(0)
    found: list[float] = []
    for start in range(0, len(window) - 1, CHUNK):
        chunk = window[start : min(start + CHUNK, len(window) - 1)]
        for place, logits in enumerate(past.extend(chunk, every=True), start + 1):
            if place > first:
                check_logits(logits)
                found.append(-float(log_probabilities(logits)[window[place]]))
    return found
