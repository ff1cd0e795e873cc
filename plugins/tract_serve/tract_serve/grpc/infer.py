"""Inference over gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_serve.errors import BadRequest
from tract_serve.fields import whole_in
from tract_serve.inference.apart import apart
from tract_serve.inference.classes import classes
from tract_serve.inference.wishes import wish_of
from tract_serve.messages import message
from tract_serve.models.served import Served
from tract_serve.serving import Holding, Serving
from tract_serve.tensors.contents import TEXTS, as_integers, from_bytes, shape_of, to_bytes
from tract_serve.tensors.types import type_of

if TYPE_CHECKING:
    from tract_serve.models.served import Wish
    from tract_serve.tracing import Trace

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

SHORT: Final = 1 << 18
"""Bytes of outputs that are written where they are, and not in a thread of their own."""

_CHOICES: Final[dict[type, str]] = {bool: "bool_param", int: "int64_param", str: "string_param"}
"""The field of a parameter of an answer."""


async def inferred(
    serving: Serving, request: Any, seconds: float | None, holding: Holding, trace: Trace | None = None
) -> Any:
    """A ``ModelInferResponse`` for a ``ModelInferRequest``. ``seconds``: that the client waits, if it says so.

    ``holding``: of the request, whose own bytes it has already. ``trace``: of the request, where it is traced.
    """
    served = serving.tensors(request.model_name, request.model_version)
    wish = wish_of(_plain(request.parameters), seconds, trace)
    with served.held():
        return await _answered(serving, served, request, wish, holding)


async def _answered(serving: Serving, served: Served, request: Any, wish: Wish, holding: Holding) -> Any:
    numbers = served.signature.chosen([one.name for one in request.outputs] or None)
    wanted = {one.name: _plain(one.parameters) for one in request.outputs}
    if len(wanted) < len(request.outputs):
        raise BadRequest("an output is asked for twice")
    is_long = any(one.HasField("contents") or one.datatype == "BYTES" for one in request.inputs)
    given = await apart(is_long, _inputs, serving, request, holding)
    outputs = await served.infer(given, wish)
    answer = message("ModelInferResponse")(model_name=served.name, model_version=served.version, id=request.id)
    size = sum(outputs[number].nbytes for number in numbers)
    if size > serving.settings.limits.response_bytes:
        problem = f"the outputs have {size} bytes, at most {serving.settings.limits.response_bytes} are sent"
        raise BadRequest(problem, hint="ask for fewer outputs, or for less at once")
    holding.anyway(2 * size)
    await apart(size > SHORT, _add_outputs, serving, answer, served, outputs, wanted)
    for name, value in wish.told.items():
        setattr(answer.parameters[name], _CHOICES[type(value)], value)
    return answer


def _inputs(serving: Serving, request: Any, holding: Holding) -> dict[str, tuple[DatumType, Array]]:
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
        if "shared_memory_region" in parameters or "shared_memory_byte_size" in parameters:
            if one.HasField("contents"):
                raise BadRequest("it has contents, and a region of shared memory", where=where)
            array = from_bytes(kind, shape, _shared(serving, parameters, holding, where), where)
        elif raw:
            if one.HasField("contents"):
                raise BadRequest("it has contents, and others come as raw_input_contents", where=where)
            if at == len(raw):
                raise BadRequest(f"raw_input_contents has {len(raw)} parts, and none is left for it", where=where)
            content, at = raw[at], at + 1
            holding.more(TEXTS * len(content) if kind is DatumType.STRING else 0)
            array = from_bytes(kind, shape, content, where)
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
    count = prod(shape)
    if len(found) != count:
        raise BadRequest(f"{field} has {len(found)} elements, wanted {count} for the shape", where=where)
    if kind is DatumType.STRING:
        array: Array = np.empty(count, object)
        array[:] = [text.decode("utf-8", "surrogateescape") for text in found]
        return array.reshape(shape)
    elements = list(found)
    made = as_integers(elements, kind, where) if kind.is_integer() else np.array(elements, kind.numpy)
    return made.reshape(shape)


def _add_outputs(
    serving: Serving, answer: Any, served: Served, outputs: Sequence[Array], wanted: Mapping[str, Mapping[str, Any]]
) -> None:
    for number in served.signature.chosen([*wanted] or None):
        port = served.signature.outputs[number]
        array, parameters, datatype = outputs[number], wanted.get(port.name, {}), port.datatype
        count = whole_in(parameters, "classification")
        if count:
            array, datatype = classes(array, count, served.labels.get(port.name, ())), "BYTES"
        made = answer.outputs.add(name=port.name, datatype=datatype, shape=array.shape)
        _add_output(serving, answer, made, array, parameters)


def _add_output(serving: Serving, answer: Any, made: Any, array: Array, parameters: Mapping[str, Any]) -> None:
    """Add an output. Those that are written to shared memory have raw contents too, of no bytes: clients count them."""
    content = to_bytes(array)
    region = parameters.get("shared_memory_region")
    if region is None:
        answer.raw_output_contents.append(bytes(content))
        return
    answer.raw_output_contents.append(b"")
    view = memoryview(content)
    offset = whole_in(parameters, "shared_memory_offset") or 0
    room = whole_in(parameters, "shared_memory_byte_size") or 0
    serving.regions().write(str(region), offset, room, view)
    made.parameters["shared_memory_region"].string_param = str(region)
    made.parameters["shared_memory_byte_size"].int64_param = view.nbytes
    if offset:
        made.parameters["shared_memory_offset"].int64_param = offset


def _shared(serving: Serving, parameters: Mapping[str, Any], holding: Holding, where: str) -> bytearray:
    if not {"shared_memory_region", "shared_memory_byte_size"} <= parameters.keys():
        raise BadRequest("shared_memory_region and shared_memory_byte_size go together", where=where)
    offset = whole_in(parameters, "shared_memory_offset", where) or 0
    size = whole_in(parameters, "shared_memory_byte_size", where) or 0
    regions, name = serving.regions(), str(parameters["shared_memory_region"])
    regions.check(name, offset, size)
    holding.more(size)
    return regions.read(name, offset, size)


def _plain(parameters: Any) -> dict[str, Any]:
    """Parameters as values of Python."""
    return {name: getattr(one, one.WhichOneof("parameter_choice") or "bool_param") for name, one in parameters.items()}
