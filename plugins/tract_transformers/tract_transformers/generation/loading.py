"""From a file or a folder to a model that writes: the model, and what lies beside it or in it about texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from tract_core.api.given import checked_path
from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.api.runtime import Runtime
from tract_core.errors import CorruptModel, InputError, ModelError
from tract_core.frozen import frozen
from tract_transformers.generation.adapters import Adapter, adapters_of
from tract_transformers.generation.drafts import MOST_DRAFTED
from tract_transformers.generation.genai import CONFIG, genai_folder, load_genai
from tract_transformers.generation.gguf_files import gguf, has_weights, is_gguf
from tract_transformers.generation.halves import is_in_halves, read_halves, text_to_text
from tract_transformers.generation.text_model import TextModel
from tract_transformers.language_model.keep import description_of, keep_past
from tract_transformers.templates.template import ChatTemplate
from tract_transformers.tokenizers.from_gguf import tokenizer_from_gguf
from tract_transformers.tokenizers.from_json import FILE, settings, tokenizer_from_json
from tract_transformers.tokenizers.protocol import Tokenizer

EXPORTED: Final = ("onnx/model.onnx",)
"""Where a folder of a model has it, besides where every format has it."""

"""How files of weights end."""

CONTEXTS: Final = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "context_length")
"""What ``config.json`` calls the number of positions, or ``genai_config.json``."""

MOST_TEMPLATE: Final = 1 << 20
"""Bytes of a file with a template."""


@frozen
class Words:
    """What is known about the texts of a model. ``template``, ``context``: ``None`` where nobody says.

    ``architecture``: of a GGUF file; else none.
    """

    tokenizer: Tokenizer
    template: ChatTemplate | None
    context: int | None
    architecture: str | None = None


def load(
    path: str | os.PathLike[str],
    runtime: str | Runtime = "default",
    *,
    tokenizer: str | os.PathLike[str] | None = None,
    adapters: Iterable[Adapter] = (),
    cache: str = "f32",
    **options: Any,
) -> TextModel:
    """The language model of a file or a folder, with its tokenizer and its chat template.

    ``path``: a GGUF file; or a model of another installed format, with ``tokenizer.json`` in its folder; or such a
    folder, also of safetensors. ``runtime``, ``options``: as for `tract_core.Model.into_runnable`, as ``threads=2``.
    ``tokenizer``: another folder, with the ``tokenizer.json`` that is to be used. ``cache``: the type in which keys and
    values are kept, ``f32``, ``f16``, ``bf16`` or ``i8``. ``adapters``: folders of PEFT or files of GGUF with low-rank
    adapters (LoRA), or pairs of one and how strong it is, 1 as it was trained.

    Raises ModelError for files that cannot be read, Unsupported for a model that is no language model of a known form,
    InputError where there is no tokenizer, PluginError where a distribution is missing.
    """
    found = checked_path(path)
    words = words_of(found, tokenizer)
    if is_in_halves(found, words.architecture):
        if several(adapters):
            raise InputError("adapters of a model with an encoder are not known")
        return text_to_text(read_halves(found), words.tokenizer, runtime, **options)
    model = load_model(found)
    add_adapters(model, adapters, found)
    keep_past(model, cache, last=MOST_DRAFTED + 1)
    return text_model(model.into_runnable(runtime, **options), words)


def text_model(runnable: Runnable, words: Words) -> TextModel:
    """A model that is ready to run, with what is known of its texts. Raises Unsupported for no language model."""
    description = description_of(runnable)
    return TextModel(runnable, description, words.tokenizer, template=words.template, context=words.context)


def add_adapters(model: Model, adapters: Iterable[Adapter], path: Path) -> None:
    """Have a model, of a file or a folder, compute what low-rank adapters add. Raises ModelError, InputError."""
    given = several(adapters)
    if given:
        model.transform(adapters_of(given, path))


def several(adapters: Iterable[Adapter]) -> list[Adapter]:
    """A list of them, also of a single one."""
    return [adapters] if isinstance(adapters, (str, os.PathLike)) else list(adapters)


def load_model(path: Path) -> Model:
    """The model of a file or a folder, without its texts. Raises ModelError, PluginError."""
    from tract_core.api.loading import load as load_any

    if (folder := genai_folder(path)) is not None:
        return load_genai(folder)
    return cast("Model", gguf().load(path)) if is_gguf(path) else load_any(file_in(path))


def file_in(path: Path) -> Path:
    """The model in a folder of the ``transformers`` package that holds one of another format; else the path itself.

    Such folders have a ``config.json`` in any case, by which those are known whose weights are in safetensors.
    """
    if not path.is_dir() or has_weights(path):
        return path
    from tract_core.plugins import default_registry

    endings = [ending for form in default_registry().formats().values() for ending in form.extensions]
    names = [*EXPORTED, *(f"model{ending}" for ending in endings)]
    found = [path / name for name in names if (path / name).is_file()]
    return found[0] if len(found) == 1 else path


def words_of(path: Path, tokenizer: str | os.PathLike[str] | None = None) -> Words:
    """What lies beside a model, or in it, about its texts.

    ``path``: of the model. ``tokenizer``: a folder with other files. Raises as `load` does.
    """
    if not path.exists():
        from tract_core.api.formats import missing_file

        raise missing_file(path)
    metadata: Mapping[str, Any] = gguf().read(path).metadata if is_gguf(path) else {}
    folder = _folder_of(path) if tokenizer is None else checked_path(tokenizer)
    folder = folder.parent if folder.name == FILE else folder
    if tokenizer is not None or (folder / FILE).is_file():
        return _of_folder(folder, metadata)
    if not metadata:
        hint = f"put the model's {FILE} there, or name the folder that has it (tokenizer=..., --tokenizer)"
        raise InputError(f"there is no {FILE} beside the model", where=str(folder), hint=hint)
    template, context = _template(metadata.get("tokenizer.chat_template")), _context(metadata)
    return Words(tokenizer_from_gguf(metadata), template, context, metadata.get("general.architecture"))


def _of_folder(folder: Path, metadata: Mapping[str, Any]) -> Words:
    given = _template_of(folder)
    template = _template(given if given is not None else metadata.get("tokenizer.chat_template"))
    genai: object = settings(folder, CONFIG).get("model")
    config = {**settings(folder, "config.json"), **(cast("dict[str, Any]", genai) if isinstance(genai, dict) else {})}
    context = next((config[name] for name in CONTEXTS if isinstance(config.get(name), int)), _context(metadata))
    return Words(tokenizer_from_json(folder), template, context, metadata.get("general.architecture"))


def _folder_of(path: Path) -> Path:
    """Where the files about texts are: in the folder that was named, else in that of the file, or above it."""
    folder = path if path.is_dir() else path.parent
    if folder.name == "onnx" and not (folder / FILE).is_file() and (folder.parent / FILE).is_file():
        return folder.parent
    return folder


def _template_of(folder: Path) -> object:
    """What a folder has for a chat template; ``None`` where there is none. Raises ModelError for an unreadable one."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        try:
            if path.stat().st_size > MOST_TEMPLATE:
                raise CorruptModel(f"it has more than {MOST_TEMPLATE:,} bytes", where=str(path))
            return path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(f"cannot be read: {error}", where=str(path)) from None
    return settings(folder, "tokenizer_config.json").get(
        "chat_template", settings(folder, "chat_template.json").get("chat_template")
    )


def _template(given: object) -> ChatTemplate | None:
    """A template from its text, or from a list of several, of which one is called ``default``."""
    if isinstance(given, list):
        several = [cast("dict[str, Any]", one) for one in cast("list[Any]", given) if isinstance(one, dict)]
        named = {one.get("name"): one.get("template") for one in several}
        given = named.get("default")
    return ChatTemplate(given) if isinstance(given, str) else None


def _context(metadata: Mapping[str, Any]) -> int | None:
    """The number of positions, as a GGUF file says it."""
    found = metadata.get(f"{metadata.get('general.architecture')}.context_length")
    return int(found) if isinstance(found, int) and found > 0 else None
