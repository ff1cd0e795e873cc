"""Text that comes token by token: what is no whole character yet is held back."""

from __future__ import annotations

from typing import Final

from tract_transformers.tokenizers.protocol import Tokenizer

BROKEN: Final = "\ufffd"
"""What stands in a text for bytes that are no whole character."""

PATIENCE: Final = 8
"""Tokens that are held back at most for a character, which has four bytes at the most, and a byte is a token at least.

Twice as many, as an emoji may begin behind the rest of another one.
"""


class StreamingDecoder:
    """Makes text of tokens that come one by one.

    The pieces, one behind the other, are what `Tokenizer.decode` makes of all tokens at once. Where bytes are no UTF-8
    at all, there may be another number of U+FFFD.
    """

    def __init__(self, tokenizer: Tokenizer, special: bool = False) -> None:
        """``special``: whether special tokens are spelled out."""
        self._tokenizer = tokenizer
        self._special = special
        self._before: list[int] = []
        """The tokens of the last piece: many a tokenizer writes a token otherwise at the beginning of a text."""
        self._held: list[int] = []

    def take(self, token: int) -> str:
        """The text that is certain now, which may be empty."""
        self._held.append(token)
        return self._piece(whole=len(self._held) >= PATIENCE)

    def finish(self) -> str:
        """What was held back, with U+FFFD for a character that never became whole."""
        return self._piece(whole=True) if self._held else ""

    def _piece(self, *, whole: bool) -> str:
        before = self._tokenizer.decode(self._before, self._special)
        text = self._tokenizer.decode([*self._before, *self._held], self._special)
        if text.endswith(BROKEN) and not whole:
            return ""
        if len(text) > len(before):  # else it is a special token, before which a space may be dropped
            self._before, self._held = self._held, []
        return text[len(before) :]
