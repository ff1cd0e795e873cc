"""ONNX Runtime as a partner of ``tract MODEL compare --with onnxruntime``: it shows every tensor of a file.

A copy of the file gets every tensor that a node computes as an output. A file of a protobuf message followed by a
second one is the message in which the two are merged, so that the outputs are appended, the version of the format is
replaced, and no weight is parsed or written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from tract_core.data import widened
from tract_core.data.boxes import to_tensor
from tract_core.errors import InputError, LimitExceeded, PluginError, RunError
from tract_core.plugins import Rows
from tract_core.plugins.keys import PARTNERS, Array
from tract_onnx.frontend import parse
from tract_onnx.graph import captured
from tract_onnx.wire_format import scan

ROWS = Rows()

MAX_BYTES: Final = (1 << 31) - 1
"""What a protobuf message may take."""

OLD_FORMAT: Final = 10
"""A version of the file format that all releases read; the onnx package writes newer ones than the latest does."""

_FLOATS: Final = {"tensor(float)": np.dtype(np.float32), "tensor(double)": np.dtype(np.float64)}

_FOLDER: Final = "session.model_external_initializers_file_folder_path"
_SILENT: Final = 4


@ROWS.row(PARTNERS, "onnxruntime")
def run_in_onnxruntime(path: Path, inputs: Mapping[str, Array], options: object = None) -> Mapping[str, Array]:
    """Every tensor that ONNX Runtime computes, by name. Its graph optimisations are off.

    Raises PluginError when it is not installed or cannot load the file, InputError for a missing input, RunError.
    """
    ort = _runtime()
    try:
        session = ort.InferenceSession(_showing_everything(path), _options(ort, path), ["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no class in common but this one
        raise RunError(f"onnxruntime cannot load the model: {_first_line(error)}", where=str(path)) from error
    wanted = [one.name for one in session.get_inputs()]
    missing = [name for name in wanted if name not in inputs]
    if missing:
        raise InputError(f"onnxruntime wants the inputs {', '.join(missing)}, which have no value", where=str(path))
    try:
        given = {one.name: widened(np.asarray(inputs[one.name]), _FLOATS.get(one.type)) for one in session.get_inputs()}
        values = session.run(None, given)
    except Exception as error:
        raise RunError(f"onnxruntime fails: {_first_line(error)}", where=str(path)) from error
    names = [one.name for one in session.get_outputs()]
    return {name: to_tensor(value) for name, value in zip(names, values, strict=True)}


def _runtime() -> Any:
    try:
        return import_module("onnxruntime")
    except ImportError as error:
        raise PluginError(f"onnxruntime cannot be imported: {error}", hint="pip install onnxruntime") from None


def _options(ort: Any, path: Path) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = _SILENT  # what goes wrong is raised too
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1  # its DynamicQuantizeLSTM gives another result for every number of threads
    options.add_session_config_entry(_FOLDER, str(path.resolve().parent))
    return options


def _showing_everything(path: Path) -> bytes:
    """The content of a model file in which every tensor that a node computes is an output."""
    content = path.read_bytes()
    proto = parse(scan(content).content)
    more = onnx.ModelProto(
        graph=onnx.GraphProto(output=[onnx.ValueInfoProto(name=name) for name in _inner(proto.graph)])
    )
    more.ir_version = min(proto.ir_version, OLD_FORMAT)
    appended = more.SerializeToString()
    if len(content) + len(appended) > MAX_BYTES:
        hint = "keep its weights in a file of external data: onnx.save(..., save_as_external_data=True)"
        raise LimitExceeded("with all its tensors as outputs the model exceeds 2 GiB", where=str(path), hint=hint)
    return content + appended


def _inner(graph: onnx.GraphProto) -> list[str]:
    """The tensors that the outputs need and nodes compute, but for the outputs themselves."""
    outputs = {info.name for info in graph.output}
    needed = set(outputs)
    found: list[str] = []
    for node in reversed(graph.node):  # each node stands after what it reads
        if needed & set(node.output):
            needed.update((*node.input, *captured(node)))
            found += [name for name in node.output if name and name not in outputs]
    return found


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
