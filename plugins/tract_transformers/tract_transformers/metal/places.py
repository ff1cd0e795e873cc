"""Where tokens, and what they see, lie in pages: what all layers of a model compute alike, so that MLX does it once.

Numbers come from outside. Those that name what does not exist refuse the turn, and are cut to what does, as MLX reads
and writes wherever a number says.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import mlx.core as mx

from tract_transformers.ops.paged_attention import PagedAttention

TOKENS_OF_A_TEXT: Final = 4
"""Up to so many, as a mean of all texts, each token meets the pages of its own text; others meet those of all texts."""


class Places:
    """What a turn is told of its ``tokens``, by the inputs of those names."""

    def __init__(self, op: PagedAttention, tokens: int, controls: tuple[mx.array, ...]) -> None:
        self._op, self.tokens, self._controls = op, tokens, controls
        self._begins, self._copies = controls[1], controls[3]
        self.texts, self.table = controls[2].shape
        self.room = controls[4].shape[0]

    @property
    def nothing(self) -> bool:
        """Whether there is no token, or no page for one."""
        return 0 in (self.tokens, self.texts, self.table, self.room)

    @property
    def each_alone(self) -> bool:
        """Whether each token meets the pages of its own text, and not all tokens those of all texts."""
        most = self.texts if self.texts == 1 else self.texts * TOKENS_OF_A_TEXT
        return self.tokens <= most

    def wrong(self) -> list[mx.array]:
        """What refuses the turn where anything of it is true, as `Controls.check` does."""
        positions, begins, pages, copies, _ = self._controls
        if begins.size != self.texts + 1:
            return [mx.array(True)]
        limits = (positions, self.table * self._op.page), (pages, self.room), (copies, self.room)
        found = [(numbers < 0) | (numbers >= limit) for numbers, limit in limits if numbers.size]
        found += [begins[1:] < begins[:-1]] if self.texts else []
        return [*found, begins[0] != 0, begins[-1] != self.tokens]

    # --- one number for each token ---

    @cached_property
    def positions(self) -> mx.array:
        """[T], in their texts."""
        return mx.clip(self._controls[0], 0, self.table * self._op.page - 1)

    @cached_property
    def text(self) -> mx.array:
        """[T]: of which text they are."""
        ended = self._begins[None, 1:] <= mx.arange(self.tokens, dtype=mx.int64)[:, None]
        return mx.clip(mx.sum(ended.astype(mx.int32), axis=1), 0, self.texts - 1)

    @cached_property
    def pages(self) -> mx.array:
        """[R,M]: those of each text."""
        return mx.clip(self._controls[2], 0, self.room - 1)

    @cached_property
    def slots(self) -> mx.array:
        """[T]: where their keys and values go, among the positions of all pages."""
        page = self._op.page
        return self.pages[self.text, self.positions // page] * page + self.positions % page

    @cached_property
    def writers(self) -> mx.array:
        """[T]: which token writes to the slot of each one: the last one of those that have it."""
        return _last_with(self.slots, self.room * self._op.page)

    # --- what is copied ---

    @property
    def copied(self) -> bool:
        """Whether any page is copied."""
        return 0 not in (self._copies.size, self.room)

    @cached_property
    def sources(self) -> mx.array:
        """[C]: of each copy, the page that its target gets in the end, as copies are done one after the other.

        What a copy reads may be what one before it wrote: it reads on there, twice as far in each round.
        """
        source, target = (mx.clip(self._copies[:, side], 0, self.room - 1) for side in (0, 1))
        count = source.shape[0]
        numbers = mx.arange(count, dtype=mx.int32)
        before = (target[None] == source[:, None]) & (numbers[None] < numbers[:, None])
        found = mx.max(mx.where(before, numbers[None], -1), axis=1)
        first = mx.where(found < 0, numbers, found)
        for _ in range(count.bit_length()):
            first = mx.take(first, first)
        return mx.take(mx.take(source, first), _last_with(target, self.room))

    @cached_property
    def targets(self) -> mx.array:
        """[C]: the pages that are written to."""
        return mx.clip(self._copies[:, 1], 0, self.room - 1)

    # --- what tokens see ---

    @cached_property
    def met(self) -> mx.array:
        """Pages [T,K] that each token meets, where each does alone, else [1,R*M] of all texts."""
        if not self.each_alone:
            return mx.reshape(self.pages, (1, -1))
        table = mx.take(self.pages, self.text, axis=0)
        if self._most == self.table:
            return table
        numbers = self._first[:, None] + mx.arange(self._most, dtype=mx.int64)[None]
        return mx.take_along_axis(table, mx.minimum(numbers, self.table - 1), axis=1)

    @cached_property
    def seen(self) -> mx.array:
        """Which of the positions of these pages each token sees: [T,1,K*page], or [1,T,R*M*page]."""
        if self.each_alone:
            length = self._most * self._op.page
            places = self._first[:, None] * self._op.page + mx.arange(length, dtype=mx.int64)[None]
            return self._up_to(places)[:, None]
        places = mx.arange(self.table * self._op.page, dtype=mx.int64)[None]
        own = self.text[:, None] == mx.arange(self.texts, dtype=mx.int32)[None]
        return mx.reshape(own[:, :, None] & self._up_to(places)[:, None], (1, self.tokens, -1))

    def _up_to(self, places: mx.array) -> mx.array:
        """Which of ``places`` [T or 1,n] in its text each token sees: [T,n]."""
        behind = self.positions[:, None] - places
        seen = behind >= 0
        return seen if self._op.window is None else seen & (behind < self._op.window)

    @property
    def _most(self) -> int:
        """How many pages a token sees, at most."""
        window, page = self._op.window, self._op.page
        return self.table if window is None else min(self.table, (window + page - 2) // page + 1)

    @cached_property
    def _first(self) -> mx.array:
        """[T]: which page of its text is the first one that each token meets."""
        if self._op.window is None or self._most == self.table:
            return mx.zeros((self.tokens,), mx.int64)
        return mx.maximum(self.positions - (self._op.window - 1), 0) // self._op.page


def _last_with(numbers: mx.array, limit: int) -> mx.array:
    """For each of ``numbers``, which are below ``limit``, the place of the last one that is the same."""
    at: Any = mx.zeros((limit,), mx.int32).at[numbers]
    return mx.take(at.maximum(mx.arange(numbers.shape[0], dtype=mx.int32)), numbers)
