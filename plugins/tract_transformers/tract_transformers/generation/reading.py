"""Having a model see a prompt: what it knows already is not read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_transformers.language_model.past import Past
from tract_transformers.sampling.steps import Logits

CHUNK: Final = 512
"""Tokens of a prompt that a model is given at once: enough to read its weights seldom, and few enough for memory."""


def read_prompt(past: Past, prompt: Sequence[int], chunk: int = CHUNK) -> Logits:
    """Have a past hold ``prompt``, in chunks, without the beginning that it knows. Returns the last logits, [V].

    Where the past goes on otherwise than the prompt, it forgets that.
    """
    recall_prompt(past, prompt)
    return read_rest(past, prompt, chunk)


def recall_prompt(past: Past, prompt: Sequence[int]) -> int:
    """Have a past hold as much of ``prompt`` as it knows, but not its last token. Returns how many tokens these are."""
    known = min(past.recall(prompt), len(prompt) - 1)
    past.truncate(known)
    return known


def read_rest(past: Past, text: Sequence[int], chunk: int = CHUNK) -> Logits:
    """The same for a past that holds a beginning of ``text``, of which a token at the least is not seen yet."""
    logits = None
    for start in range(len(past.tokens), len(text), chunk):
        logits = past.extend(text[start : start + chunk])[-1]
    assert logits is not None  # the caller left a token
    return logits
