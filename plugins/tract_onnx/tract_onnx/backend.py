"""The project behind the interface that the ``onnx`` package defines for all engines, ``onnx.backend.base``.

    import tract_onnx.backend as backend

    scores, = backend.prepare(onnx.load("model.onnx"), "CPU").run(image)

Devices are runtimes, by name; ``"CPU"`` is the default one, and ``"CUDA"``, as ONNX calls it, is ``"cuda"``. The module
itself has the methods of `Backend`, so that it can be given to ``onnx.backend.test.BackendTest``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import onnx
from google.protobuf.message import EncodeError
from onnx import helper
from onnx.backend import base

from tract_core.analysis.inference import InferenceModel
from tract_core.api.model import Model
from tract_core.api.reading import load_with
from tract_core.api.runnable import Runnable
from tract_core.api.runtime import Runtime, runtime_for_name
from tract_core.api.tensor import Tensor
from tract_core.data import DatumType
from tract_core.errors import InputError, LimitExceeded, TractError
from tract_onnx.frontend import NEWEST, OnnxLoader
from tract_onnx.tensors import ELEMENT_TYPES

ModelLike = onnx.ModelProto | str | os.PathLike[str]
"""A model, or the path of its file."""

_RUNTIMES: Final = {"CPU": "default", "CUDA": "cuda"}
"""What ONNX calls devices, and the runtimes that are meant."""

_CODES: Final = {kind: code for code, kind in ELEMENT_TYPES.items()}


class BackendRep(base.BackendRep):
    """A model that is ready to run. Immutable: one may be used from many threads."""

    def __init__(self, runnable: Runnable) -> None:
        self.runnable = runnable
        names = [runnable.output_name(slot) for slot in range(runnable.output_count())]
        self._outputs = base.namedtupledict("Outputs", names)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """One turn. ``inputs``: one value per input of the model, in a list or by name; an only input, an array itself.

        A tensor is an array (of Python strings, for texts), a sequence a list, a map a dictionary, and an optional its
        value or ``None``; so are the outputs, in a tuple that can be asked by name too. Options are not looked at.
        Raises InputError when the inputs do not fit, RunError when a node fails.
        """
        several = isinstance(inputs, (list, tuple, Mapping))
        given = cast("Sequence[Any] | Mapping[str, Any]", inputs) if several else [inputs]
        return self._outputs(*(_value(output) for output in self.runnable.run(given)))


class Backend(base.Backend):
    """Runs ONNX models. Every error is a `TractError`; what is not supported is refused, never computed otherwise."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a runtime of that name is installed and works on this machine."""
        try:
            _runtime(device)
        except TractError:
            return False
        return True

    @classmethod
    def is_compatible(cls, model: ModelLike, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether `prepare` takes the model."""
        try:
            cls.prepare(model, device, **kwargs)
        except TractError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelLike, device: str = "CPU", *, declutter: bool = True, **kwargs: Any) -> BackendRep:
        """``model``, or what is in the file of that path, ready to run on ``device``.

        ``declutter``: whether to bring it to its normal form before. Other options, as the runner of ONNX's tests gives
        them, are not looked at. Raises ModelError when the model is refused, PluginError when the device is.
        """
        runtime = _runtime(device)
        typed = _loaded(model).into_typed()
        return BackendRep(runtime.prepare(Model(typed.declutter() if declutter else typed)))

    @classmethod
    def run_model(cls, model: ModelLike, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """The outputs of ``model``. Inputs and outputs are those of `BackendRep.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of one node.

        ``inputs``: one value for each input that the node names, in order or by name. ``opset_version``: that of the
        node's operator set, the newest by default. What ``outputs_info`` says is found from the operator.
        """
        version = kwargs.pop("opset_version", None)
        given = _of_node(node, inputs)
        return cls.run_model(_model_of(node, given, version), given, device, **kwargs)


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
is_compatible = Backend.is_compatible


def _runtime(device: str) -> Runtime:
    """The runtime of a device, whose number may follow, as in ``"CUDA:0"``. Raises PluginError, InputError."""
    name, _, number = device.partition(":") if isinstance(device, str) else (device, "", "")  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
    if number not in ("", "0"):
        raise InputError(f"device {device!r}: a runtime uses the first device of its kind", hint=f"ask for {name!r}")
    return runtime_for_name(_RUNTIMES.get(name, name))


def _of_node(node: onnx.NodeProto, inputs: Any) -> list[Any]:
    """The values of a node's inputs, in order."""
    if isinstance(inputs, Mapping):
        by_name = cast("Mapping[str, Any]", inputs)
        if unknown := [name for name in by_name if name not in node.input]:
            raise InputError(
                f"no input is named {', '.join(map(str, unknown))}; the node reads {', '.join(node.input)}"
            )
        return [by_name[name] for name in dict.fromkeys(node.input) if name in by_name]
    return list(cast("Sequence[Any]", inputs)) if isinstance(inputs, (list, tuple)) else [inputs]


def _loaded(model: Any) -> InferenceModel:
    if isinstance(model, (str, os.PathLike)):
        return load_with(OnnxLoader(), cast("str | os.PathLike[str]", model))
    if not isinstance(model, onnx.ModelProto):
        raise InputError(f"a model is an onnx.ModelProto or the path of a file, got {type(model).__name__}")
    try:
        content = model.SerializeToString()
    except (ValueError, EncodeError) as error:
        raise LimitExceeded(
            f"the model cannot be written as one message: {error}",
            hint="save it with onnx.save(..., save_as_external_data=True), and give the path of the file",
        ) from None
    return OnnxLoader().load_bytes(content)


def _value(output: Any) -> Any:
    """What a model gave, with an array in the place of every `Tensor`."""
    if isinstance(output, list):
        return [_value(item) for item in cast("list[Any]", output)]
    if isinstance(output, dict):
        return {key: _value(item) for key, item in cast("dict[Any, Any]", output).items()}
    return output.to_numpy() if isinstance(output, Tensor) else output


def _model_of(node: onnx.NodeProto, inputs: Sequence[Any], version: int | None) -> onnx.ModelProto:
    names = list(dict.fromkeys(name for name in node.input if name))
    if len(names) != len(inputs):
        raise InputError(f"{len(inputs)} inputs were given, the node reads {len(names)}: {', '.join(names)}")
    infos = [helper.make_value_info(name, _type_of(value, name)) for name, value in zip(names, inputs, strict=True)]
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in node.output if name]
    opsets = {"": NEWEST, node.domain: NEWEST if node.domain in ("", "ai.onnx") else 1}
    if version is not None:
        opsets[node.domain] = version
    imports = [helper.make_opsetid(domain, number) for domain, number in opsets.items()]
    return helper.make_model(helper.make_graph([node], node.op_type or "node", infos, outputs), opset_imports=imports)


def _type_of(value: Any, name: str) -> onnx.TypeProto:
    """The type of a value that was given as an input."""
    if isinstance(value, (list, tuple)):
        items = [_type_of(item, name) for item in cast("Sequence[Any]", value)]
        if not items:
            raise InputError("the list is empty: it does not say of what type its items are", where=f"input {name!r}")
        return helper.make_sequence_type_proto(_in_common(items))
    array = np.asarray(value)
    kind = DatumType.STRING if array.dtype.kind in "OSUT" else DatumType.from_numpy(array.dtype)
    return helper.make_tensor_type_proto(_CODES[kind], array.shape)


def _in_common(items: Sequence[onnx.TypeProto]) -> onnx.TypeProto:
    """The type of the first item, without the sizes that others do not have."""
    shapes = [tuple(dim.dim_value for dim in item.tensor_type.shape.dim) for item in items]
    if len({len(shape) for shape in shapes}) > 1:
        items[0].tensor_type.ClearField("shape")
    for dim, sizes in zip(items[0].tensor_type.shape.dim, zip(*shapes, strict=False), strict=False):
        if len(set(sizes)) > 1:
            dim.Clear()
    return items[0]
