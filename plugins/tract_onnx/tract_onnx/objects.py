"""Models of ONNX that other libraries hold in memory, as the content of a file."""

from __future__ import annotations

from typing import Any, cast

from onnx import ModelProto

from tract_core.errors import Unsupported

LARGEST = (1 << 31) - 1
"""Bytes that a message of Protocol Buffers may have."""


def content_of_object(given: Any) -> bytes:
    """The content of the file of an ``onnx.ModelProto``, an ``onnx_ir.Model``, or an ``ONNXProgram`` of PyTorch.

    Raises Unsupported for a model of more than 2 GiB.
    """
    proto = _proto(given)
    if proto.ByteSize() > LARGEST:
        hint = "load the path of what onnx.save(model, path, save_as_external_data=True) writes"
        raise Unsupported(f"the model has {proto.ByteSize()} bytes, and at most {LARGEST} are one message", hint=hint)
    return proto.SerializeToString()


def _proto(given: Any) -> ModelProto:
    if isinstance(given, ModelProto):
        return given
    if hasattr(given, "model_proto"):
        return given.model_proto
    import onnx_ir  # where it is not installed, nobody has such a model

    return cast("Any", onnx_ir).to_proto(given)
