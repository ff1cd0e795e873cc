"""What somebody asks of an answer, checked, whatever kind of model writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.errors import InputError
from tract_transformers.generation.reading import CHUNK
from tract_transformers.generation.stops import checked_stops
from tract_transformers.generation.writing import Wishes
from tract_transformers.sampling.draw import checked_seed, fresh_seed
from tract_transformers.sampling.grammar import grammar_of
from tract_transformers.sampling.sampler import sampler_of
from tract_transformers.sampling.steps import whole

MOST_TOKENS: Final = 256
"""Of an answer, unless somebody says more."""


def wishes_of(
    room: int | None,
    *,
    max_tokens: int = MOST_TOKENS,
    temperature: float = 0.8,
    top_k: int = 40,
    top_p: float = 0.95,
    min_p: float = 0.05,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    seed: int | None = None,
    stop: str | Sequence[str] | None = None,
    logprobs: int | None = None,
    schema: Mapping[str, Any] | str | None = None,
    grammar: str | None = None,
    regex: str | None = None,
    chunk: int = CHUNK,
    draft_tokens: int = 0,
    special: bool = False,
    **unknown: Any,
) -> Wishes:
    """What `TextModel.generate` is asked for besides the prompt; it says what the parameters are.

    ``room``: how many tokens the model's context has left; ``None`` where nobody says. Raises InputError.
    """
    if unknown:
        raise InputError(f"generate has no parameter {next(iter(unknown))!r}", hint="help(TextModel.generate)")
    whole("max_tokens", max_tokens, 0)
    whole("chunk", chunk, 1)
    if not isinstance(special, bool):  # pyright: ignore[reportUnnecessaryIsInstance]: of users
        raise InputError(f"special is {special!r:.80}, wanted True or False")
    if logprobs is not None:
        whole("logprobs", logprobs, 0)
    seed = fresh_seed() if seed is None else checked_seed(seed)
    sampler = sampler_of(
        seed=seed,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
    )
    most = max_tokens if room is None else min(max_tokens, room)
    wished = grammar_of(schema, grammar, regex)
    return Wishes(sampler, seed, most, checked_stops(stop), logprobs, chunk, wished, draft_tokens, special)
