"""Where models come from: one factory per file format, answered by the installed plugins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tract_core.api.inference_model import InferenceModel
from tract_core.api.model import Model
from tract_core.errors import CorruptModel, InputError, ModelError, TractError
from tract_core.limits import LoadLimits
from tract_core.model import inference
from tract_core.plugins import Registry, default_registry
from tract_core.plugins.missing import not_installed


class Onnx:
    """Loads ONNX files."""

    def __init__(self, registry: Registry | None = None) -> None:
        """Raises PluginError when no plugin for the format is installed."""
        self._registry = registry
        self._loader = loader_of("onnx", registry)

    def load(
        self,
        path: str | os.PathLike[str],
        *,
        ignore_value_info: bool = False,
        ignore_output_shapes: bool = False,
        ignore_output_types: bool = False,
        limits: LoadLimits | None = None,
    ) -> InferenceModel:
        """The model of an ``.onnx`` file, with its external data. Raises ModelError, with the file's name.

        Files say things about tensors inside them (``value_info``), and about the shapes and types of their outputs,
        that may be wrong; what is ignored is found from the operators alone. ``limits``: what the file may ask for.
        """
        wishes: dict[str, Any] = {
            "ignore_value_info": ignore_value_info,
            "ignore_output_shapes": ignore_output_shapes,
            "ignore_output_types": ignore_output_types,
        }
        if limits is not None:
            wishes["limits"] = limits
        loader = loader_of("onnx", self._registry, **wishes) if any(wishes.values()) else self._loader
        loaded = load_with(loader, path)
        if isinstance(loaded, inference.InferenceModel):
            return InferenceModel(loaded)
        raise ModelError(f"the loader gave a {type(loaded).__name__}, wanted an InferenceModel", where=str(path))


class Nnef:
    """Loads NNEF and tract-OPL models."""

    def __init__(self, registry: Registry | None = None) -> None:
        """Raises PluginError when no plugin for the format is installed."""
        self._loader = loader_of("nnef", registry)

    def load(self, path: str | os.PathLike[str]) -> Model:
        """The model of a folder or an archive, in normal form. Raises ModelError, with the file's name."""
        return Model.from_typed(load_with(self._loader, path)).declutter()


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
    try:
        found = Path(os.fspath(path))
    except TypeError:
        raise InputError(f"a path is a text or a pathlib.Path, got {type(path).__name__}") from None
    if not found.exists():
        raise ModelError("there is no such file", where=str(found))
    try:
        return loader.load(found)
    except TractError:
        raise
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}", where=str(found)) from error
    except Exception as error:
        raise CorruptModel(f"cannot be read: {type(error).__name__}: {error}", where=str(found)) from error
