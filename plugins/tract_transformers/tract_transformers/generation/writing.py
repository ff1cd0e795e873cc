"""The loop that writes: the prompt in chunks, then a token at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Final

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_transformers.generation.answer import Answer, Finish
from tract_transformers.generation.stops import Stops
from tract_transformers.language_model.past import Past
from tract_transformers.sampling.counts import Counts
from tract_transformers.sampling.sampler import Sampler, TokenChance, token_chance
from tract_transformers.sampling.steps import Logits
from tract_transformers.tokenizers.protocol import Tokenizer
from tract_transformers.tokenizers.streaming import StreamingDecoder

CHUNK: Final = 512
"""Tokens of a prompt that a model is given at once: enough to read its weights seldom, and few enough for memory."""


@frozen
class Wishes:
    """What is asked of an answer. ``sampler``: chooses tokens; ``seed``: the one that it was asked for with.

    ``max_tokens``: where it ends at the latest. ``stops``: texts at which it ends. ``logprobs``: of how many of the
    likeliest tokens log-probabilities are kept; ``None`` for none at all. ``chunk``: see `CHUNK`.
    """

    sampler: Sampler
    seed: int
    max_tokens: int
    stops: tuple[str, ...] = ()
    logprobs: int | None = None
    chunk: int = CHUNK


class Writing(Iterator[str]):
    """An answer while it is written: an iterator of pieces of text, of which none is empty.

    ``answer`` is what was written so far, and at the end all of it. `close` ends it early, as ``with`` and ``del`` do.
    """

    def __init__(
        self,
        past: Past,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        wishes: Wishes,
        done: Callable[[Past], None] | None = None,
    ) -> None:
        """``past``: a fresh one, or one whose text may begin as ``prompt`` does. ``done``: is given it at the end."""
        if not prompt:
            raise InputError("the prompt is empty, and the model has no token for the beginning of a text")
        self._past = past
        self._tokenizer = tokenizer
        self._prompt = list(prompt)
        self._wishes = wishes
        self._done = done
        self._decoder = StreamingDecoder(tokenizer)
        self._stops = Stops(wishes.stops)
        self._counts = Counts(prompt)
        self._next = self._prompt
        """What the model has not seen yet."""
        self._tokens: list[int] = []
        self._text: list[str] = []
        self._chances: list[TokenChance] = []
        self._finish: Finish | None = None
        self._seconds = [0.0, 0.0]

    def __next__(self) -> str:
        """The next piece. Raises StopIteration at the end, RunError where the model fails."""
        while self._finish is None:
            piece = self._advance()
            if piece:
                self._text.append(piece)
                return piece
        raise StopIteration

    @property
    def answer(self) -> Answer:
        """What was written so far; its ``finish_reason`` is ``interrupted`` before the end."""
        return Answer(
            text="".join(self._text),
            tokens=tuple(self._tokens),
            finish_reason=self._finish or "interrupted",
            prompt_tokens=len(self._prompt),
            seed=self._wishes.seed,
            logprobs=None if self._wishes.logprobs is None else tuple(self._chances),
            prompt_seconds=self._seconds[0],
            answer_seconds=self._seconds[1],
        )

    def close(self) -> None:
        """Write no more."""
        self._end("interrupted")

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_finish"):
            self.close()

    def _advance(self) -> str:
        """One more token; returns the text that is certain with it."""
        if self._wishes.max_tokens == 0:
            self._end("length")
            return ""
        begun = perf_counter()
        logits = self._logits()
        token = self._wishes.sampler(logits, self._counts)
        if token in self._tokenizer.ends:
            self._seconds[bool(self._tokens)] += perf_counter() - begun
            return self._last_piece("stop")
        if self._wishes.logprobs is not None:
            self._chances.append(token_chance(logits, token, self._wishes.logprobs))
        self._seconds[bool(self._tokens)] += perf_counter() - begun
        self._tokens.append(token)
        self._counts.add(token)
        self._next = [token]
        piece, stopped = self._stops.take(self._decoder.take(token))
        if stopped:
            self._end("stop")
        elif len(self._tokens) >= self._wishes.max_tokens:
            piece += self._last_piece("length")
        return piece

    def _logits(self) -> Logits:
        """Those of the next token, of the whole vocabulary."""
        if self._next is self._prompt:
            logits = read_prompt(self._past, self._prompt, self._wishes.chunk)
        else:
            logits = self._past.extend(self._next)[-1]
        return logits[: self._tokenizer.size]  # many a model has more rows than there are tokens

    def _last_piece(self, finish: Finish) -> str:
        """What was held back; the answer ends."""
        piece, stopped = self._stops.take(self._decoder.finish())
        self._end("stop" if stopped else finish)
        return piece if stopped else piece + self._stops.finish()

    def _end(self, finish: Finish) -> None:
        if self._finish is None:
            self._finish = finish
            if self._done is not None:
                self._done(self._past)


def read_prompt(past: Past, prompt: Sequence[int], chunk: int = CHUNK) -> Logits:
    """Have a past hold ``prompt``, in chunks, but for the beginning that it has already. Returns the last logits, [V].

    Where the past goes on otherwise than the prompt, it forgets that.
    """
    seen = min(common_beginning(past.tokens, prompt), len(prompt) - 1)
    past.truncate(seen)
    logits = None
    for start in range(seen, len(prompt), chunk):
        logits = past.extend(prompt[start : start + chunk])[-1]
    assert logits is not None  # there is always a last token
    return logits


def common_beginning(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts have in common in front."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
