"""The bytes that each token stands for in a text, read off how a tokenizer decodes.

A tokenizer keeps tokens as texts of its own: bytes written as letters, or pieces with U+2581 for a space, where tokens
as ``<0x0A>`` are single bytes. Which of these it is, its decoder says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, cast

from tokenizers import Tokenizer as Library

from tract_core.errors import Unsupported

Piece = bytes | None
"""What a token is in a text; ``None`` for a special one, which is no part of it, and for a number without a token."""

_BYTE: Final = re.compile("<0x([0-9A-Fa-f]{2})>")

_NO_CHANGE: Final = frozenset({"Fuse", "Strip"})
"""Parts of decoders that change no token, but for the first one of a text."""


def pieces_of(library: Library) -> tuple[Piece, ...]:
    """The bytes of each token, by number. Raises Unsupported for a decoder whose tokens have none of their own."""
    spelled = _spelling(list(_parts(_decoder(library))))
    added = cast("Mapping[int, Any]", library.get_added_tokens_decoder())
    found: list[Piece] = []
    for token in range(library.get_vocab_size(with_added_tokens=True)):
        text = library.id_to_token(token)
        if text is None:
            found.append(None)
        elif token in added:
            found.append(None if added[token].special else text.encode())
        else:
            found.append(spelled(text))
    return tuple(found)


def _decoder(library: Library) -> object:
    """What the decoder says of itself, as in ``tokenizer.json``; ``None`` where there is none."""
    held: Any = library.decoder
    return None if held is None else json.loads(held.__getstate__())


def _parts(said: object) -> Iterator[Mapping[str, Any]]:
    """The decoders in a decoder, in order."""
    part: Mapping[str, Any] = cast("Mapping[str, Any]", said) if isinstance(said, dict) else {}
    if part.get("type") == "Sequence":
        for one in part["decoders"]:
            yield from _parts(one)
    else:
        yield part


def _spelling(parts: Sequence[Mapping[str, Any]]) -> Callable[[str], bytes]:
    """What makes bytes of a token's text. Raises Unsupported where the text around a token counts."""
    replaced: list[tuple[str, str]] = []
    kinds = {part.get("type") for part in parts}
    for part in parts:
        pattern = part.get("pattern")
        old = cast("Mapping[str, str]", pattern).get("String") if isinstance(pattern, dict) else None
        if part.get("type") == "Metaspace":
            replaced.append((part["replacement"], " "))
        elif part.get("type") == "Replace" and old:
            replaced.append((old, part["content"]))
        elif part.get("type") not in {"ByteLevel", "ByteFallback", *_NO_CHANGE}:
            name = part.get("type") or "no decoder"
            raise Unsupported(f"the bytes of tokens are not known for a tokenizer with {name}", where="tokenizer")
    if "ByteLevel" in kinds:
        return _from_letters
    return lambda text: _from_piece(text, replaced, single_bytes="ByteFallback" in kinds)


def _from_piece(text: str, replaced: Sequence[tuple[str, str]], *, single_bytes: bool) -> bytes:
    """The bytes of a piece of SentencePiece."""
    one_byte = _BYTE.fullmatch(text) if single_bytes else None
    if one_byte is not None:
        return bytes([int(one_byte[1], 16)])
    for old, new in replaced:
        text = text.replace(old, new)
    return text.encode()


def _from_letters(text: str) -> bytes:
    """The bytes that letters stand for; those of the letters themselves where one stands for none."""
    known = letters()
    return bytes(known[letter] for letter in text) if known.keys() >= set(text) else text.encode()


@cache
def letters() -> Mapping[str, int]:
    """Bytes by the letters that GPT-2 writes for them: those that can be seen as they are, others from U+0100 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(0x100 + place): byte for place, byte in enumerate(hidden)}
