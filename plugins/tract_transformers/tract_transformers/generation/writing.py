"""The loop that writes: the prompt in chunks, then a token at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_transformers.generation.answer import Answer, Finish
from tract_transformers.generation.next_tokens import Draft, DraftedTokens, NextTokens, TextSoFar
from tract_transformers.generation.reading import CHUNK
from tract_transformers.generation.stops import Stops
from tract_transformers.language_model.past import Past
from tract_transformers.sampling.grammar import Grammar
from tract_transformers.sampling.sampler import Sampler, TokenChance, token_chance
from tract_transformers.tokenizers.protocol import Tokenizer
from tract_transformers.tokenizers.streaming import StreamingDecoder


@frozen
class Wishes:
    """What is asked of an answer. ``sampler``: chooses tokens; ``seed``: the one that it was asked for with.

    ``max_tokens``: where it ends at the latest. ``stops``: texts at which it ends. ``logprobs``: of how many of the
    likeliest tokens log-probabilities are kept; ``None`` for none at all. ``chunk``: see `CHUNK`. ``grammar``: what the
    answer has to look like. ``draft_tokens``: how many a draft proposes at once. ``special``: whether special tokens
    are spelled out.
    """

    sampler: Sampler
    seed: int
    max_tokens: int
    stops: tuple[str, ...] = ()
    logprobs: int | None = None
    chunk: int = CHUNK
    grammar: Grammar | None = None
    draft_tokens: int = 0
    special: bool = False


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
        *,
        draft: Draft | None = None,
        encoded: int = 0,
    ) -> None:
        """``past``: a fresh one, or one whose text may begin as ``prompt`` does. ``done``: is given it at the end.

        ``draft``: proposes tokens. ``encoded``: how many tokens an encoder reads of what was asked; then these count as
        the prompt, and not those with which the answer begins. Raises InputError for an empty prompt, and for a grammar
        that is none.
        """
        if not prompt:
            raise InputError("the prompt is empty, and the model has no token for the beginning of a text")
        self._past = past
        self._tokenizer = tokenizer
        self._prompt = list(prompt)
        self._prompt_tokens = encoded or len(self._prompt)
        self._wishes = wishes
        self._done = done
        self._decoder = StreamingDecoder(tokenizer, wishes.special)
        self._stops = Stops(wishes.stops)
        self._source = _source(past, tokenizer, self._prompt, wishes, draft)
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
            prompt_tokens=self._prompt_tokens,
            seed=self._wishes.seed,
            logprobs=None if self._wishes.logprobs is None else tuple(self._chances),
            prompt_seconds=self._seconds[0],
            answer_seconds=self._seconds[1],
            cached_tokens=self._source.recalled,
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
        chosen = next(self._source, None)
        if chosen is None or chosen.token in self._tokenizer.ends:
            self._seconds[bool(self._tokens)] += perf_counter() - begun
            return self._last_piece("stop")
        if self._wishes.logprobs is not None:
            self._chances.append(token_chance(chosen.logits, chosen.token, self._wishes.logprobs))
        self._seconds[bool(self._tokens)] += perf_counter() - begun
        self._tokens.append(chosen.token)
        piece, stopped = self._stops.take(self._decoder.take(chosen.token))
        if stopped:
            self._end("stop")
        elif len(self._tokens) >= self._wishes.max_tokens:
            piece += self._last_piece("stop" if self._source.is_done else "length")
        return piece

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


def _source(past: Past, tokenizer: Tokenizer, prompt: Sequence[int], wishes: Wishes, draft: Draft | None) -> NextTokens:
    """Where the tokens of an answer come from."""
    matching = None if wishes.grammar is None else wishes.grammar.matching(tokenizer)
    text = TextSoFar(prompt, tokenizer.ends, tokenizer.size, matching)
    if draft is None:
        return NextTokens(past, text, wishes.sampler, wishes.chunk)
    most = len(prompt) + wishes.max_tokens
    return DraftedTokens(past, text, wishes.sampler, wishes.chunk, draft=draft, count=wishes.draft_tokens, most=most)
