"""What the messages of a WebSocket hold: samples, or tensors with names; in the words of a served model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final, Protocol, cast

import numpy as np
import orjson

from tract_core.data import DatumType
from tract_core.errors import TractError
from tract_serve.errors import BadRequest, Refusal, status_of, text_of
from tract_serve.http.exchange import HttpRequest, Message
from tract_serve.http.infer import infer
from tract_serve.inference.wishes import wish_of
from tract_serve.models.served import Served
from tract_serve.sequences.stateful import Stateful
from tract_serve.serving import Serving
from tract_serve.tensors.contents import from_bytes, to_bytes
from tract_serve.tensors.ports import Port

Array = np.ndarray[Any, Any]

_HEADER: Final = b"inference-header-content-length"
_LENGTH: Final = 4
"""Bytes in front of a frame of tensors that say how long its JSON is."""

_SOUND: Final = 32768.0
"""What 1 is in samples of 16 bits."""


class Frames(Protocol):
    """How one WebSocket writes what goes in and out. ``parameters``: of each request, as ``sequence_id``."""

    def told(self) -> dict[str, Any]:
        """What the client is told of it, for the first message."""
        ...

    async def answered(self, serving: Serving, content: bytes, parameters: Mapping[str, Any]) -> bytes:
        """What comes back for a message. Raises Refusal, and what a run raises."""
        ...

    def of_outputs(self, outputs: Sequence[Array]) -> bytes:
        """What is still to come at the end; nothing where there is none."""
        ...


class Samples:
    """Elements of the one input that streams, one behind the other, and those of the output in return.

    Sound may be of 16 bits where the model takes floats: 32768 stands for 1.
    """

    def __init__(self, served: Served, name: str, version: str, datatype: object) -> None:
        """``datatype``: of the elements; ``None`` for that of the model. Raises BadRequest."""
        self._name, self._version = name, version
        self._port, self._axis = _streaming(served, "input")
        self._out, _ = _streaming(served, "output")
        self._row = prod(size for axis, size in enumerate(self._port.sizes) if axis != self._axis and size is not None)
        self._is_short = datatype == "INT16" and self._port.kind.is_float() and self._out.kind.is_float()
        if datatype not in (None, self._port.datatype) and not self._is_short:
            problem = f"datatype is {str(datatype)[:40]!r}, wanted {self._port.datatype}"
            raise BadRequest(problem, hint="models that take floats take INT16, too")
        self._kind = DatumType.I16 if self._is_short else self._port.kind

    def told(self) -> dict[str, Any]:
        """The input and the output: names, element types, shapes, with -1 for the axis of the stream, and that axis."""
        return {"frames": "samples", **{key: self._told(port) for key, port in self._ports().items()}}

    def _ports(self) -> dict[str, Port]:
        return {"input": self._port, "output": self._out}

    def _told(self, port: Port) -> dict[str, Any]:
        return {
            "name": port.name,
            "datatype": "INT16" if self._is_short else port.datatype,
            "shape": port.shape,
            "axis": self._axis,
        }

    async def answered(self, serving: Serving, content: bytes, parameters: Mapping[str, Any]) -> bytes:
        """The samples of the output that are known by now, and were not before."""
        served = serving.tensors(self._name, self._version)
        given = {self._port.name: (self._port.kind, self._array(content))}
        return self.of_outputs(await served.infer(given, wish_of({**parameters, "stream": True})))

    def of_outputs(self, outputs: Sequence[Array]) -> bytes:
        """The samples of the output."""
        if not outputs:
            return b""
        (array,) = outputs
        if self._is_short:
            scaled = np.nan_to_num(array.astype(np.float32) * _SOUND, nan=0.0)
            array = np.clip(np.rint(scaled), -_SOUND, _SOUND - 1).astype(np.int16)
        return bytes(to_bytes(array))

    def _array(self, content: bytes) -> Array:
        count, rest = divmod(len(content), self._row * self._kind.itemsize)
        where = f"input {self._port.name!r}"
        if rest:
            problem = f"a frame has {len(content)} bytes, wanted a multiple of {self._row * self._kind.itemsize}"
            raise BadRequest(problem, where=where)
        shape = [count if axis == self._axis else size or 1 for axis, size in enumerate(self._port.sizes)]
        found = from_bytes(self._kind, tuple(shape), content, where)
        return (found / np.float32(_SOUND)).astype(self._port.kind.numpy) if self._is_short else found


class Tensors:
    """Requests as over HTTP: four bytes say how long the JSON is, then come the JSON and the bytes of tensors.

    Numbers are written with the little end first. What comes back is written the same way.
    """

    def __init__(self, served: Served, name: str, version: str) -> None:
        self._served, self._parts = served, [name, version]

    def told(self) -> dict[str, Any]:
        """Nothing that is not in the metadata of the model."""
        return {"frames": "tensors"}

    async def answered(self, serving: Serving, content: bytes, parameters: Mapping[str, Any]) -> bytes:
        """The answer to a request; one that is not done is told in its place: ``error``, ``status``."""
        size = int.from_bytes(content[:_LENGTH], "little")
        if len(content) < _LENGTH or size > len(content) - _LENGTH:
            problem = f"a frame has {len(content)} bytes, wanted 4 of the length of its JSON, the JSON, and tensors"
            raise BadRequest(problem)
        body = _with_parameters(content[_LENGTH : _LENGTH + size], parameters)
        headers = {_HEADER: str(len(body)).encode()}
        request = HttpRequest(serving, "POST", "", b"", headers, _one(body + content[_LENGTH + size :]), self._parts)
        try:
            answer = await infer(request)
        except (Refusal, TractError) as error:
            return _framed({"error": text_of(error), "status": status_of(error)}, [])
        finally:
            request.holding.release()
        parts = cast("Sequence[Any]", answer.body)
        head = bytes(parts[0])
        return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *parts[1:]])

    def of_outputs(self, outputs: Sequence[Array]) -> bytes:
        """The outputs, as in an answer."""
        if not outputs:
            return b""
        contents = [bytes(to_bytes(array)) for array in outputs]
        told = [
            {
                "name": port.name,
                "datatype": port.datatype,
                "shape": list(array.shape),
                "parameters": {"binary_data_size": len(content)},
            }
            for port, array, content in zip(self._served.signature.outputs, outputs, contents, strict=True)
        ]
        return _framed({"outputs": told}, contents)


def frames_of(served: Served, name: str, version: str, hello: Mapping[str, Any]) -> Frames:
    """How the client of a WebSocket says that it writes: ``frames``, ``datatype``. Raises BadRequest."""
    kind = hello.get("frames", "samples")
    if kind == "tensors":
        return Tensors(served, name, version)
    if kind != "samples":
        raise BadRequest(f"frames is {str(kind)[:40]!r}, wanted samples or tensors")
    return Samples(served, name, version, hello.get("datatype"))


def _streaming(served: Served, what: str) -> tuple[Port, int]:
    """The one input or output of a model, which streams, and along which axis. Raises BadRequest."""
    chunks = served.chunks if isinstance(served, Stateful) else None
    where, hint = f"model {served.name!r}", 'ask for {"frames": "tensors"}'
    if chunks is None:
        raise BadRequest("the model takes no stream of samples", where=where, hint=hint)
    ports = chunks.signature.inputs if what == "input" else chunks.signature.outputs
    ends = chunks.streams.inputs if what == "input" else chunks.streams.outputs
    if len(ports) != 1 or (end := ends[0]) is None:
        names = ", ".join(port.name for port in ports)
        raise BadRequest(f"samples are of one {what} that streams, and the model has {names}", where=where, hint=hint)
    return ports[0], end.axis


def _with_parameters(text: bytes, parameters: Mapping[str, Any]) -> bytes:
    """The JSON of a request with more parameters. What is no JSON is left to whoever reads it."""
    try:
        asked: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(asked, dict) and isinstance((given := cast("dict[str, Any]", asked).get("parameters", {})), dict):
        return orjson.dumps({**cast("dict[str, Any]", asked), "parameters": {**parameters, **given}})
    return text


def _one(body: bytes) -> Any:
    """What a `HttpRequest` reads: one body, whose client stays."""
    waits: list[Message] = [{"type": "http.request", "body": body}]

    async def receive() -> Message:
        if not waits:
            await asyncio.Event().wait()
        return waits.pop()

    return receive


def _framed(head: Mapping[str, Any], contents: Sequence[bytes]) -> bytes:
    text = orjson.dumps(head)
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, *contents])
