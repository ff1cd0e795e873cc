"""What guesses how a text goes on: what was there before, or another model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_transformers.generation.next_tokens import TextSoFar
from tract_transformers.generation.reading import read_prompt, read_rest
from tract_transformers.language_model.past import Past
from tract_transformers.sampling.sampler import Sampler
from tract_transformers.sampling.speculative import Proposal, propose
from tract_transformers.sampling.steps import Logits

MOST_DRAFTED: Final = 15
"""Tokens that a draft proposes at once, at most: the model is asked for the logits of all of them, and of one more."""


class LookUp:
    """Proposes what came behind the last tokens where they were before, in the prompt or in the answer.

    Prompt look-up decoding (Saxena, 2023): answers often repeat parts of their prompts.
    """

    def __init__(self) -> None:
        self._behind: dict[tuple[int, ...], int] = {}
        """By some tokens, the place behind where they were the last time."""
        self._looked = 0

    def propose(self, text: TextSoFar, count: int) -> list[Proposal]:
        """As the protocol says: behind the last place where the last three tokens were, or the last two."""
        tokens = text.tokens
        for end in range(self._looked + 1, len(tokens)):
            for length in _ALIKE:
                if length <= end:
                    self._behind[tuple(tokens[end - length : end])] = end
        self._looked = len(tokens) - 1
        for length in _ALIKE:
            place = self._behind.get(tuple(tokens[-length:]))
            if place is not None:
                return [Proposal(token) for token in tokens[place : place + count]]
        return []


_ALIKE: Final = (3, 2)
"""How many tokens are looked for."""


class ModelDraft:
    """Proposes what another, smaller model would write, with the same tokens."""

    def __init__(self, past: Past, sampler: Sampler, chunk: int, most: int | None = None) -> None:
        """``most``: how long a text this model takes; ``None`` where nobody says."""
        self._past = past
        self._sampler = sampler
        self._chunk = chunk
        self._most = most
        self._length = 0
        """Of the text, the last time."""

    def propose(self, text: TextSoFar, count: int) -> list[Proposal]:
        """As the protocol says; nothing where the text is too long for the model."""
        length = len(text.tokens)
        if self._most is not None and length + count > self._most:
            return []
        found: list[Proposal] = []
        while len(found) < count and not text.is_whole:
            row = read_rest(self._past, text.tokens, self._chunk) if found else self._read(text.tokens)
            found.append(propose(self._sampler, text.logits(row), text.counts))
            text.add(found[-1].token)
        text.take_back(length)
        return found

    def _read(self, tokens: Sequence[int]) -> Logits:
        """Have the past hold a text that may go on otherwise than was proposed. Returns its last logits, [V]."""
        before, self._length = self._length, len(tokens)
        if not before:
            return read_prompt(self._past, tokens, self._chunk)
        seen = self._past.tokens
        most = min(len(seen), len(tokens) - 1)
        self._past.truncate(next((at for at in range(before, most) if seen[at] != tokens[at]), most))
        return read_rest(self._past, tokens, self._chunk)
