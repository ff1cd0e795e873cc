"""From a file or a folder to a model of texts that is served."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tract_core.errors import PluginError
from tract_core.plugins.installing import how_to_install, is_installed
from tract_serve.chat.alone import Alone
from tract_serve.chat.answers import PROMPT
from tract_serve.chat.options import TextOptions
from tract_serve.chat.recipe import BYTES, Kind, TextRecipe, prepared, warm_up
from tract_serve.chat.served import About, ServedScores, ServedText, ServedVectors, Writer
from tract_serve.chat.turns import Places
from tract_serve.config import ModelConfig
from tract_serve.models.trying import asked_apart, raise_told
from tract_serve.settings import Settings

if TYPE_CHECKING:
    from tract_transformers.generation.embedding import TextEmbedder
    from tract_transformers.generation.reranking import TextReranker
    from tract_transformers.generation.text_model import TextModel

    from tract_core import Runnable
    from tract_serve.models.protocol import ServedModel

SHARE: Final = 0.5
"""Of the memory that is free, how much pages of texts may take in all, unless somebody says how many there are."""

_NEEDED: Final = ("tract-gguf", "tract-transformers")


def text(name: str, version: str, path: Path, config: ModelConfig, settings: Settings) -> ServedModel:
    """A model that writes texts. Raises ModelError where it cannot be made ready."""
    options = TextOptions.of(config)
    recipe = _recipe("text", path, config, options, settings)
    model = cast("TextModel", _ready(recipe, settings))
    wishes = _drafting(recipe, path, options)
    pages = options.pages or _pages(model, options)
    writer = _writer(model, options, pages)
    texts = 1 if isinstance(writer, Alone) else options.texts
    told = {**_told(model.runnable), "texts": texts, **({} if pages is None else {"pages": pages})}
    return ServedText(
        About(name, version, "text", model.context, told),
        _places(config, settings, texts, spare=0 if texts == 1 else texts),
        model,
        writer,
        wishes=wishes,
        most_tokens=_most_tokens(model, pages),
        is_read_whole=type(model).__name__ == "TextToText",
    )


def vectors(name: str, version: str, path: Path, config: ModelConfig, settings: Settings) -> ServedModel:
    """A model that makes vectors of texts. Raises ModelError where it cannot be made ready."""
    recipe = _recipe("vectors", path, config, TextOptions.of(config), settings)
    model = cast("TextEmbedder", _ready(recipe, settings))
    told = {**_told(model.runnable), "pooling": model.pooling}
    return ServedVectors(About(name, version, "vectors", model.context, told), _places(config, settings, 1), model)


def scores(name: str, version: str, path: Path, config: ModelConfig, settings: Settings) -> ServedModel:
    """A model that scores pairs of texts. Raises ModelError where it cannot be made ready."""
    recipe = _recipe("scores", path, config, TextOptions.of(config), settings)
    model = cast("TextReranker", _ready(recipe, settings))
    about = About(name, version, "scores", model.context, _told(model.runnable))
    return ServedScores(about, _places(config, settings, 1), model)


def _recipe(kind: Kind, path: Path, config: ModelConfig, options: TextOptions, settings: Settings) -> TextRecipe:
    """How a model is made. Raises PluginError where what makes it is not installed."""
    missing = [one for one in _NEEDED if not is_installed(one)]
    if missing:
        hint = "; ".join(how_to_install(one) for one in missing)
        raise PluginError(f"models of texts are served with {' and '.join(missing)}", hint=hint)
    return TextRecipe(
        str(path),
        kind,
        config.runtime or settings.runtime,
        config.threads or settings.threads,
        options.exact,
        options.cache,
        tuple(_beside(path, one) for one in options.adapters),
        None if options.tokenizer is None else _beside(path, options.tokenizer),
        options.pooling,
        options.end,
    )


def _ready(recipe: TextRecipe, settings: Settings) -> TextModel | TextEmbedder | TextReranker:
    """The model, which was tried in a process of its own. Raises ModelError."""
    if settings.preload:
        what = "tract_serve.chat.trying:answer"
        raise_told(asked_apart(recipe.to_json(), recipe.path, settings.limits.load_s, what))
    model = prepared(recipe)
    warm_up(model)
    return model


def _beside(path: Path, given: str) -> str:
    """A path that a configuration says: from the model's own folder on."""
    return os.path.join(path if path.is_dir() else path.parent, given)


def _drafting(recipe: TextRecipe, path: Path, options: TextOptions) -> dict[str, Any]:
    """The wishes for a draft, if there is one. Raises ModelError where it cannot be loaded."""
    if options.draft is None:
        return {}
    if options.draft == PROMPT:
        return {"draft": PROMPT, "draft_tokens": options.draft_tokens}
    other = replace(recipe, path=_beside(path, options.draft), adapters=(), tokenizer=None)
    return {"draft": prepared(other), "draft_tokens": options.draft_tokens}


def _writer(model: TextModel, options: TextOptions, pages: int | None) -> Writer:
    """What writes texts: an engine, or one that writes one after the other, where no engine does."""
    from tract_transformers import Engine

    if model.description.pages is None:
        return Alone(model)
    texts = options.texts if options.texts == 1 else 2 * options.texts
    return Engine(model, texts=texts, pages=pages, remembered=options.remembered << 20)


def _places(config: ModelConfig, settings: Settings, texts: int, *, spare: int = 0) -> Places:
    """How many requests are computed at a time, and how many wait."""
    waiting = config.waiting(None)
    return Places(texts, spare, waiting.most_waiting, settings.limits.waiting_of_one, waiting.timeout_s)


def _pages(model: TextModel, options: TextOptions) -> int | None:
    """How many pages there may be: for all texts at once in whole, as far as there is memory; ``None`` for any number.

    Those that are remembered come on top.
    """
    if model.description.pages is None:
        return None
    size, page_bytes = model.description.pages
    kept = (options.remembered << 20) // page_bytes
    most = _free_bytes() * SHARE // page_bytes
    if model.context is None:
        return max(1, int(most))
    wanted = 2 * options.texts * (-(-model.context // size) + 1) + kept
    return max(1, int(min(wanted, most)))


def _free_bytes() -> float:
    """Memory that is free; infinity where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = next(line for line in file if line.startswith("MemAvailable:"))
        return float(found.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return float("inf")


def _most_tokens(model: TextModel, pages: int | None) -> int | None:
    """Of a prompt with its answer: what the context has room for, and the pages of one text."""
    if pages is None or model.description.pages is None:
        return model.context
    room = max(1, (pages - 1) * model.description.pages[0])
    return room if model.context is None else min(room, model.context)


def _told(runnable: Runnable) -> Mapping[str, Any]:
    """How a model is computed: what activations are that meet weights of few bits, and how the past is kept."""
    from tract_transformers.transforms.paged import PAGE_KIND

    rounded = bool(getattr(runnable.runtime.backend, BYTES, False))
    kept = str(runnable.property(PAGE_KIND).to_numpy()) if PAGE_KIND in runnable.property_keys() else "copied"
    kind = "8 bits where weights have few (exact: floats)" if rounded else "floats"
    return {"runtime": runnable.runtime.name(), "activations": kind, "cache": kept}
