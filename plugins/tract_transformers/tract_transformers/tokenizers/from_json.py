"""Tokenizers as the ``transformers`` package keeps them: ``tokenizer.json``, and the files beside it.

``tokenizer_config.json`` and ``special_tokens_map.json`` say which tokens begin and end texts,
``generation_config.json`` and ``config.json`` which ones end answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from tokenizers import Tokenizer as Library

from tract_core.errors import CorruptModel, LimitExceeded, ModelError
from tract_transformers.tokenizers.library import LibraryTokenizer, no_panic

FILE: Final = "tokenizer.json"
MOST_BYTES: Final = 256 << 20
"""Of a file of texts; those of vocabularies with 256,000 tokens have some 30 MB."""


def tokenizer_from_json(folder: Path) -> LibraryTokenizer:
    """The tokenizer of a folder with a ``tokenizer.json``. Raises ModelError for files that cannot be read."""
    path = folder / FILE
    content = _content(path)
    try:
        library = Library.from_buffer(content)
        library.no_padding()
        library.no_truncation()
    except Exception as error:  # the package raises nothing more precise
        raise CorruptModel(f"it is no tokenizer: {error}", where=str(path)) from error
    names = special_names(folder)
    return LibraryTokenizer(library, begin=_begin(library), ends=_ends(folder, library, names), names=names)


def settings(folder: Path, name: str) -> Mapping[str, Any]:
    """What a file of JSON beside a model holds, nothing where there is none. Raises ModelError for a broken one."""
    path = folder / name
    if not path.is_file():
        return {}
    try:
        found: object = json.loads(_content(path))
    except (ValueError, RecursionError) as error:
        raise CorruptModel(f"it is no JSON: {error}", where=str(path)) from None
    if not isinstance(found, dict):
        raise CorruptModel(f"it holds a {type(found).__name__}, wanted an object", where=str(path))
    return cast("dict[str, Any]", found)


def special_names(folder: Path) -> dict[str, str]:
    """The texts of special tokens, as ``{"bos_token": "<s>"}``."""
    given = {**settings(folder, "special_tokens_map.json"), **settings(folder, "tokenizer_config.json")}
    texts = {name: _text(value) for name, value in given.items() if name.endswith("_token")}
    return {name: text for name, text in texts.items() if text is not None}


def _text(value: object) -> str | None:
    """A token, which is given as a text or as an object with one."""
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("content")
    return value if isinstance(value, str) else None


def _begin(library: Library) -> list[int]:
    """What the tokenizer itself puts in front of a text."""
    with no_panic():
        plain = library.encode("a", add_special_tokens=False).ids
        whole = library.encode("a", add_special_tokens=True).ids
    place = next((at for at in range(len(whole)) if plain and whole[at : at + len(plain)] == plain), 0)
    return whole[:place]


def _ends(folder: Path, library: Library, names: Mapping[str, str]) -> set[int]:
    """The tokens that end answers, as any of the files says."""
    found: set[int] = set()
    genai: object = settings(folder, "genai_config.json").get("model")
    files = [settings(folder, name) for name in ("generation_config.json", "config.json")]
    for config in [*files, *([cast("dict[str, object]", genai)] if isinstance(genai, dict) else [])]:
        given: object = config.get("eos_token_id")
        several = cast("Iterable[object]", given) if isinstance(given, list) else [given]
        found |= {one for one in several if isinstance(one, int) and not isinstance(one, bool)}
    text = names.get("eos_token")
    token = None if text is None else library.token_to_id(text)
    return found if token is None else {*found, token}


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise LimitExceeded(f"it has {size:,} bytes, more than {MOST_BYTES:,}", where=str(path))
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}", where=str(path), hint="check the path") from None
