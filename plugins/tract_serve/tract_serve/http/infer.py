"""Inference over HTTP: JSON, with tensors in it or, by the binary tensor extension, as bytes behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import orjson

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_serve.errors import BadRequest
from tract_serve.http.exchange import Answer, Request
from tract_serve.inference.classes import classes
from tract_serve.inference.wishes import wish_of
from tract_serve.models.served import Served
from tract_serve.serving import Serving
from tract_serve.tensors.contents import from_bytes, from_json, shape_of, to_bytes, to_json
from tract_serve.tensors.types import type_of

Array = np.ndarray[Any, Any]
Given = dict[str, tuple[DatumType, Array]]

_HEADER = b"inference-header-content-length"


@frozen
class Output:
    """An output that is asked for. ``binary``: as bytes; ``classes``: as its so many largest elements, if above 0.

    ``region``: where it is written to; ``offset``, ``room``: from where on in it, and how many bytes are left there.
    """

    name: str
    binary: bool
    classes: int = 0
    region: str = ""
    offset: int = 0
    room: int = 0


async def infer(request: Request) -> Answer:
    """Run a model on what comes with the request."""
    name, version = [*request.parts, ""][:2]
    served = request.serving.tensors(name, version)
    content = await request.body()
    length = _json_length(request, len(content))
    asked = cast(
        "dict[str, Any]",
        _checked(request.parsed(content[:length] if length < len(content) else content), dict, "the body"),
    )
    given = _inputs(request.serving, asked, memoryview(content)[length:])
    wanted = _outputs(asked, served)
    outputs = await _run(request, served, given, asked)
    return _answer(request.serving, served, asked, wanted, outputs)


async def _run(request: Request, served: Served, given: Given, asked: Mapping[str, Any]) -> list[Array]:
    """The outputs. A client that leaves meanwhile takes its request along."""
    answer = served.infer(given, wish_of(_parameters(asked)))
    running = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    if running.done():
        return running.result()
    left = asyncio.ensure_future(request.left())
    try:
        await asyncio.wait((running, left), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            running.cancel()
            raise BadRequest("the client left")
        return running.result()
    finally:
        left.cancel()
        if not running.done():
            running.cancel()


def _json_length(request: Request, count: int) -> int:
    told = request.header(_HEADER).strip()
    if not told:
        return count
    if not (told.isascii() and told.isdigit()) or len(told) > 18 or int(told) > count:
        problem = f"Inference-Header-Content-Length is {told[:40]!r}, wanted a number up to the body's {count} bytes"
        raise BadRequest(problem)
    return int(told)


def _inputs(serving: Serving, asked: Mapping[str, Any], behind: memoryview) -> Given:
    """The tensors of a request, by name."""
    given: Given = {}
    at = 0
    for number, one in enumerate(_list(asked, "inputs")):
        tensor = cast("Mapping[str, Any]", _checked(one, dict, f"input {number}"))
        name = _text(tensor, "name", f"input {number}")
        where = f"input {name[:100]!r}"
        if name in given:
            raise BadRequest("it comes twice", where=where)
        kind = type_of(tensor.get("datatype"), where)
        shape = shape_of(tensor.get("shape"), where)
        parameters = _parameters(tensor)
        size = _count(parameters, "binary_data_size", where)
        if "shared_memory_region" in parameters:
            content = _shared(serving, parameters, where)
            array = from_bytes(kind, shape, content, where)
        elif size is not None:
            if at + size > behind.nbytes:
                raise BadRequest(f"{behind.nbytes - at} bytes are left behind the JSON, wanted {size}", where=where)
            array = from_bytes(kind, shape, behind[at : at + size], where)
            at += size
        else:
            array = from_json(kind, shape, tensor.get("data"), where)
        given[name] = (kind, array)
    if at != behind.nbytes:
        raise BadRequest(f"{behind.nbytes - at} bytes are left behind the last input")
    return given


def _shared(serving: Serving, parameters: Mapping[str, Any], where: str) -> bytearray:
    region = _text(parameters, "shared_memory_region", where)
    size = _count(parameters, "shared_memory_byte_size", where) or 0
    offset = _count(parameters, "shared_memory_offset", where) or 0
    return serving.regions().read(region, offset, size)


def _outputs(asked: Mapping[str, Any], served: Served) -> list[tuple[int, Output]]:
    """The outputs that are asked for, by number, or all."""
    binary = _flag(_parameters(asked), "binary_data_output", default=False)
    names = [port.name for port in served.signature.outputs]
    if not asked.get("outputs"):
        return [(number, Output(name, binary)) for number, name in enumerate(names)]
    wanted = [_output(one, number, binary=binary) for number, one in enumerate(_list(asked, "outputs"))]
    numbers = served.signature.chosen([one.name for one in wanted])
    by_name = {one.name: one for one in wanted}
    return [(number, by_name[names[number]]) for number in numbers]


def _output(given: Any, number: int, *, binary: bool) -> Output:
    where = f"output {number}"
    told = cast("Mapping[str, Any]", _checked(given, dict, where))
    name, parameters = _text(told, "name", where), _parameters(told)
    region = _text(parameters, "shared_memory_region", where) if "shared_memory_region" in parameters else ""
    return Output(
        name,
        _flag(parameters, "binary_data", default=binary),
        _count(parameters, "classification", where) or 0,
        region,
        _count(parameters, "shared_memory_offset", where) or 0,
        _count(parameters, "shared_memory_byte_size", where) or 0,
    )


def _answer(
    serving: Serving,
    served: Served,
    asked: Mapping[str, Any],
    wanted: Sequence[tuple[int, Output]],
    outputs: Sequence[Array],
) -> Answer:
    told: list[dict[str, Any]] = []
    parts: list[Any] = []
    finite = True
    for number, output in wanted:
        array, datatype = outputs[number], served.signature.outputs[number].datatype
        if output.classes:
            array, datatype = classes(array, output.classes), "BYTES"
        one: dict[str, Any] = {"name": output.name, "datatype": datatype, "shape": list(array.shape)}
        if output.region:
            content = memoryview(to_bytes(array))
            serving.regions().write(output.region, output.offset, output.room, content)
            one["parameters"] = _placed(output, content.nbytes)
        elif output.binary:
            content = to_bytes(array)
            parts.append(content)
            one["parameters"] = {"binary_data_size": memoryview(content).nbytes}
        else:
            one["data"], is_finite = to_json(array, f"output {output.name!r}")
            finite = finite and is_finite
        told.append(one)
    head: dict[str, Any] = {"model_name": served.name, "model_version": served.version, "outputs": told}
    if isinstance(asked.get("id"), str):
        head["id"] = asked["id"]
    text = orjson.dumps(head, option=orjson.OPT_SERIALIZE_NUMPY) if finite else _with_nan(head)
    if not parts:
        return Answer([text])
    return Answer([text, *parts], kind=b"application/octet-stream", headers=[(_HEADER, str(len(text)).encode())])


def _placed(output: Output, count: int) -> dict[str, Any]:
    return {
        "shared_memory_region": output.region,
        "shared_memory_offset": output.offset,
        "shared_memory_byte_size": count,
    }


def _with_nan(head: Mapping[str, Any]) -> bytes:
    """JSON with NaN and infinities in it, as Python's own reader takes it."""
    return json.dumps(head, default=lambda array: array.tolist(), separators=(",", ":")).encode()


def _checked(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        names = {dict: "an object", list: "a list", str: "a text"}
        raise BadRequest(f"{where} is a {type(value).__name__}, wanted {names[kind]}")
    return value


def _list(told: Mapping[str, Any], name: str) -> list[Any]:
    if name not in told:
        raise BadRequest(f"{name!r} is missing")
    return _checked(told[name], list, repr(name))


def _text(told: Mapping[str, Any], name: str, where: str) -> str:
    found = told.get(name)
    if not isinstance(found, str) or not found:
        raise BadRequest(f"{name!r} is missing, or no text", where=where)
    return found


def _parameters(told: Mapping[str, Any]) -> Mapping[str, Any]:
    found = told.get("parameters")
    return {} if found is None else _checked(found, dict, "'parameters'")


def _flag(told: Mapping[str, Any], name: str, *, default: bool) -> bool:
    found = told.get(name, default)
    if not isinstance(found, bool):
        raise BadRequest(f"{name} is no true or false")
    return found


def _count(told: Mapping[str, Any], name: str, where: str) -> int | None:
    found = told.get(name)
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 1 << 63:
        raise BadRequest(f"{name} is {str(found)[:40]!r}, wanted a number from 0 on", where=where)
    return found
