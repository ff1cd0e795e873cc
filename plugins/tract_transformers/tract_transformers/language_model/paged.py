"""The past of many texts in pages that one state of a model has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tract_core.api.runnable import Runnable
from tract_core.frozen import frozen
from tract_transformers.language_model.description import LanguageModel
from tract_transformers.language_model.pages import Memory, PagePool, Text
from tract_transformers.language_model.past import Past, check_frozen, check_length, check_tokens, common_beginning

Array = npt.NDArray[Any]

REMEMBERED: Final = 64 << 20
"""Bytes of pages of texts that were, which are remembered unless somebody says more."""

SHORTEST_TABLE: Final = 4
"""For how many pages a table has room at least; a longer one for twice as many each time, so that few sizes come up."""


@frozen
class TextPart:
    """What a step has to do with a ``text``: the ``tokens`` that come.

    ``every``: whether the logits of all of them are wanted, else of the last one.
    """

    text: Text
    tokens: Sequence[int]
    every: bool = False


class PagedTexts:
    """All texts of one model, which many threads may extend: one after the other, a step at a time."""

    def __init__(
        self,
        runnable: Runnable,
        description: LanguageModel,
        *,
        most: int | None = None,
        remembered: int = REMEMBERED,
    ) -> None:
        """``most``: pages at a time, if not any number. ``remembered``: bytes of pages of texts that were."""
        assert description.pages is not None  # the caller looked
        size, page_bytes = description.pages
        self.vocabulary = description.vocabulary
        self.pages = PagePool(size, most)
        self.memory = Memory(self.pages, remembered // max(page_bytes, 1))
        self._state = runnable.spawn_state()
        self._names = runnable.input_names()
        self._tokens, self._kind = description.tokens, description.kinds[0].numpy
        self._lock = RLock()

    def text(self) -> Text:
        """A text without a token."""
        return Text(self.pages)

    def past(self) -> PagedPast:
        """The past of a text without a token."""
        return PagedPast(self)

    def give_back(self, past: Past) -> None:
        """Nobody goes on with a past; its pages are remembered."""
        past.close()

    def recall(self, text: Text, tokens: Sequence[int]) -> int:
        """Have a text be the longest beginning of ``tokens`` that it has, or that is remembered. Returns its length."""
        with self._lock:
            own = common_beginning(text.tokens, tokens)
            found, length = self.memory.find(tokens)
            if length > own:
                text.become(tokens[:length], found)
            else:
                for page in found:
                    self.pages.give_back(page)
                text.truncate(own)
            return len(text.tokens)

    def truncate(self, text: Text, length: int) -> None:
        """Have a text forget all but its first ``length`` tokens. Raises InputError for more than there are."""
        check_length(length, len(text.tokens))
        with self._lock:
            text.truncate(length)

    def fork(self, text: Text) -> Text:
        """Another text with the same beginning, which goes its own way."""
        with self._lock:
            return text.fork()

    def remember(self, text: Text) -> None:
        """A text goes on, and others that begin the same find what its whole pages have."""
        with self._lock:
            whole = len(text.tokens) // self.pages.size
            self.memory.keep(text.tokens[: whole * self.pages.size], text.pages[:whole])

    def close(self, text: Text) -> None:
        """A text is over; what it had is remembered."""
        with self._lock:
            self.memory.keep(text.tokens, text.pages)
            text.truncate(0)

    def extend(self, parts: Sequence[TextPart]) -> list[Array]:
        """Have some texts, each once, go on with some tokens. Returns logits [n,V] for each, in order.

        Raises as `Past.extend` does, and LimitExceeded where pages do not suffice; then, all texts are as they were.
        """
        for part in parts:
            check_tokens(part.tokens, self.vocabulary)
        with self._lock:
            before = [list(part.text.pages) for part in parts]
            try:
                copies = self._make_room(parts)
                inputs, counts = self._inputs(parts, copies)
                (found,) = self._state.run([inputs[name] for name in self._names])
            except BaseException:
                for part, pages in zip(parts, before, strict=True):
                    part.text.restore(pages)
                raise
            for part in parts:
                part.text.tokens.extend(part.tokens)
        logits = found.view()[0]
        logits = logits if logits.dtype.itemsize >= 4 else logits.astype(np.float32)
        ends = np.cumsum(counts).tolist()
        return [logits[end - count : end] for end, count in zip(ends, counts, strict=True)]

    def freeze(self, text: Text) -> dict[str, Array]:
        """Keys and values of a text [heads,positions,size], copied, by the names that inputs have for them."""
        found: dict[str, Array] = {}
        with self._lock:
            self._have_pages()
            for layer, kept in enumerate(self._state.freeze().kept.values()):
                for name, one in zip(_names(layer), _by_positions(kept), strict=True):
                    part = one[text.pages].swapaxes(0, 1)
                    found[name] = part.reshape(len(part), -1, part.shape[-1])[:, : len(text.tokens)].copy()
        return found

    def thaw(self, text: Text, tokens: Sequence[int], arrays: Mapping[str, Array]) -> None:
        """Have a text be what it was when it had ``tokens`` and gave ``arrays``.

        Raises CorruptModel for arrays that do not fit, LimitExceeded where pages do not suffice; then, it is empty.
        """
        with self._lock:
            text.truncate(0)
            self._have_pages()
            text.make_room(len(tokens))
            try:
                self._have_pages()
                frozen = self._state.freeze()
                kept = {node: (keys.copy(), values.copy()) for node, (keys, values) in frozen.kept.items()}
                places = {
                    name: one
                    for layer, both in enumerate(kept.values())
                    for name, one in zip(_names(layer), _by_positions(both), strict=True)
                }
                wanted = {name: ((one.shape[1], len(tokens), one.shape[3]), one.dtype) for name, one in places.items()}
                check_frozen(tokens, arrays, wanted, self.vocabulary)
                for name, one in places.items():
                    _write(one, text.pages, arrays[name])
                self._state = frozen.with_kept(kept).unfreeze()
            except BaseException:
                text.restore([])
                raise
            text.tokens = list(tokens)

    def _have_pages(self) -> None:
        """Have the state keep as many pages as there are, which it does from a step on."""
        nothing = self.text()
        self.extend([TextPart(nothing, [0])])
        nothing.truncate(0)

    def _make_room(self, parts: Sequence[TextPart]) -> list[tuple[int, int]]:
        """Pages for all that comes; what is remembered goes where there are too few."""
        needed = sum(part.text.needs(len(part.tokens)) for part in parts)
        if self.pages.most is not None and self.pages.taken + needed > self.pages.most:
            self.memory.shrink_by(self.pages.taken + needed - self.pages.most)
        copies: list[tuple[int, int]] = []
        for part in parts:
            copies += part.text.make_room(len(part.tokens))
        return copies

    def _inputs(self, parts: Sequence[TextPart], copies: list[tuple[int, int]]) -> tuple[dict[str, Array], list[int]]:
        """What the model is given, and of how many tokens of each text it gives logits."""
        counts, seen = [len(part.tokens) for part in parts], [len(part.text.tokens) for part in parts]
        begins = np.zeros(len(parts) + 1, np.int64)
        np.cumsum(counts, out=begins[1:])
        longest = max(SHORTEST_TABLE, *(len(part.text.pages) for part in parts))
        pages = np.zeros((len(parts), 1 << (longest - 1).bit_length()), np.int64)
        for row, part in zip(pages, parts, strict=True):
            row[: len(part.text.pages)] = part.text.pages
        wanted = [count if part.every else 1 for part, count in zip(parts, counts, strict=True)]
        rows: list[Array] = [
            np.arange(end - count, end) for end, count in zip(begins[1:].tolist(), wanted, strict=True)
        ]
        inputs: dict[str, Array] = {
            self._tokens: np.array([[one for part in parts for one in part.tokens]], self._kind),
            "positions": np.concatenate([np.arange(a, a + b) for a, b in zip(seen, counts, strict=True)]),
            "begins": begins,
            "pages": pages,
            "copies": np.array(copies, np.int64).reshape(-1, 2),
            "room": np.zeros(self.pages.room, np.int64),
            "rows": np.concatenate(rows),
        }
        return inputs, wanted


def _names(layer: int) -> tuple[str, str]:
    return f"past.{layer}.key", f"past.{layer}.value"


def _by_positions(kept: tuple[Array, Array]) -> tuple[Array, Array]:
    """Keys and values of pages, both [pages,heads,page,size], where they are."""
    keys, values = kept
    return keys.swapaxes(2, 3), values


def _write(kept: Array, pages: Sequence[int], new: Array) -> None:
    """Write keys or values [heads,positions,size] into some of the pages [pages,heads,page,size]."""
    size = kept.shape[2]
    for number, page in enumerate(pages):
        part = new[:, number * size : (number + 1) * size]
        kept[page, :, : part.shape[1]] = part


class PagedPast:
    """The past of one text among those of `PagedTexts`, as the protocol `Past` has it."""

    def __init__(self, texts: PagedTexts, text: Text | None = None) -> None:
        self._texts = texts
        self._text = texts.text() if text is None else text

    @property
    def tokens(self) -> Sequence[int]:
        """What was seen so far."""
        return self._text.tokens

    def recall(self, tokens: Sequence[int]) -> int:
        """As the protocol says; what other texts left counts too."""
        return self._texts.recall(self._text, tokens)

    def extend(self, tokens: Sequence[int], *, every: bool = False) -> Array:
        """As the protocol says."""
        return self._texts.extend([TextPart(self._text, tokens, every)])[0]

    def truncate(self, length: int) -> None:
        """As the protocol says."""
        self._texts.truncate(self._text, length)

    def fork(self) -> PagedPast:
        """Another past of the same beginning, which goes its own way."""
        return PagedPast(self._texts, self._texts.fork(self._text))

    def freeze(self) -> Mapping[str, Array]:
        """As the protocol says."""
        return self._texts.freeze(self._text)

    def thaw(self, tokens: Sequence[int], arrays: Mapping[str, Array]) -> None:
        """As the protocol says; LimitExceeded where pages do not suffice."""
        self._texts.thaw(self._text, tokens, arrays)

    def close(self) -> None:
        """As the protocol says; what was seen is remembered."""
        self._texts.close(self._text)
