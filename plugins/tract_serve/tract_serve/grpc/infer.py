"""Inference over gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_serve.errors import BadRequest
from tract_serve.inference.classes import classes
from tract_serve.inference.wishes import wish_of
from tract_serve.messages import message
from tract_serve.serving import Serving
from tract_serve.tensors.contents import from_bytes, shape_of, to_bytes
from tract_serve.tensors.types import type_of

Array = np.ndarray[Any, Any]

_CONTENTS: Final[dict[DatumType, str]] = {
    DatumType.BOOL: "bool_contents",
    DatumType.I8: "int_contents",
    DatumType.I16: "int_contents",
    DatumType.I32: "int_contents",
    DatumType.I64: "int64_contents",
    DatumType.U8: "uint_contents",
    DatumType.U16: "uint_contents",
    DatumType.U32: "uint_contents",
    DatumType.U64: "uint64_contents",
    DatumType.F32: "fp32_contents",
    DatumType.F64: "fp64_contents",
    DatumType.STRING: "bytes_contents",
}
"""The field of typed contents that holds elements of a type. Halves have none: they come as bytes alone."""


async def inferred(serving: Serving, request: Any, seconds: float | None) -> Any:
    """A ``ModelInferResponse`` for a ``ModelInferRequest``. ``seconds``: that the client waits, if it says so."""
    served = serving.tensors(request.model_name, request.model_version)
    with serving.room.of(request.ByteSize()):
        given = _inputs(serving, request)
        wish = wish_of(_plain(request.parameters), seconds)
        outputs = await served.infer(given, wish)
    names = [one.name for one in request.outputs] or None
    numbers = served.signature.chosen(names)
    wanted = {one.name: _plain(one.parameters) for one in request.outputs}
    answer = message("ModelInferResponse")(model_name=served.name, model_version=served.version, id=request.id)
    for number in numbers:
        port = served.signature.outputs[number]
        _add_output(serving, answer, port.name, port.datatype, outputs[number], wanted.get(port.name, {}))
    return answer


def _inputs(serving: Serving, request: Any) -> dict[str, tuple[DatumType, Array]]:
    """The tensors of a request, by name."""
    raw: Sequence[bytes] = request.raw_input_contents
    given: dict[str, tuple[DatumType, Array]] = {}
    at = 0
    for one in request.inputs:
        where = f"input {one.name[:100]!r}"
        if one.name in given:
            raise BadRequest("it comes twice", where=where)
        kind, shape = type_of(one.datatype, where), shape_of(tuple(one.shape), where)
        parameters = _plain(one.parameters) if one.parameters else {}
        if "shared_memory_region" in parameters:
            array = from_bytes(kind, shape, _shared(serving, parameters), where)
        elif raw:
            if one.HasField("contents"):
                raise BadRequest("it has contents, and others come as raw_input_contents", where=where)
            if at == len(raw):
                raise BadRequest(f"raw_input_contents has {len(raw)} parts, and none is left for it", where=where)
            array, at = from_bytes(kind, shape, raw[at], where), at + 1
        else:
            array = _typed(kind, shape, one.contents, where)
        given[one.name] = (kind, array)
    if at != len(raw):
        raise BadRequest(f"raw_input_contents has {len(raw)} parts, wanted {at}")
    return given


def _typed(kind: DatumType, shape: tuple[int, ...], contents: Any, where: str) -> Array:
    """The array of typed contents."""
    field = _CONTENTS.get(kind)
    if field is None:
        raise BadRequest(f"{kind.short} has no typed contents, wanted raw_input_contents", where=where)
    found = getattr(contents, field)
    others = [one.name for one, _ in contents.ListFields() if one.name != field]
    if others:
        raise BadRequest(f"it comes in {', '.join(others)}, wanted {field}", where=where)
    count = int(np.prod(shape, dtype=object))
    if len(found) != count:
        raise BadRequest(f"{field} has {len(found)} elements, wanted {count} for the shape", where=where)
    if kind is DatumType.STRING:
        array: Array = np.empty(count, object)
        array[:] = [text.decode("utf-8", "surrogateescape") for text in found]
        return array.reshape(shape)
    array = np.array(found, np.float64 if kind is DatumType.F64 else None) if count else np.zeros(0, kind.numpy)
    if kind.is_integer() and count:
        limits = np.iinfo(kind.numpy)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise BadRequest(f"{field} holds numbers that {kind.short} does not have", where=where)
    return array.astype(kind.numpy).reshape(shape)


def _add_output(
    serving: Serving, answer: Any, name: str, datatype: str, array: Array, parameters: Mapping[str, Any]
) -> None:
    count = _number(parameters, "classification")
    if count:
        array, datatype = classes(array, count), "BYTES"
    made = answer.outputs.add(name=name, datatype=datatype, shape=array.shape)
    content = to_bytes(array)
    region = parameters.get("shared_memory_region")
    if region is None:
        answer.raw_output_contents.append(bytes(content))
        return
    view = memoryview(content)
    offset, room = _number(parameters, "shared_memory_offset"), _number(parameters, "shared_memory_byte_size")
    serving.regions().write(str(region), offset, room, view)
    made.parameters["shared_memory_region"].string_param = str(region)
    made.parameters["shared_memory_byte_size"].int64_param = view.nbytes
    if offset:
        made.parameters["shared_memory_offset"].int64_param = offset


def _shared(serving: Serving, parameters: Mapping[str, Any]) -> bytearray:
    offset, size = _number(parameters, "shared_memory_offset"), _number(parameters, "shared_memory_byte_size")
    return serving.regions().read(str(parameters["shared_memory_region"]), offset, size)


def _number(parameters: Mapping[str, Any], name: str) -> int:
    found = parameters.get(name, 0)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise BadRequest(f"{name} is {str(found)[:40]!r}, wanted a number from 0 on")
    return found


def _plain(parameters: Any) -> dict[str, Any]:
    """Parameters as values of Python."""
    return {name: getattr(one, one.WhichOneof("parameter_choice") or "bool_param") for name, one in parameters.items()}
