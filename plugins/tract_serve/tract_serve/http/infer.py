"""Inference over HTTP: JSON, with tensors in it or, by the binary tensor extension, as bytes behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np
import orjson

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_serve.errors import BadRequest
from tract_serve.fields import checked, flag_in, list_in, parameters_of, text_in, whole_in
from tract_serve.http.exchange import SHORT, Answer, HttpRequest
from tract_serve.inference.apart import apart
from tract_serve.inference.classes import classes
from tract_serve.inference.wishes import wish_of
from tract_serve.models.served import Served, Wish
from tract_serve.serving import Serving
from tract_serve.tensors.contents import TEXTS, from_bytes, from_json, shape_of, to_bytes, to_json
from tract_serve.tensors.types import type_of
from tract_serve.texts import shown
from tract_serve.tracing import traced

Array = np.ndarray[Any, Any]
Given = dict[str, tuple[DatumType, Array]]

_HEADER = b"inference-header-content-length"


@frozen
class WantedOutput:
    """An output that is asked for by its ``name``. ``binary``: as bytes.

    ``classes``: as its so many largest elements, if above 0. ``region``: where it is written to; ``offset``, ``room``:
    from where on in it, and how many bytes are left there.
    """

    name: str
    binary: bool
    classes: int = 0
    region: str = ""
    offset: int = 0
    room: int = 0


async def infer(request: HttpRequest) -> Answer:
    """Run a model on what comes with the request."""
    name, version = [*request.parts, ""][:2]
    request.serving.tensors(name, version)  # before the body of a request that has no model is read
    content = await request.body()
    served = request.serving.tensors(name, version)
    with served.held():
        return await _inferred(request, served, content)


async def _inferred(request: HttpRequest, served: Served, content: Any) -> Answer:
    length = _json_length(request, len(content))
    if content and not length:
        given, asked = _raw(served, content)
    else:
        given, asked = await apart(length > SHORT or _has_texts(served), _given, request, content, length)
    wanted = _outputs(asked, served)
    wish = _wish(request, asked)
    outputs = await _run(request, served, given, wish)
    size = sum(outputs[number].nbytes for number, _ in wanted)
    more = {name: value for name, value in (("id", asked.get("id")), ("parameters", wish.told)) if value}
    return await apart(size > SHORT, _answer, request.serving, served, more, wanted, outputs)


def _has_texts(served: Served) -> bool:
    return any(port.datatype == "BYTES" for port in served.signature.inputs)


def _given(request: HttpRequest, content: Any, length: int) -> tuple[Given, dict[str, Any]]:
    """The tensors of a request, and what it says besides."""
    head = request.parsed(content[:length] if length < len(content) else content)
    asked = cast("dict[str, Any]", checked(head, dict, "the body"))
    if not isinstance(asked.get("id", ""), str):
        raise BadRequest("'id' is no text")
    return _inputs(request, asked, memoryview(content)[length:]), asked


def _raw(served: Served, content: Any) -> tuple[Given, dict[str, Any]]:
    """A request of nothing but the bytes of the only input, whose shape they tell; outputs come as bytes, too."""
    ports = served.signature.inputs
    if len(ports) != 1 or ports[0].sizes.count(None) > 1:
        problem = "bytes without JSON are taken for one input, of whose sizes no more than one may be any"
        raise BadRequest(problem, where=f"model {served.name!r}")
    port = ports[0]
    row = prod(size for size in port.sizes if size is not None) * (port.kind.itemsize or 1)
    shape = [len(content) // max(row, 1) if size is None else size for size in port.sizes]
    if port.kind is DatumType.STRING:
        array: Array = np.empty(1, object)
        array[0] = bytes(content).decode("utf-8", "surrogateescape")
        array = array.reshape([1] * len(shape))
    else:
        array = from_bytes(port.kind, tuple(shape), content, f"input {port.name!r}")
    return {port.name: (port.kind, array)}, {"parameters": {"binary_data_output": True}}


def _wish(request: HttpRequest, asked: Mapping[str, Any]) -> Wish:
    told: Mapping[bytes, bytes] = request.headers if request.serving.trace_rate else {}
    trace = traced(request.serving, {name.decode("latin-1"): value.decode("latin-1") for name, value in told.items()})
    return wish_of(parameters_of(asked), None, trace)


async def _run(request: HttpRequest, served: Served, given: Given, wish: Wish) -> list[Array]:
    """The outputs. A client that leaves meanwhile takes its request along."""
    if served.is_quick(given):
        return await served.infer(given, wish)
    running = asyncio.ensure_future(served.infer(given, wish))
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


def _json_length(request: HttpRequest, count: int) -> int:
    told = request.header(_HEADER).strip()
    if not told:
        return count
    if not (told.isascii() and told.isdigit()) or len(told) > 18 or int(told) > count:
        problem = f"Inference-Header-Content-Length is {shown(told)}, wanted a number up to the body's {count} bytes"
        raise BadRequest(problem)
    return int(told)


def _inputs(request: HttpRequest, asked: Mapping[str, Any], behind: memoryview) -> Given:
    """The tensors of a request, by name."""
    given: Given = {}
    at = 0
    for number, one in enumerate(list_in(asked, "inputs")):
        tensor = cast("Mapping[str, Any]", checked(one, dict, f"input {number}"))
        name = text_in(tensor, "name", f"input {number}")
        where = f"input {name[:100]!r}"
        if name in given:
            raise BadRequest("it comes twice", where=where)
        kind = type_of(tensor.get("datatype"), where)
        shape = shape_of(tensor.get("shape"), where)
        parameters = parameters_of(tensor)
        size = whole_in(parameters, "binary_data_size", where)
        is_shared = "shared_memory_region" in parameters or "shared_memory_byte_size" in parameters
        if (size is not None) + is_shared + ("data" in tensor) != 1:
            problem = "wanted one of 'data', 'binary_data_size', and 'shared_memory_region' with its size"
            raise BadRequest(problem, where=where)
        if is_shared:
            array = from_bytes(kind, shape, _shared(request, parameters, where), where)
        elif size is not None:
            if at + size > behind.nbytes:
                raise BadRequest(f"{behind.nbytes - at} bytes are left behind the JSON, wanted {size}", where=where)
            request.holding.more(TEXTS * size if kind is DatumType.STRING else 0)
            array = from_bytes(kind, shape, behind[at : at + size], where)
            at += size
        else:
            array = from_json(kind, shape, tensor["data"], where)
        given[name] = (kind, array)
    if at != behind.nbytes:
        raise BadRequest(f"{behind.nbytes - at} bytes are left behind the last input")
    return given


def _shared(request: HttpRequest, parameters: Mapping[str, Any], where: str) -> bytearray:
    region = text_in(parameters, "shared_memory_region", where)
    size = whole_in(parameters, "shared_memory_byte_size", where)
    offset = whole_in(parameters, "shared_memory_offset", where) or 0
    if size is None:
        raise BadRequest("'shared_memory_byte_size' is missing", where=where)
    regions = request.serving.regions()
    regions.check(region, offset, size)
    request.holding.more(size)
    return regions.read(region, offset, size)


def _outputs(asked: Mapping[str, Any], served: Served) -> list[tuple[int, WantedOutput]]:
    """The outputs that are asked for, by number, or all."""
    binary = flag_in(parameters_of(asked), "binary_data_output", default=False)
    names = [port.name for port in served.signature.outputs]
    if asked.get("outputs") in (None, []):
        return [(number, WantedOutput(name, binary)) for number, name in enumerate(names)]
    wanted = [_output(one, number, binary=binary) for number, one in enumerate(list_in(asked, "outputs"))]
    numbers = served.signature.chosen([one.name for one in wanted])
    by_name = {one.name: one for one in wanted}
    if len(by_name) < len(wanted):
        raise BadRequest("an output is asked for twice")
    return [(number, by_name[names[number]]) for number in numbers]


def _output(given: Any, number: int, *, binary: bool) -> WantedOutput:
    where = f"output {number}"
    told = cast("Mapping[str, Any]", checked(given, dict, where))
    name, parameters = text_in(told, "name", where), parameters_of(told)
    region = text_in(parameters, "shared_memory_region", where) if "shared_memory_region" in parameters else ""
    if bool(region) != ("shared_memory_byte_size" in parameters):
        raise BadRequest("shared_memory_region and shared_memory_byte_size go together", where=where)
    return WantedOutput(
        name,
        flag_in(parameters, "binary_data", default=binary),
        whole_in(parameters, "classification", where) or 0,
        region,
        whole_in(parameters, "shared_memory_offset", where) or 0,
        whole_in(parameters, "shared_memory_byte_size", where) or 0,
    )


def _answer(
    serving: Serving,
    served: Served,
    more: Mapping[str, Any],
    wanted: Sequence[tuple[int, WantedOutput]],
    outputs: Sequence[Array],
) -> Answer:
    """The outputs that are wanted. ``more``: what the answer says besides."""
    told: list[dict[str, Any]] = []
    parts: list[Any] = []
    for number, output in wanted:
        array, datatype = outputs[number], served.signature.outputs[number].datatype
        if output.classes:
            array, datatype = classes(array, output.classes, served.labels.get(output.name, ())), "BYTES"
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
            one["data"] = orjson.Fragment(to_json(array, f"output {output.name!r}"))
        told.append(one)
    head: dict[str, Any] = {"model_name": served.name, "model_version": served.version, "outputs": told}
    text = orjson.dumps({**head, **more})
    if not parts:
        return Answer([text], packs=True)
    headers = [(_HEADER, str(len(text)).encode())]
    return Answer([text, *parts], kind=b"application/octet-stream", headers=headers, packs=True)


def _placed(output: WantedOutput, count: int) -> dict[str, Any]:
    return {
        "shared_memory_region": output.region,
        "shared_memory_offset": output.offset,
        "shared_memory_byte_size": count,
    }
