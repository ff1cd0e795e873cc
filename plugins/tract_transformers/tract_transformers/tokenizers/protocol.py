"""What the rest of this distribution wants of a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tract_core.frozen import frozen


@frozen
class Framed:
    """A text for an encoder, or two. ``tokens``: with those around; ``types``: of each, 1 for those of the second."""

    tokens: list[int]
    types: list[int]


class Tokenizer(Protocol):
    """Texts to tokens and back. A token is a number from 0 up to and without ``size``.

    ``begin``: what stands in front of a text that begins, as models with a token for that were trained; often empty.
    ``ends``: the tokens with which an answer ends. ``names``: texts of special tokens by the names that chat templates
    use, as ``{"bos_token": "<s>"}``.
    """

    @property
    def size(self) -> int:
        """How many tokens there are."""
        ...

    @property
    def begin(self) -> tuple[int, ...]:
        """What stands in front of a text."""
        ...

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end an answer."""
        ...

    @property
    def names(self) -> dict[str, str]:
        """Texts of special tokens, by name."""
        ...

    def pieces(self) -> Sequence[bytes | None]:
        """What each token is in a text, by number; ``None`` for a special one, which is no part of it.

        Raises Unsupported where the bytes of a token depend on the text around it.
        """
        ...

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The tokens of a text; nothing is put around them.

        ``special``: whether special tokens that are spelled in the text are meant, as in what a chat template wrote.
        Otherwise they are plain characters, and nobody who only writes a text can play another role.
        """
        ...

    def framed(self, text: str, other: str | None = None) -> Framed:
        """A text, or two, with what encoders want around them, as ``[CLS] a [SEP] b [SEP]``.

        Special tokens that are spelled in a text are plain characters, but for unigrams, which find them as pieces.
        """
        ...

    def decode(self, tokens: Sequence[int], special: bool = False) -> str:
        """The text of tokens; bytes that are no UTF-8 are U+FFFD. ``special``: whether special tokens are spelled out.

        Raises InputError for a number that is no token.
        """
        ...
