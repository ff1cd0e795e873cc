"""Where models come from: one factory per file format, answered by the installed plugins."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from tract_core.analysis import inference
from tract_core.api.fact import Fact, InferenceFact
from tract_core.api.formats import find_format, missing_file
from tract_core.api.inference_model import InferenceModel
from tract_core.api.model import Model
from tract_core.errors import CorruptModel, InputError, ModelError, TractError
from tract_core.limits import LoadLimits
from tract_core.plugins import Registry, default_registry
from tract_core.plugins.missing import not_installed


class OnnxOptions(TypedDict, total=False):
    """The options of `Onnx.load`."""

    ignore_value_info: bool
    ignore_output_shapes: bool
    ignore_output_types: bool
    strict_facts: bool
    own_symbols: bool
    limits: LoadLimits | None


class Onnx:
    """Loads ONNX files."""

    def __init__(self, registry: Registry | None = None) -> None:
        """Raises PluginError when no plugin for the format is installed."""
        self._registry = registry
        self._loader = loader_of("onnx", registry)

    def load(self, path: str | os.PathLike[str], **options: Unpack[OnnxOptions]) -> InferenceModel:
        """The model of an ``.onnx`` file, with its external data. Raises ModelError, with the file's name.

        What files say about tensors inside them (``value_info``), and about the shapes and types of their outputs,
        fills in what the operators leave open. What is wrong about it is set aside with a `ModelWarning`. Options:

        ``ignore_value_info``, ``ignore_output_shapes``, ``ignore_output_types``: what does not count at all.
        ``strict_facts``: what is wrong about it is an error. ``own_symbols``: sizes of inputs that have one name in the
        file may differ, each has a symbol of its own. ``limits``: a `LoadLimits`, what the file may ask for.
        """
        return _inference_model(load_with(self._loader_for("load", options), path), str(path))

    def load_bytes(self, content: bytes, **options: Unpack[OnnxOptions]) -> InferenceModel:
        """The model in the content of an ``.onnx`` file, as ``model.SerializeToString()`` gives it; else like `load`.

        Raises ModelError, also for a model that keeps tensors in other files.
        """
        if not isinstance(content, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"load_bytes takes bytes, got {type(content).__name__}", hint=_hint_for(content))
        loader = self._loader_for("load_bytes", options)
        return _inference_model(_guarded(partial(loader.load_bytes, content), "model"), "model")

    def _loader_for(self, method: str, options: OnnxOptions) -> Any:
        unknown = options.keys() - OnnxOptions.__annotations__.keys()
        if unknown:
            known = ", ".join(OnnxOptions.__annotations__)
            raise TypeError(f"Onnx.{method} has no option {min(unknown)!r}; its options: {known}")
        wanted = {name: value for name, value in options.items() if value}
        return loader_of("onnx", self._registry, **wanted) if wanted else self._loader


class Nnef:
    """Loads NNEF and tract-OPL models."""

    def __init__(self, registry: Registry | None = None) -> None:
        """Raises PluginError when no plugin for the format is installed."""
        self._loader = loader_of("nnef", registry)

    def load(self, path: str | os.PathLike[str]) -> Model:
        """The model of a folder or an archive, in normal form. Raises ModelError, with the file's name."""
        return Model.from_typed(load_with(self._loader, path)).declutter()


def load(
    path: str | os.PathLike[str],
    *,
    inputs: Mapping[str | int, InferenceFact | Fact | str] | None = None,
    format_name: str | None = None,
    limits: LoadLimits | None = None,
) -> Model:
    """The model of a file of any installed format, typed and in normal form: ``tract.load("m.onnx").into_runnable()``.

    ``inputs``: what some inputs are, by name or number, as ``{"image": "B,3,224,224,f32"}``, in place of what the file
    says. ``format_name``: the format, where the name of the file does not tell it. ``limits``: what the file may ask
    for. The loaders of single formats, as `onnx`, have more options. Raises ModelError for a file that cannot be read
    or typed, InputError for an input that is not there, FactError or DimError for a text that is no fact.
    """
    name, found = find_format(checked_path(path), format_name)
    wishes: dict[str, Any] = {} if limits is None else {"limits": limits}
    loaded = load_with(loader_of(name, **wishes), found)
    if isinstance(loaded, inference.InferenceModel):
        model = InferenceModel(loaded)
        for one, fact in (inputs or {}).items():
            model.set_input_fact(one, fact)
        return model.into_model()
    if inputs:
        raise InputError(f"the inputs of a model of format {name} are what the file says", hint="see Model.transform")
    return Model.from_typed(loaded).declutter()


def onnx() -> Onnx:
    """A loader of ONNX files. Raises PluginError when no plugin for the format is installed."""
    return Onnx()


def nnef() -> Nnef:
    """A loader of NNEF models. Raises PluginError when no plugin for the format is installed."""
    return Nnef()


def loader_of(format_name: str, registry: Registry | None = None, **flags: Any) -> Any:
    """The object of the installed plugin that loads a format, made with ``flags``.

    Raises PluginError when there is none.
    """
    registry = registry or default_registry()
    formats = registry.frontends()
    if format_name not in formats:
        raise not_installed("format", format_name, formats)
    return registry.load("tract_frontends", format_name)(**flags)


def load_with(loader: Any, path: str | os.PathLike[str]) -> Any:
    """What ``loader`` makes of a file or folder. Raises ModelError, with the file's name, whatever goes wrong."""
    found = checked_path(path)
    return _guarded(partial(_load, loader, found), str(found))


def checked_path(path: str | os.PathLike[str]) -> Path:
    """A path as users give it. Raises InputError for what is none, and for an empty one."""
    try:
        found = Path(os.fspath(path))
    except TypeError:
        raise InputError(
            f"a path is a text or a pathlib.Path, got {type(path).__name__}", hint=_hint_for(path)
        ) from None
    if not os.fspath(path):
        raise InputError("the path is empty")
    return found


def _load(loader: Any, path: Path) -> Any:
    if not path.exists():
        raise missing_file(path)
    return loader.load(path)


def _guarded(load: Callable[[], Any], where: str) -> Any:
    """What ``load`` gives. Raises ModelError, whatever goes wrong."""
    try:
        return load()
    except TractError:
        raise
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}", where=where, hint="check the path") from error
    except Exception as error:
        raise CorruptModel(f"cannot be read: {type(error).__name__}: {error}", where=where) from error


def _inference_model(loaded: Any, where: str) -> InferenceModel:
    if isinstance(loaded, inference.InferenceModel):
        return InferenceModel(loaded)
    raise ModelError(f"the loader gave a {type(loaded).__name__}, wanted an InferenceModel", where=where)


def _hint_for(value: Any) -> str | None:
    """What to call for something that was taken for a path, or for a file's content."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "load_bytes(bytes(...)) takes the content of a file"
    if hasattr(value, "SerializeToString"):
        return "a model in memory goes through load_bytes(model.SerializeToString())"
    return "load(path) takes the path of a file" if isinstance(value, (str, os.PathLike)) else None
