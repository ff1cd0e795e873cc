"""What a model is served as: by its tensors, or as a model that writes text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from tract_core.errors import CorruptModel
from tract_core.importing import imported
from tract_serve.config import ModelConfig
from tract_serve.models.protocol import ServedModel
from tract_serve.models.recipe import ServingRecipe
from tract_serve.models.served import Served
from tract_serve.models.trying import tried
from tract_serve.settings import Settings

Maker = Callable[[str, str, Path, ModelConfig, Settings], ServedModel]


def tensors(name: str, version: str, path: Path, config: ModelConfig, settings: Settings) -> ServedModel:
    """A model that takes and gives tensors. Raises ModelError where it cannot be made ready."""
    recipe = ServingRecipe(
        str(path),
        config.format_name,
        tuple(config.facts.items()),
        tuple(config.transforms),
        config.runtime or settings.runtime,
        config.threads or settings.threads,
        settings.model_limits,
        config.has_sequences,
    )
    told = tried(recipe, settings.limits.load_s, apart=settings.preload)
    if config.has_sequences or told.keeps:
        from tract_serve.sequences.kinds import sequenced

        served = sequenced(name, version, recipe, config, told, settings=settings)
    else:
        served = Served(name, version, recipe, config, told)
    served.warm_up()
    return served


KINDS: Final[dict[str, Maker | str]] = {
    "tensors": tensors,
    "text": "tract_serve.chat.loading:text",
    "vectors": "tract_serve.chat.loading:vectors",
    "scores": "tract_serve.chat.loading:scores",
}
"""What makes a model of each kind ready, or where that is."""


def made(name: str, version: str, path: Path, config: ModelConfig, settings: Settings) -> ServedModel:
    """The model, ready, as what it is. Takes as long as that takes. Raises ModelError."""
    kind = config.kind or kind_of(path)
    if kind not in KINDS:
        raise CorruptModel(f"kind is {kind!r}, wanted one of {', '.join(KINDS)}", where="parameters")
    maker = KINDS[kind]
    make = cast("Maker", _found(maker)) if isinstance(maker, str) else maker
    return make(name, version, path, config, settings)


def kind_of(path: Path) -> str:
    """What a model is served as of which nothing is said: one of texts by its files, else one of tensors."""
    if not _is_of_texts(path):
        return "tensors"
    return _found("tract_serve.chat.kinds:kind_of_texts")(path)


def _found(name: str) -> Any:
    """What ``module:name`` leads to: models of texts are no part of what all servers need."""
    module, _, attribute = name.partition(":")
    return getattr(imported(module), attribute)


def _is_of_texts(path: Path) -> bool:
    """Whether it is a GGUF file, or a folder or a file of weights as the ``transformers`` package has them."""
    if path.is_dir():
        return (path / "config.json").is_file() and any(path.glob("*.safetensors"))
    if path.name.endswith((".safetensors", ".safetensors.index.json")):
        return (path.parent / "config.json").is_file()
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"
