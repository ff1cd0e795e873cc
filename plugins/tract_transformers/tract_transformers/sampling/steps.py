"""Steps that change logits: each a frozen dataclass that is called with the logits of one position.

A logit is the logarithm of a probability, but for a constant. A step returns new logits, of the same type; a token that
can no longer be drawn has minus infinity. Where tokens are equally likely, those with lower numbers are kept.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_transformers.sampling.counts import Counts

Logits = npt.NDArray[np.floating[Any]]
"""The logits of all tokens, [V], in f32 or f64."""


class Step(Protocol):
    """``counts``: which tokens are in the text so far. The logits that come in are not changed."""

    def __call__(self, logits: Logits, counts: Counts) -> Logits:
        """The logits after this step."""
        ...


@frozen
class RepetitionPenalty:
    """Makes tokens less likely that are in the prompt or in the answer: divides their logits, multiplies negative ones.

    As in "CTRL" (Keskar et al., 2019). ``penalty``: 1 changes nothing, below 1 makes them likelier.
    """

    penalty: float

    def __post_init__(self) -> None:
        within("repetition_penalty", self.penalty, 0, math.inf, open_low=True)

    def __call__(self, logits: Logits, counts: Counts) -> Logits:
        """``l / penalty`` where l > 0, else ``l * penalty``"""
        seen = counts.seen
        changed, before = logits.copy(), logits[seen]
        changed[seen] = np.where(before > 0, before / self.penalty, before * self.penalty)
        return changed


@frozen
class CountPenalty:
    """Takes from the logits of tokens that are in the answer: once, and for each time that they are there.

    ``presence``, ``frequency``: how much, as OpenAI's interface has them; negative ones make repetition likelier.
    """

    presence: float = 0.0
    frequency: float = 0.0

    def __post_init__(self) -> None:
        within("presence_penalty", self.presence, -math.inf, math.inf)
        within("frequency_penalty", self.frequency, -math.inf, math.inf)

    def __call__(self, logits: Logits, counts: Counts) -> Logits:
        """``l - presence * (count > 0) - frequency * count``"""
        tokens, times = counts.answered
        changed = logits.copy()
        changed[tokens] -= (self.presence + self.frequency * times).astype(logits.dtype)
        return changed


@frozen
class Temperature:
    """Divides the logits by ``temperature``: below 1, what is likely becomes likelier. 0 is no step: see `Sampler`."""

    temperature: float

    def __post_init__(self) -> None:
        within("temperature", self.temperature, 0, math.inf, open_low=True)

    def __call__(self, logits: Logits, counts: Counts) -> Logits:
        """``(l - max) / temperature``, which does not overflow for small temperatures"""
        divisor = max(self.temperature, float(np.finfo(logits.dtype).tiny))
        with np.errstate(over="ignore"):
            return (logits - logits.max()) / logits.dtype.type(divisor)


@frozen
class TopK:
    """Keeps the ``k`` likeliest tokens; all where there are not as many."""

    k: int

    def __post_init__(self) -> None:
        whole("top_k", self.k, 1)

    def __call__(self, logits: Logits, counts: Counts) -> Logits:
        """The k largest stay."""
        if self.k >= logits.size:
            return logits
        least = _kth_largest(logits, self.k)
        larger = np.flatnonzero(logits > least)
        equal = np.flatnonzero(logits == least)[: self.k - larger.size]
        return _only(logits, np.concatenate([larger, equal]))


@frozen
class TopP:
    """Keeps the likeliest tokens, as few as have together a probability of ``p`` or more; one at the least.

    Nucleus sampling: Holtzman et al., 2020.
    """

    p: float

    def __post_init__(self) -> None:
        within("top_p", self.p, 0, 1)

    def __call__(self, logits: Logits, counts: Counts) -> Logits:
        """The shortest beginning of the tokens in order that has enough."""
        if self.p == 1:
            return logits
        shares = probabilities(logits)
        likely = np.flatnonzero(shares > (1 - self.p) / (2 * shares.size))  # all others have less than 1 - p together
        order = likely[np.argsort(np.negative(logits[likely]), kind="stable")]
        sums: npt.NDArray[np.float64] = np.cumsum(shares[order])
        kept = int(np.searchsorted(sums, self.p)) + 1
        return _only(logits, order[:kept])


@frozen
class MinP:
    """Keeps the tokens that are at least ``p`` times as likely as the likeliest one."""

    p: float

    def __post_init__(self) -> None:
        within("min_p", self.p, 0, 1)

    def __call__(self, logits: Logits, counts: Counts) -> Logits:
        """``l >= max + log(p)`` stays."""
        if self.p == 0:
            return logits
        return np.where(logits >= logits.max() + logits.dtype.type(math.log(self.p)), logits, -np.inf)


def _kth_largest(logits: Logits, k: int) -> np.floating[Any]:
    """The k-th largest logit.

    At least k logits are as large as the k-th largest of the maxima of parts, so no smaller one has to be looked at.
    """
    width = logits.size // (4 * k)
    if width > 1:
        maxima = logits[: 4 * k * width].reshape(4 * k, width).max(axis=1)
        logits = logits[logits >= np.partition(maxima, 3 * k)[3 * k]]
    return np.partition(logits, logits.size - k)[logits.size - k]


def _only(logits: Logits, kept: npt.NDArray[np.intp]) -> Logits:
    """The logits of some tokens; minus infinity for the others."""
    found = np.full_like(logits, -np.inf)
    found[kept] = logits[kept]
    return found


def probabilities(logits: Logits) -> npt.NDArray[np.float64]:
    """What the logits say, in f64: they add up to 1."""
    powers = np.exp(logits.astype(np.float64) - np.float64(logits.max()))
    return powers / powers.sum()


def log_probabilities(logits: Logits) -> npt.NDArray[np.float64]:
    """The logarithms of `probabilities`."""
    shifted = logits.astype(np.float64) - np.float64(logits.max())
    return shifted - np.log(np.exp(shifted).sum())


def is_number(value: object) -> bool:
    """Whether it is one, of Python or NumPy, and no truth value."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def whole(name: str, value: Any, least: int, most: float = math.inf) -> None:
    """Refuse a parameter that is no whole number, too small or too large. Raises InputError."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not least <= value <= most:
        up_to = "" if most == math.inf else f" to {most:g}"
        off = ", 0 to keep all" if name == "top_k" else f" from {least}{up_to}"
        raise InputError(f"{name} is {value!r}, wanted a whole number{off}")


def within(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> None:
    """Refuse a parameter that is no number between two others. Raises InputError. ``open_low``: nor ``low`` itself."""
    if not is_number(value) or not math.isfinite(value) or not low <= value <= high or (open_low and value == low):
        above = f"above {low:g}" if open_low else f"from {low:g}"
        wanted = "a number" if low == -math.inf else above if high == math.inf else f"{above} to {high:g}"
        raise InputError(f"{name} is {value!r}, wanted {wanted}")
