"""Log-probabilities of tokens, in the two forms that the interface has for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from tract_core.errors import Unsupported

if TYPE_CHECKING:
    from tract_transformers.sampling.sampler import TokenChance
    from tract_transformers.tokenizers.protocol import Tokenizer

LEAST: Final = -9999.0
"""The log-probability of what cannot come: minus infinity, which JSON does not have."""


class TokenNames:
    """What the tokens of a model are called. Many threads may use one."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._pieces: Sequence[bytes | None] | None = None

    def prepare(self) -> None:
        """Have the names of all tokens, which takes some tenths of a second for many."""
        if self._pieces is None:
            try:
                self._pieces = self._tokenizer.pieces()
            except Unsupported:
                self._pieces = ()

    def __call__(self, token: int) -> bytes:
        """The bytes of a token; of a special one, its name."""
        pieces = self._pieces or ()
        found = pieces[token] if token < len(pieces) else None
        return self._tokenizer.decode([token], special=True).encode() if found is None else found


def in_chat(names: TokenNames, chances: Sequence[TokenChance]) -> list[dict[str, Any]]:
    """Those of a conversation: for each token, itself and the likeliest ones."""
    return [
        {**_token(names, one.token, one.logprob), "top_logprobs": [_token(names, *other) for other in one.likeliest]}
        for one in chances
    ]


def _token(names: TokenNames, token: int, logprob: float) -> dict[str, Any]:
    spelled = names(token)
    return {"token": spelled.decode(errors="replace"), "logprob": bounded(logprob), "bytes": [*spelled]}


def in_texts(names: TokenNames, chances: Sequence[TokenChance], offset: int) -> tuple[dict[str, Any], int]:
    """Those of a text, in lists side by side; and where the next token's text begins.

    ``offset``: where that of the first one does, in characters.
    """
    tokens, offsets = list[str](), list[int]()
    for one in chances:
        tokens.append(names(one.token).decode(errors="replace"))
        offsets.append(offset)
        offset += len(tokens[-1])
    found: dict[str, Any] = {
        "tokens": tokens,
        "token_logprobs": [bounded(one.logprob) for one in chances],
        "top_logprobs": [_likeliest(names, one) for one in chances],
        "text_offset": offsets,
    }
    return found, offset


def _likeliest(names: TokenNames, chance: TokenChance) -> dict[str, float]:
    found: dict[str, float] = {}
    for token, logprob in chance.likeliest:
        found.setdefault(names(token).decode(errors="replace"), bounded(logprob))
    return found


def bounded(logprob: float) -> float:
    """A log-probability that JSON has."""
    return logprob if math.isfinite(logprob) else LEAST
