"""Tokenizers that the ``tokenizers`` package computes: those of ``tokenizer.json``, and whatever is built with it."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from tokenizers import Tokenizer as Library

from tract_core.errors import CorruptModel, InputError
from tract_transformers.tokenizers.pieces import Piece, pieces_of
from tract_transformers.tokenizers.protocol import Framed


class LibraryTokenizer:
    """A `tract_transformers.tokenizers.protocol.Tokenizer`. Many threads may use one."""

    def __init__(
        self,
        library: Library,
        *,
        begin: Sequence[int] = (),
        ends: Iterable[int] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Raises CorruptModel where ``begin`` or ``ends`` holds a number that is no token."""
        self._library = library
        self._lock = threading.Lock()
        self._pieces: tuple[Piece, ...] | None = None
        self.size = library.get_vocab_size(with_added_tokens=True)
        self.begin = tuple(begin)
        self.ends = frozenset(ends)
        self.names = dict(names or {})
        both = (*self.begin, *self.ends)
        strange = [one for one in both if not 0 <= one < 1 << 32 or library.id_to_token(one) is None]
        if strange:
            raise CorruptModel(f"token {strange[0]}, which begins or ends a text, is not in the vocabulary")

    def pieces(self) -> tuple[Piece, ...]:
        """As the protocol says."""
        if self._pieces is None:
            self._pieces = pieces_of(self._library)
        return self._pieces

    def encode(self, text: str, special: bool = False) -> list[int]:
        """As the protocol says. Raises InputError for what is no text, as one with halves of surrogate pairs."""
        _check(text)
        with self._lock, no_panic():  # the choice is a property of the library's object
            self._library.encode_special_tokens = not special
            return self._library.encode(text, add_special_tokens=False).ids

    def framed(self, text: str, other: str | None = None) -> Framed:
        """As the protocol says. Raises InputError for what is no text."""
        for one in (text, other or ""):
            _check(one)
        with self._lock, no_panic():  # as above
            self._library.encode_special_tokens = True
            found = self._library.encode(text, other)
        return Framed(found.ids, found.type_ids)

    def decode(self, tokens: Sequence[int], special: bool = False) -> str:
        """As the protocol says."""
        for token in tokens:
            if not 0 <= token < 1 << 32 or self._library.id_to_token(token) is None:
                raise InputError(f"token {token} is not in the vocabulary, which has {self.size}")
        return self._library.decode(tokens, skip_special_tokens=not special)

    def __repr__(self) -> str:
        return f"LibraryTokenizer({self.size} tokens)"


@contextmanager
def no_panic() -> Generator[None]:
    """Inside, what the package does about tables that are damaged is a CorruptModel, and not the end of the program."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # which no module has
            raise
        raise CorruptModel(f"the tokenizer fails on a text: {error!s:.200}") from None


def _check(text: str) -> None:
    """Raises InputError for a text with what is no character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        hint = "text.encode('utf-8', 'replace').decode() replaces them"
        raise InputError(f"the text holds {text[error.start]!r}, which is no character", hint=hint) from None
