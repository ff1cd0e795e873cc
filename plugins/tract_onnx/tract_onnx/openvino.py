"""OpenVINO as a partner of ``tract MODEL compare --with openvino``: it shows the tensors whose names it kept.

It reads the file itself, of ONNX or of any other kind that it takes, and computes in f32.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from tract_core.data import widened
from tract_core.data.boxes import to_tensor
from tract_core.errors import InputError, PluginError, RunError
from tract_core.plugins import Rows
from tract_core.plugins.keys import PARTNERS, Array

ROWS = Rows()

_EXACT: Final = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
"""Else it computes in bf16 where the processor can."""

_NOT_COMPUTED: Final = ("Constant", "Parameter", "Result")


@ROWS.row(PARTNERS, "openvino")
def run_in_openvino(path: Path, inputs: Mapping[str, Array], options: object = None) -> Mapping[str, Array]:
    """Every tensor that OpenVINO computes under a name of the file, by that name.

    Raises PluginError when it is not installed, InputError for a missing input, RunError.
    """
    core = _imported().Core()
    try:
        model = core.read_model(str(path))
        _show_everything(model)
        compiled = core.compile_model(model, "CPU", _EXACT)
    except Exception as error:  # its exceptions have no class in common but this one
        raise RunError(f"openvino cannot load the model: {_in_short(error)}", where=str(path)) from error
    wanted = [one.get_any_name() for one in compiled.inputs]
    missing = [name for name in wanted if name not in inputs]
    if missing:
        raise InputError(f"openvino wants the inputs {', '.join(missing)}, which have no value", where=str(path))
    try:
        kinds = {name: one.get_element_type().to_dtype() for name, one in zip(wanted, compiled.inputs, strict=True)}
        found = compiled({name: widened(np.asarray(inputs[name]), kind) for name, kind in kinds.items()})
    except Exception as error:
        raise RunError(f"openvino fails: {_in_short(error)}", where=str(path)) from error
    return {name: to_tensor(found[one]) for one in compiled.outputs for name in one.get_names()}


def _imported() -> Any:
    try:
        return import_module("openvino")
    except ImportError as error:
        raise PluginError(f"openvino cannot be imported: {error}", hint="pip install openvino") from None


def _show_everything(model: Any) -> None:
    """Make outputs of all tensors that are computed and have a name."""
    outputs = {name for one in model.outputs for name in one.get_names()}
    nodes = [node for node in model.get_ordered_ops() if node.get_type_name() not in _NOT_COMPUTED]
    names = [sorted(output.get_names())[0] for node in nodes for output in node.outputs() if output.get_names()]
    model.add_outputs([name for name in dict.fromkeys(names) if name not in outputs])


def _in_short(error: Exception) -> str:
    """The last line that says something: those before it name places in its sources."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
