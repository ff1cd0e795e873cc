"""Reading a grammar by the package ``llguidance``: here, and in a process that may be lost over it."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

MOST_MEMORY: Final = 2 << 30
"""Bytes of address space that such a process has."""

SPACES: Final = r" ?|\n[ \t]{0,20}"
"""What may stand between the parts of JSON, as an expression: with no bound, small models write nothing else."""

_BYTES: Final = 256


def said_of(library: Any, kind: str, text: str) -> str:
    """A schema, a grammar or an expression in the package's own words. Raises ValueError for what is no JSON."""
    if kind == "schema":
        return str(library.LLMatcher.grammar_from_json_schema(text, defaults={"whitespace_pattern": SPACES}))
    make = library.LLMatcher.grammar_from_lark if kind == "grammar" else library.LLMatcher.grammar_from_regex
    return str(make(text))


def limits_of(library: Any) -> Any:
    """What the package may take to read a grammar, and for a step; and that its errors tell nothing of its state."""
    return library.LLParserLimits(verbose_errors=False)


def main() -> None:
    """Read a grammar, given as JSON ``[kind, text]``, for tokens that are bytes; print what is wrong, or nothing."""
    _take_little()
    kind, text = json.load(sys.stdin)
    try:
        problem = _problem(kind, text)
    except MemoryError:
        problem = "it takes too much memory to be read"
    json.dump(problem, sys.stdout)


class _OfBytes:
    """A tokenizer whose tokens are bytes, and one that ends texts."""

    tokens = (*(bytes([byte]) for byte in range(_BYTES)), b"\xff<end>")
    eos_token_id = _BYTES
    bos_token_id = None
    special_token_ids = (_BYTES,)

    def __call__(self, text: str) -> list[int]:
        return list(text.encode())


def _problem(kind: str, text: str) -> str:
    import llguidance as library

    try:
        said = said_of(library, kind, text)
    except ValueError as error:
        return str(error)
    told: Any = library.TokenizerWrapper(_OfBytes())
    tokenizer = library.LLTokenizer(told, n_vocab=_BYTES + 1, eos_token=[_BYTES])
    matcher = library.LLMatcher(tokenizer, said, log_level=0, limits=limits_of(library))
    if not matcher.is_error():
        matcher.compute_logit_bias()
    return matcher.get_error()


def _take_little() -> None:
    """Bound what this process takes of the machine, where the system can."""
    if sys.platform == "win32":  # which has no such bounds
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
