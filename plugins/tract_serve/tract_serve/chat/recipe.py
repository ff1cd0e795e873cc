"""How a model of texts is made ready: of which file, as what, and with which options."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tract_core.api.runtime import runtime_for_name
from tract_core.frozen import frozen
from tract_core.plugins.parameters import parse_call

if TYPE_CHECKING:
    from tract_transformers.generation.embedding import TextEmbedder
    from tract_transformers.generation.reranking import TextReranker
    from tract_transformers.generation.text_model import TextModel

Kind = Literal["text", "vectors", "scores"]

BYTES: Final = "bytes"
"""The option of a runtime that rounds to 8 bits what is multiplied with weights of few bits."""


@frozen
class TextRecipe:
    """``path``: of a file or folder. ``kind``: what is made of it. ``runtime``: its name, with options.

    ``threads``: of each run. ``exact``, ``cache``, ``adapters``, ``tokenizer``, ``pooling``, ``end``: as in
    `TextOptions`, with whole paths.
    """

    path: str
    kind: Kind
    runtime: str = "default"
    threads: int | None = None
    exact: bool = False
    cache: str | None = None
    adapters: tuple[str, ...] = ()
    tokenizer: str | None = None
    pooling: str | None = None
    end: bool = False

    def to_json(self) -> str:
        """The fields, for another process."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> TextRecipe:
        """What `to_json` wrote."""
        given: dict[str, Any] = json.loads(text)
        adapters = tuple(given.pop("adapters"))
        return TextRecipe(**given, adapters=adapters)

    def options(self) -> tuple[str, dict[str, Any]]:
        """The name of the runtime, and its options: those that are said, threads, and bytes where it knows them."""
        name, options = parse_call(self.runtime)
        known = {one.name for one in fields(runtime_for_name(name).backend)}  # pyright: ignore[reportArgumentType]: runtimes are dataclasses
        added: dict[str, Any] = {"threads": self.threads} if self.threads is not None else {}
        if self.kind == "text" and not self.exact:
            added[BYTES] = True
        return name, {**{one: value for one, value in added.items() if one in known}, **options}


def prepared(recipe: TextRecipe) -> TextModel | TextEmbedder | TextReranker:
    """The model, ready. Raises as `tract_transformers.load`, `load_embedder` and `load_reranker` do."""
    import tract_transformers

    name, options = recipe.options()
    path, tokenizer = Path(recipe.path), recipe.tokenizer
    if recipe.kind == "scores":
        return tract_transformers.load_reranker(path, name, tokenizer=tokenizer, **options)
    if recipe.kind == "vectors":
        pooling: Any = recipe.pooling
        more = {"adapters": recipe.adapters, "tokenizer": tokenizer}
        return tract_transformers.load_embedder(path, name, pooling=pooling, end=recipe.end, **more, **options)
    cache = recipe.cache or ("f16" if options.get(BYTES) else "f32")
    return tract_transformers.load(path, name, tokenizer=tokenizer, adapters=recipe.adapters, cache=cache, **options)


def warm_up(model: TextModel | TextEmbedder | TextReranker) -> None:
    """Have a model compute something, so that what it cannot do is told now. Raises as it does."""
    from tract_transformers.generation.embedding import TextEmbedder
    from tract_transformers.generation.reranking import TextReranker

    if isinstance(model, TextEmbedder):
        model.embed(_WORDS)
    elif isinstance(model, TextReranker):
        model.scores(_WORDS, [_WORDS])
    else:
        model.generate(_WORDS, max_tokens=2, temperature=0)


_WORDS: Final = "Hello there"
