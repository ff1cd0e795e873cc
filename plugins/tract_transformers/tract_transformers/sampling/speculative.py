"""Tokens that a draft proposes, taken or left such that the answer is as likely as without it.

Speculative sampling (Leviathan et al., 2023, arXiv:2211.17192): of a token that the draft took with probability q and
the model takes with p, min(1, p/q) is how likely it is accepted; in place of one that is not, one is drawn of what p
has more than q. A draft that is certain, as text that was there before, needs no q: the model's own draw is the answer,
and the proposal was right where it is the same.

The numbers for a place are its own, whatever was proposed for it before: what was behind a token that was left had no
part in any choice.
"""

from __future__ import annotations

import numpy as np

from tract_core.frozen import frozen
from tract_transformers.sampling.counts import Counts
from tract_transformers.sampling.draw import Lane, chance, fallen
from tract_transformers.sampling.sampler import Chances, Sampler
from tract_transformers.sampling.steps import Logits


@frozen
class Proposal:
    """A ``token`` for one place, and the ``chances`` that the draft drew it by; ``None`` where it does not draw."""

    token: int
    chances: Chances | None = None


def propose(sampler: Sampler, logits: Logits, counts: Counts) -> Proposal:
    """What a draft proposes that gives these logits [V]. Raises RunError where they are none."""
    if sampler.seed is None:
        return Proposal(sampler(logits, counts))
    found = sampler.chances(logits, counts)
    place = fallen(found.shares, chance(sampler.seed, counts.length, Lane.PROPOSAL))
    return Proposal(found.token(place), found)


def decide(sampler: Sampler, logits: Logits, counts: Counts, proposal: Proposal) -> int:
    """The token that comes, for the logits [V] of the model: that of the proposal, where it is accepted.

    Raises RunError where the logits are none.
    """
    if sampler.seed is None or proposal.chances is None:
        return sampler(logits, counts)
    wanted, place = sampler.chances(logits, counts), counts.length
    token = np.array([proposal.token])
    p, q = float(wanted.at(token)[0]), float(proposal.chances.at(token)[0])
    if chance(sampler.seed, place, Lane.ACCEPTANCE) * q < p:
        return proposal.token
    rest = _rest(wanted, proposal.chances)
    return rest.token(fallen(rest.shares, chance(sampler.seed, place)))


def _rest(wanted: Chances, proposed: Chances) -> Chances:
    """What the first has more than the second, which may be of another sum than 1."""
    tokens = np.arange(wanted.shares.size) if wanted.tokens is None else wanted.tokens
    shares = np.maximum(wanted.shares - proposed.at(tokens), 0.0)
    return Chances(shares, wanted.tokens) if shares.any() else wanted  # rounding left nothing
