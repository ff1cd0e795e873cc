"""LiteRT as a partner of ``tract MODEL compare --with tflite``: its reference kernels, and every tensor of a file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

from tract_core.errors import InputError, PluginError, RunError
from tract_core.plugins import Rows
from tract_core.plugins.keys import PARTNERS, Array
from tract_tensorflow.tflite.names import unique_names

ROWS = Rows()

_HOMES: Final = ("ai_edge_litert.interpreter", "tensorflow.lite.python.interpreter", "tflite_runtime.interpreter")


@ROWS.row(PARTNERS, "tflite")
def run_in_litert(path: Path, inputs: Mapping[str, Array], options: object = None) -> Mapping[str, Array]:
    """Every tensor that LiteRT's reference kernels compute, by the names that models of this project have.

    Raises PluginError when it is not installed, InputError for a missing input, RunError.
    """
    home = _imported()
    try:
        engine = home.Interpreter(
            model_path=str(path),
            experimental_op_resolver_type=home.OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
        )
        details: list[dict[str, Any]] = sorted(engine.get_tensor_details(), key=itemgetter("index"))
        names = unique_names([one["name"] for one in details])
        wanted: dict[str, dict[str, Any]] = {names[one["index"]]: one for one in engine.get_input_details()}
        missing = [name for name in wanted if name not in inputs]
        if missing:
            raise InputError(f"LiteRT wants the inputs {', '.join(missing)}, which have no value", where=str(path))
        for name, one in wanted.items():
            engine.resize_tensor_input(one["index"], np.shape(inputs[name]))
        engine.allocate_tensors()
        for name, one in wanted.items():
            engine.set_tensor(one["index"], np.ascontiguousarray(inputs[name], one["dtype"]))
        engine.invoke()
    except (RuntimeError, ValueError, TypeError) as error:
        raise RunError(f"LiteRT fails: {' '.join(str(error).split())[:300]}", where=str(path)) from error
    return _computed(engine, details, names)


def _computed(engine: Any, details: Any, names: list[str]) -> dict[str, Array]:
    """The tensors that hold something."""
    found: dict[str, Array] = {}
    for one in details:
        with suppress(ValueError, RuntimeError):  # one that nothing computed has no content
            found[names[one["index"]]] = engine.get_tensor(one["index"]).copy()
    return found


def _imported() -> Any:
    for home in _HOMES:
        with suppress(ImportError):
            return import_module(home)
    raise PluginError("LiteRT cannot be imported", hint="pip install ai-edge-litert, or tract-tensorflow[check]")
