"""How the next token is chosen: the steps in their order, then the likeliest token or a draw.

The order is that of the ``transformers`` package: penalties, which look at the logits as the model gave them; then the
temperature; then what cuts unlikely tokens off, `TopK`, `TopP`, `MinP`, each seeing what the one before it left.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tract_core.errors import RunError
from tract_core.frozen import frozen
from tract_transformers.sampling.counts import Counts
from tract_transformers.sampling.draw import chance, drawn
from tract_transformers.sampling.steps import (
    CountPenalty,
    Logits,
    MinP,
    RepetitionPenalty,
    Step,
    Temperature,
    TopK,
    TopP,
    log_probabilities,
    probabilities,
    whole,
    within,
)


@frozen
class Sampler:
    """``steps``: in order. ``seed``: of the draws; ``None`` takes the likeliest token, of several the lowest."""

    steps: tuple[Step, ...] = ()
    seed: int | None = None

    def logits(self, logits: Logits, counts: Counts) -> Logits:
        """The logits after all steps. Raises RunError where the model gave not-a-number, or no token is possible."""
        check_logits(logits)
        for step in self.steps:
            logits = step(logits, counts)
        return logits

    def __call__(self, logits: Logits, counts: Counts) -> int:
        """The next token, for the logits [V] that the model gave. Raises RunError as `logits` does."""
        if self.seed is None:
            return int(self.logits(logits, counts).argmax())
        found, tokens = self._possible(logits, counts)
        place = drawn(found, chance(self.seed, counts.length))
        return place if tokens is None else int(tokens[place])

    def chances(self, logits: Logits, counts: Counts) -> Chances:
        """How likely `__call__` takes each token. Raises RunError as `logits` does."""
        if self.seed is None:
            return Chances(np.ones(1), np.array([self(logits, counts)]))
        found, tokens = self._possible(logits, counts)
        return Chances(probabilities(found), tokens)

    def _possible(self, logits: Logits, counts: Counts) -> tuple[Logits, npt.NDArray[np.intp] | None]:
        """What `logits` gives, of the tokens that are possible alone; and which these are, ``None`` for all.

        Of a large vocabulary, few are left after the first step that cuts: the others cost nothing then.
        """
        check_logits(logits)
        tokens: npt.NDArray[np.intp] | None = None
        for place, step in enumerate(self.steps):
            logits = step(logits, counts)
            if isinstance(step, _CUT) and all(isinstance(one, (*_CUT, Temperature)) for one in self.steps[place:]):
                kept = np.flatnonzero(logits > -np.inf)
                logits, tokens = logits[kept], kept if tokens is None else tokens[kept]
        return logits, tokens


@frozen
class Chances:
    """``shares``: how likely each of ``tokens`` is, which ascend; ``None`` for all of a vocabulary."""

    shares: npt.NDArray[np.float64]
    tokens: npt.NDArray[np.intp] | None = None

    def token(self, place: int) -> int:
        """The token to which the share at ``place`` belongs."""
        return place if self.tokens is None else int(self.tokens[place])

    def at(self, tokens: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """How likely these tokens are."""
        if self.tokens is None:
            return self.shares[tokens]
        places = np.minimum(np.searchsorted(self.tokens, tokens), self.tokens.size - 1)
        return np.where(self.tokens[places] == tokens, self.shares[places], 0.0)


_CUT: Final = (TopK, TopP, MinP)
"""Steps after which fewer tokens are possible. They, and `Temperature`, look at logits and not at tokens."""


def sampler_of(
    *,
    seed: int,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
) -> Sampler:
    """The sampler that these parameters ask for; steps that would change nothing are left out.

    ``temperature``: 0 takes the likeliest token, whatever the seed. ``top_k``: 0 keeps all. Raises InputError for
    values that no step takes.
    """
    within("temperature", temperature, 0, float("inf"))
    whole("top_k", top_k, 0)
    steps: list[tuple[bool, Step]] = [
        (repetition_penalty != 1, RepetitionPenalty(repetition_penalty)),
        (bool(presence_penalty or frequency_penalty), CountPenalty(presence_penalty, frequency_penalty)),
        (temperature not in (0, 1), Temperature(temperature or 1.0)),
        (temperature != 0 and top_k != 0, TopK(top_k or 1)),
        (temperature != 0 and top_p != 1, TopP(top_p)),
        (temperature != 0 and min_p != 0, MinP(min_p)),
    ]
    return Sampler(tuple(step for wanted, step in steps if wanted), seed if temperature else None)


def check_logits(logits: Logits) -> None:
    """Raise RunError unless there is a largest logit, and it is a number."""
    top = logits.max() if logits.size else -np.inf
    if np.isfinite(top):
        return
    found = "not-a-number" if np.isnan(top) else "an infinity" if top > 0 else "no token that is possible"
    hint = (
        "weights that are damaged, or f16 that overflows, do that; 'tract MODEL run --assert-sane-floats' finds where"
    )
    raise RunError(f"the logits hold {found}", where="logits", hint=hint)


@frozen
class TokenChance:
    """What a model said of a ``token``. ``logprob``: the logarithm of its probability, before any step.

    ``likeliest``: the same of the likeliest tokens at that place, as many as were asked for.
    """

    token: int
    logprob: float
    likeliest: tuple[tuple[int, float], ...] = ()


def token_chance(logits: Logits, token: int, count: int) -> TokenChance:
    """What the model said of ``token``, and of the ``count`` likeliest ones."""
    found = log_probabilities(logits)
    count = min(count, found.size)
    top = np.argsort(-found, kind="stable")[:count]
    return TokenChance(token, float(found[token]), tuple((int(one), float(found[one])) for one in top))
