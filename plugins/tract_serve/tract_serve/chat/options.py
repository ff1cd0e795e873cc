"""What the configuration of a model of texts says, among its parameters."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_serve.config import ModelConfig

CACHES: Final = ("f32", "f16", "bf16", "i8")

TEXTS: Final = 8
"""Texts that are written at the same time, unless somebody says otherwise."""

REMEMBERED_MB: Final = 256
"""Of what was computed of prompts, for prompts that begin the same."""


@frozen
class TextOptions:
    """``texts``: at the same time. ``pages``: of 64 positions, for all of them; ``None`` for what memory allows.

    ``remembered``: megabytes of pages of texts that were. ``cache``: the type of keys and values; ``None`` for f16
    where floats are rounded, else f32. ``exact``: whether floats are never rounded to 8 bits. ``adapters``: paths.
    ``draft``: a path, or ``prompt``; ``draft_tokens``: that it proposes at once. ``tokenizer``: a folder.
    ``pooling``, ``end``: of vectors.
    """

    texts: int = TEXTS
    pages: int | None = None
    remembered: int = REMEMBERED_MB
    cache: str | None = None
    exact: bool = False
    adapters: tuple[str, ...] = ()
    draft: str | None = None
    draft_tokens: int = 5
    tokenizer: str | None = None
    pooling: str | None = None
    end: bool = False

    @staticmethod
    def of(config: ModelConfig) -> TextOptions:
        """Those of a configuration. Raises CorruptModel for what is none."""
        cache = config.parameter("cache")
        if cache is not None and cache not in CACHES:
            raise _wrong("cache", cache, f"one of {', '.join(CACHES)}")
        pooling = config.parameter("pooling")
        if pooling not in (None, "last", "mean", "cls"):
            raise _wrong("pooling", pooling, "last, mean or cls")
        return TextOptions(
            texts=_whole(config, "texts", 1) or TEXTS,
            pages=_whole(config, "pages", 1),
            remembered=REMEMBERED_MB if (found := _whole(config, "remembered", 0)) is None else found,
            cache=cache,
            exact=_flag(config, "exact"),
            adapters=_paths(config, "adapters"),
            draft=config.parameter("draft"),
            draft_tokens=_whole(config, "draft_tokens", 1) or 5,
            tokenizer=config.parameter("tokenizer"),
            pooling=pooling,
            end=_flag(config, "end"),
        )


def _whole(config: ModelConfig, name: str, least: int) -> int | None:
    given = config.parameter(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal()) or not least <= int(given) <= 1 << 40:
        raise _wrong(name, given, f"a number from {least} on")
    return int(given)


def _flag(config: ModelConfig, name: str) -> bool:
    given = config.parameter(name)
    if given not in (None, "true", "false"):
        raise _wrong(name, given, "true or false")
    return given == "true"


def _paths(config: ModelConfig, name: str) -> tuple[str, ...]:
    """A path, or a list of them in JSON."""
    given = config.parameter(name)
    if given is None:
        return ()
    if not given.startswith("["):
        return (given,)
    try:
        found: Any = json.loads(given)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in cast("list[object]", found)):
        raise _wrong(name, given, "a path, or a list of paths in JSON")
    return tuple(cast("list[str]", found))


def _wrong(name: str, given: object, wanted: str) -> CorruptModel:
    return CorruptModel(f"{name} is {given!r:.80}, wanted {wanted}", where="parameters", hint="see docs/serve.md")
