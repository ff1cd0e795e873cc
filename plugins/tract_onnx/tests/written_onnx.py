"""Models that were written to ONNX, run by ONNX Runtime, or by the package ``onnx`` where that has no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from tract_onnx import backend
from tract_onnx.writing.saver import USUAL, OnnxWriter

from tract_core.errors import Unwritable

NEWEST = 26


class Run:
    """A written model, ready to run."""

    def __init__(self, content: bytes) -> None:
        self._model = onnx.load_from_string(content)
        onnx.checker.check_model(self._model, full_check=True)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            self._session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception:  # it has no kernel for one of them
            self._session = None
        self._names = [one.name for one in self._model.graph.input]

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """The outputs, for inputs in a list."""
        given = dict(zip(self._names, map(_as_array, inputs), strict=True))
        if self._session is not None and all(map(_is_plain, [*self._model.graph.input, *self._model.graph.output])):
            return self._session.run(None, given)
        return ReferenceEvaluator(self._model).run(None, given)


def _is_plain(info: onnx.ValueInfoProto) -> bool:
    """Whether ONNX Runtime takes and gives such tensors as arrays of NumPy."""
    kind = info.type.tensor_type.elem_type
    return kind <= onnx.TensorProto.COMPLEX128


def _as_array(value: Any) -> Any:
    return value if isinstance(value, (list, np.ndarray)) or value is None else np.asarray(value)


class Written(backend.Backend):
    """What prepares a model, through a file of ONNX: in the usual version of the operators, else in the newest one."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Run:
        """The model as it is written."""
        typed = backend._loaded(model).into_typed().declutter()
        try:
            return Run(OnnxWriter(opset=USUAL).to_bytes(typed))
        except (Unwritable, onnx.shape_inference.InferenceError):
            return Run(OnnxWriter(opset=NEWEST).to_bytes(typed))
