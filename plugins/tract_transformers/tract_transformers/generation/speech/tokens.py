"""The tokens by which a model of speech is told what to write: the language, the task, and whether to say when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from tract_core.errors import CorruptModel, InputError
from tract_core.frozen import frozen
from tract_transformers.tokenizers.protocol import Framed, Tokenizer

TASKS: Final = ("transcribe", "translate")
"""To write down what is said in its language, or in English."""

SECONDS: Final = 0.02
"""From one token of time to the next."""


_MULTILINGUAL: Final = 51865
"""Tokens of a vocabulary that has those of many languages; that of English alone has one less."""

_LANGUAGE: Final = re.compile(r"<\|[a-z]{2,3}\|>")


@frozen
class SpeechTokens:
    """``start``: with which all answers begin. ``end``: of an answer. ``untimed``: asks for no times.

    ``languages``, ``tasks``: tokens by name; none of a model of one language. ``first_time``: the token of 0 seconds,
    behind which all later times stand. ``never``, ``not_first``: tokens that are not written, or not as the first one.
    ``latest``: the latest time at which an answer may begin, in tokens; ``None`` for any.
    """

    start: int
    end: int
    untimed: int
    languages: Mapping[str, int]
    tasks: Mapping[str, int]
    never: tuple[int, ...] = ()
    not_first: tuple[int, ...] = ()
    latest: int | None = None

    @property
    def first_time(self) -> int:
        """The token of 0 seconds."""
        return self.untimed + 1

    def prompt(self, language: str | None, task: str, *, timed: bool) -> list[int]:
        """With what an answer begins. Raises InputError for a language and a task that the model does not know."""
        asked = [self.start]
        if task not in TASKS:
            raise InputError(f"the task is {task!r:.80}, wanted {' or '.join(TASKS)}")
        if self.languages:
            asked += [_one_of(self.languages, language, "language"), _one_of(self.tasks, task, "task")]
        elif language not in (None, "en") or task != TASKS[0]:
            raise InputError("the model knows English alone, and writes it down")
        return asked if timed else [*asked, self.untimed]


def _one_of(known: Mapping[str, int], name: str | None, what: str) -> int:
    if name is None or name not in known:
        raise InputError(f"the {what} is {name!r:.80}; the model knows {', '.join(sorted(known))}")
    return known[name]


class TimedTokenizer:
    """The tokenizer of a model whose last tokens are times, which are no part of a text; many a one lacks them."""

    def __init__(self, tokenizer: Tokenizer, tokens: SpeechTokens, vocabulary: int) -> None:
        """``vocabulary``: how many tokens the model knows."""
        self._tokenizer, self._first = tokenizer, tokens.first_time
        self.size = vocabulary
        self.begin = tokenizer.begin
        self.ends = tokenizer.ends | {tokens.end}
        self.names = tokenizer.names

    def pieces(self) -> Sequence[bytes | None]:
        """As the protocol says; times are none."""
        known = self._tokenizer.pieces()[: min(self._first, self.size)]
        return [*known, *[None] * (self.size - len(known))]

    def encode(self, text: str, special: bool = False) -> list[int]:
        """As the protocol says."""
        return self._tokenizer.encode(text, special)

    def framed(self, text: str, other: str | None = None) -> Framed:
        """As the protocol says."""
        return self._tokenizer.framed(text, other)

    def decode(self, tokens: Sequence[int], special: bool = False) -> str:
        """As the protocol says, without times."""
        return self._tokenizer.decode([one for one in tokens if one < self._first], special)

    def __repr__(self) -> str:
        return repr(self._tokenizer)


def tokens_of(said: Mapping[str, Any], tokenizer: Tokenizer) -> SpeechTokens:
    """What files beside a model say of them, where they do, else what they are called in the vocabulary.

    ``said``: of ``generation_config.json`` and ``config.json``. Raises CorruptModel where a token is missing, and for
    what is none.
    """
    start = _said(said, "decoder_start_token_id", "startoftranscript", tokenizer)
    languages = _languages(said, start, tokenizer)
    given = _tokens(said.get("task_to_id"), "task", tokenizer)
    tasks = given or ({one: _named(one, tokenizer) for one in TASKS} if languages else {})
    latest = said.get("max_initial_timestamp_index")
    ends = _listed([said.get("eos_token_id")], "eos_token_id", tokenizer) or (_named("endoftext", tokenizer),)
    return SpeechTokens(
        start=start,
        end=ends[0],
        untimed=_said(said, "no_timestamps_token_id", "notimestamps", tokenizer),
        languages=languages,
        tasks=tasks,
        never=_listed(said.get("suppress_tokens"), "suppress_tokens", tokenizer),
        not_first=_listed(said.get("begin_suppress_tokens"), "begin_suppress_tokens", tokenizer),
        latest=latest if type(latest) is int and latest >= 0 else None,
    )


def _languages(said: Mapping[str, Any], start: int, tokenizer: Tokenizer) -> dict[str, int]:
    """By their short names; none for a model of English. Old folders do not say: there, the vocabulary does."""
    if said.get("is_multilingual") is False:
        return {}
    given = _tokens(said.get("lang_to_id"), "lang", tokenizer)
    if given or not (said.get("is_multilingual") or _number(said.get("vocab_size")) >= _MULTILINGUAL):
        return {name.strip("<|>"): token for name, token in given.items()}
    known = {token: tokenizer.decode([token], special=True) for token in range(start + 1, tokenizer.size)}
    return {text.strip("<|>"): token for token, text in known.items() if _LANGUAGE.fullmatch(text)}


def _number(given: object) -> int:
    return given if type(given) is int else 0


def _said(said: Mapping[str, Any], key: str, name: str, tokenizer: Tokenizer) -> int:
    found = _listed([said.get(key)], key, tokenizer)
    return found[0] if found else _named(name, tokenizer)


def _named(name: str, tokenizer: Tokenizer) -> int:
    found = tokenizer.encode(f"<|{name}|>", special=True)
    if len(found) != 1 or tokenizer.decode(found, special=True) != f"<|{name}|>":
        raise CorruptModel(f"the vocabulary has no token <|{name}|>, and nobody says which one it is")
    return found[0]


def _listed(given: Any, key: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Tokens of a list; ``None`` and -1 stand for none."""
    several = cast("list[Any]", given if isinstance(given, list) else [given])
    several = [two for one in several for two in (cast("list[Any]", one) if isinstance(one, list) else [one])]
    found = [one for one in several if one is not None and one != -1]
    for one in found:
        if type(one) is not int or not 0 <= one < 1 << 31:
            raise CorruptModel(f"{key} holds {one!r:.80}, wanted tokens, of which there are {tokenizer.size}")
    return tuple(found)


def _tokens(given: Any, name: str, tokenizer: Tokenizer) -> dict[str, int]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise CorruptModel(f"{name}_to_id is {given!r:.80}, wanted an object of tokens")
    found = cast("dict[str, Any]", given)
    _listed(list(found.values()), f"{name}_to_id", tokenizer)
    return {key: value for key, value in found.items() if type(value) is int}
