"""Chance that can be repeated: a number for each place of an answer, from the seed and the place alone."""

from __future__ import annotations

import secrets
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tract_core.errors import InputError
from tract_transformers.sampling.steps import Logits, probabilities, whole

_BITS: Final = 53
"""Of a float of 64 bits."""

MOST: Final = 1 << 64
"""Seeds are below that."""


def fresh_seed() -> int:
    """A seed that nobody asked for."""
    return secrets.randbits(32)


def checked_seed(seed: Any) -> int:
    """A seed. Raises InputError for what is none."""
    whole("seed", seed, 0)
    if seed >= MOST:
        raise InputError(f"seed is {seed!r}, wanted a whole number below 2**64")
    return int(seed)


class Lane(IntEnum):
    """What a number is for: each place has one for each. ``TOKEN``: the token; the others, see `speculative`."""

    TOKEN = 0
    PROPOSAL = 1
    ACCEPTANCE = 2


def chance(seed: int, place: int, lane: Lane = Lane.TOKEN) -> float:
    """A number from 0 up to and without 1, for the token at ``place`` of an answer, counted from 0.

    Philox, a counter-based generator (Salmon et al., 2011): no number depends on how many were drawn before, on
    threads, or on other answers that are written at the same time.
    """
    (bits,) = np.random.Philox(key=seed, counter=place + (lane << 64)).random_raw(1)
    return float(int(bits) >> (64 - _BITS)) * 2.0**-_BITS


def drawn(logits: Logits, number: float) -> int:
    """The token on which ``number``, from 0 up to and without 1, falls: each takes what it is likely, in order."""
    return fallen(probabilities(logits), number)


def fallen(shares: npt.NDArray[np.float64], number: float) -> int:
    """Where ``number`` falls, from 0 up to and without 1: each takes its share of their sum, in order."""
    sums: npt.NDArray[np.float64] = np.cumsum(shares)
    place = int(np.searchsorted(sums, number * float(sums[-1]), side="right"))
    return place if place < shares.size else int(np.flatnonzero(shares)[-1])  # rounding left it at the very end
