"""How a model of texts is made ready: of which file, as what, and with which options."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tract_core.api.runtime import runtime_with
from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_transformers.generation.embedding import TextEmbedder
    from tract_transformers.generation.reranking import TextReranker
    from tract_transformers.generation.text_model import TextModel

    from tract_core.api.runtime import Runtime

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

    def found_runtime(self) -> Runtime:
        """The runtime, with threads and bytes where it knows them."""
        rounds = True if self.kind == "text" and not self.exact else None
        return runtime_with(self.runtime, threads=self.threads, bytes=rounds)


def prepared(recipe: TextRecipe) -> TextModel | TextEmbedder | TextReranker:
    """The model, ready. Raises as `tract_transformers.load`, `load_embedder` and `load_reranker` do."""
    import tract_transformers

    runtime = recipe.found_runtime()
    path, tokenizer = Path(recipe.path), recipe.tokenizer
    if recipe.kind == "scores":
        return tract_transformers.load_reranker(path, runtime, tokenizer=tokenizer)
    if recipe.kind == "vectors":
        pooling: Any = recipe.pooling
        more: dict[str, Any] = {"adapters": recipe.adapters, "tokenizer": tokenizer}
        return tract_transformers.load_embedder(path, runtime, pooling=pooling, end=recipe.end, **more)
    cache = recipe.cache or ("f16" if runtime.options().get(BYTES) else "f32")
    return tract_transformers.load(path, runtime, tokenizer=tokenizer, adapters=recipe.adapters, cache=cache)


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
