"""One request of HTTP and its answer, apart from how ASGI spells them."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import orjson

from tract_serve.errors import BadRequest, TooLarge, TooSlow, UnknownEncoding
from tract_serve.serving import Serving

Message: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

JSON: Final = b"application/json"

UNFOLDED: Final = 20
"""Bytes of memory that a byte of JSON becomes at worst, which is in empty lists."""


@dataclass(slots=True)
class Answer:
    """``body``: parts that follow each other, or an iterator of parts that are sent as they come."""

    body: Sequence[Any] | AsyncIterator[bytes]
    status: int = 200
    kind: bytes = JSON
    headers: Sequence[tuple[bytes, bytes]] = ()

    @staticmethod
    def of_json(value: Any, status: int = 200, headers: Sequence[tuple[bytes, bytes]] = ()) -> Answer:
        """A value as JSON."""
        return Answer([orjson.dumps(value)], status, JSON, headers)


@dataclass(slots=True)
class Request:
    """``parts``: what stands in the places of a route's ``{}``. ``headers``: small letters. ``taken``: bytes of room."""

    serving: Serving
    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    receive: Receive
    parts: Sequence[str] = ()
    taken: int = field(default=0)

    def header(self, name: bytes) -> str:
        """A header; empty where it is not there."""
        return self.headers.get(name, b"").decode("latin-1")

    async def body(self) -> bytes | bytearray:
        """What comes with the request, unpacked. Raises TooLarge, Busy, TooSlow, BadRequest, UnknownEncoding."""
        limits = self.serving.settings.limits
        try:
            async with asyncio.timeout(limits.read_s):
                content = await self._read()
        except TimeoutError:
            raise TooSlow(f"the request did not come within {limits.read_s:g} seconds") from None
        packing = self.header(b"content-encoding").strip().lower()
        return content if packing in ("", "identity") else self._unpacked(content, packing)

    async def json(self) -> Any:
        """The body, as JSON. Raises as `body`, and BadRequest for what is no JSON."""
        return self.parsed(await self.body())

    def parsed(self, content: Any) -> Any:
        """JSON of the body. There is to be room for what it becomes. Raises BadRequest, TooLarge, Busy."""
        most = self.serving.settings.limits.json_bytes
        if len(content) > most:
            hint = "send tensors as bytes (binary_data_size), or start the server with --limit json_bytes=..."
            raise TooLarge(f"the JSON has {len(content)} bytes, at most {most} are taken", hint=hint)
        self.serving.room.take(UNFOLDED * len(content))
        self.taken += UNFOLDED * len(content)
        return json_of(content)

    async def left(self) -> None:
        """Return when the client has left. To be asked once the body is read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    def release(self) -> None:
        """The body is no longer held."""
        self.serving.room.give_back(self.taken)
        self.taken = 0

    def _hold(self, count: int) -> None:
        """The request holds so many bytes in all. Raises TooLarge, Busy."""
        if count > self.taken:
            self.serving.check_size(count)
            self.serving.room.take(count - self.taken)
            self.taken = count

    async def _read(self) -> bytes | bytearray:
        told = self.headers.get(b"content-length", b"")
        if told.isdigit() and len(told) < 19:
            self._hold(int(told))
        found: bytearray | None = None
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("the client left before its request was whole")
            part: bytes = message.get("body", b"")
            self._hold(len(part) + (0 if found is None else len(found)))
            if found is None and not message.get("more_body"):
                return part
            found = bytearray() if found is None else found
            found += part
            if not message.get("more_body"):
                return found

    def _unpacked(self, content: Any, packing: str) -> bytes:
        """What was compressed; no more of it than a request may have."""
        window = {"gzip": 31, "x-gzip": 31, "deflate": 47}.get(packing)
        if window is None:
            raise UnknownEncoding(f"content-encoding is {packing[:40]!r}, wanted gzip, deflate or none")
        most = self.serving.settings.limits.body_bytes
        unpacker = zlib.decompressobj(window)
        try:
            found = unpacker.decompress(content, most + 1)
        except zlib.error as error:
            raise BadRequest(f"the body is no {packing}: {error}") from None
        self._hold(len(content) + len(found))
        if not unpacker.eof:
            raise BadRequest(f"the body ends in the middle of its {packing}")
        return found


def json_of(content: Any) -> Any:
    """A value of JSON. NaN and infinities are taken, as clients in Python write them. Raises BadRequest."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if b"NaN" in content or b"Infinity" in content:
            return _lenient(content)
        raise BadRequest(f"the body is no JSON: {error}") from None


def _lenient(content: Any) -> Any:
    import json

    try:
        return json.loads(bytes(content))
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is no JSON: {type(error).__name__}") from None
