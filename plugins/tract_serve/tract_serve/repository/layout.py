"""Which models a folder holds, in the layout that Triton's users know, or with less in it.

| path | what |
|---|---|
| ``NAME/config.pbtxt`` | what is said of the model; may be left out |
| ``NAME/VERSION/model.onnx`` | a version, a number from 1 on: its file, or a folder that is a model as a whole |
| ``NAME/model.onnx``, ``NAME.onnx``, ``NAME/`` as a whole | a model of one version, 1 |
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from tract_core.errors import InputError, MissingFile, ModelError, TractError
from tract_core.frozen import frozen
from tract_core.plugins import default_registry
from tract_serve.config import ModelConfig, default_config
from tract_serve.settings import Settings

MOST_MODELS: Final = 10_000
"""Entries of a repository that are looked at."""

_DEPTH: Final = 3
"""How far below a repository files of models lie: ``NAME/VERSION/MODEL/FILE``."""


@frozen
class FoundModel:
    """A model of a repository, by its ``name``. ``versions``: the path of each, as far as they are served.

    ``problem``: why there is none, if its folder is wrong.
    """

    name: str
    folder: Path
    config: ModelConfig
    versions: Mapping[int, Path]
    problem: ModelError | None = None


def found_in(source: Path, settings: Settings) -> dict[str, FoundModel]:
    """The models of a repository, by name; that of a file or folder that is a model itself.

    Raises MissingFile where there is nothing, InputError where it is no repository.
    """
    if not source.exists():
        raise MissingFile("there is no such file or folder", where=str(source))
    alone = _one_model(source, settings)
    if alone is not None:
        named = replace(alone, name=settings.name) if settings.name else alone
        return {named.name: named}
    found = {one.name: one for entry in _entries(source) if (one := found_of(entry, settings)) is not None}
    if not found:
        hint = "it holds folders, each of a model, as NAME/1/model.onnx, or files of models"
        raise InputError("the folder holds no model", where=str(source), hint=hint)
    return found


def _one_model(source: Path, settings: Settings) -> FoundModel | None:
    """The model that a path is, or that a folder is of alone; ``None`` for a repository."""
    if source.is_file():
        return FoundModel(source.stem, source, default_config(settings), {1: source})
    file = None if _is_whole(source) else _model_file(source)
    if _is_whole(source) or file is not None or _is_of_versions(source):
        found = found_of(source.resolve(), settings)
        is_named = file is not None and file.stem != "model"
        return replace(found, name=file.stem) if found is not None and file is not None and is_named else found
    return None


def _is_of_versions(folder: Path) -> bool:
    """Whether it is the folder of one model, with a configuration or numbers as versions."""
    return (folder / "config.pbtxt").is_file() or any(one.is_dir() and one.name.isdecimal() for one in _entries(folder))


def fingerprint(found: FoundModel) -> tuple[object, ...]:
    """What changes when files of a model do: names, sizes, times."""
    told: list[object] = [str(found.problem)]
    places = [found.folder, *found.versions.values()]
    for place in places:
        files = [place] if place.is_file() else sorted(_files(place))
        for path in files:
            told += _status(path)
    return tuple(told)


def files_in(source: Path) -> frozenset[tuple[object, ...]]:
    """The same of all files of a repository at once, without a look into any: for those who watch it."""
    return frozenset(_statuses(str(source), _DEPTH) if os.path.isdir(source) else _status(source))


def _statuses(folder: str, depth: int) -> Iterator[tuple[object, ...]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MOST_MODELS):
            if not entry.is_dir():
                yield from _status(entry)
            elif depth:
                yield from _statuses(entry.path, depth - 1)


def _status(file: Path | os.DirEntry[str]) -> Iterator[tuple[object, ...]]:
    with suppress(OSError):
        one = file.stat()
        yield os.fspath(file), one.st_size, one.st_mtime_ns, one.st_ino


def found_of(entry: Path, settings: Settings) -> FoundModel | None:
    """The model of an entry of a repository, if it is one."""
    if entry.name.startswith("."):
        return None
    if entry.is_file():
        known = entry.suffix.lower() in _endings()
        return FoundModel(entry.stem, entry, default_config(settings), {1: entry}) if known else None
    config = default_config(settings)
    try:
        config = ModelConfig.of_folder(entry)
        numbered = {int(one.name): one for one in _entries(entry) if one.is_dir() and one.name.isdecimal()}
        if not numbered and not _is_whole(entry) and _model_file(entry) is None:
            return _without(entry, config) if (entry / "config.pbtxt").exists() else None
        there = {number: folder for number, folder in numbered.items() if number > 0} or {1: entry}
        versions = {number: _version(there[number], config) for number in config.versions([*there])}
        if not versions:
            return _without(entry, config)
        return FoundModel(entry.name, entry, config, versions)
    except TractError as error:
        problem = (
            error if isinstance(error, ModelError) else ModelError(error.problem, where=error.where, hint=error.hint)
        )
        return FoundModel(entry.name, entry, config, {}, problem)


def _without(entry: Path, config: ModelConfig) -> FoundModel:
    hint = "put the model into the folder of a version: 1/model.onnx"
    return FoundModel(
        entry.name, entry, config, {}, ModelError("it has no version that is served", where=str(entry), hint=hint)
    )


def _version(folder: Path, config: ModelConfig) -> Path:
    """The model of a version."""
    if config.filename:
        path = folder / config.filename
        if Path(config.filename).name != config.filename or not path.exists():
            raise ModelError(f"there is no {config.filename!r}, which the configuration names", where=str(folder))
        return path
    if _is_whole(folder):
        return folder
    file = _model_file(folder)
    return folder if file is None else file


def _model_file(folder: Path) -> Path | None:
    """The one file of a model in a folder: ``model.onnx``, or the only one of its kind."""
    endings = _endings()
    files = [one for one in _entries(folder) if one.is_file() and one.suffix.lower() in endings and one.name[0] != "."]
    named = [one for one in files if one.stem == "model"]
    if len(named) == 1:
        return named[0]
    return files[0] if len(files) == 1 and not any(one.is_dir() for one in _entries(folder)) else None


def _is_whole(folder: Path) -> bool:
    """Whether the folder is a model by itself."""
    return any(one.entry and (folder / one.entry).is_file() for one in default_registry().formats().values())


def _endings() -> set[str]:
    known = {"." + one.rpartition(".")[2] for form in default_registry().formats().values() for one in form.extensions}
    return known | {".gguf"}  # of which is told what is missing, where nothing here reads them


def _entries(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for _, entry in zip(range(MOST_MODELS), entries, strict=False))
    return (folder / name for name in names)


def _files(folder: Path) -> Iterator[Path]:
    """Files of a folder, and of those in it, one level down."""
    for entry in _entries(folder):
        if entry.is_file():
            yield entry
        elif entry.is_dir():
            yield from (one for one in _entries(entry) if one.is_file())
