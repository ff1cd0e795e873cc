"""One request of HTTP and its answer, apart from how ASGI spells them."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import orjson

from tract_serve.errors import BadRequest, RequestTooLarge, TooSlow, UnknownEncoding
from tract_serve.serving import Holding, Serving
from tract_serve.texts import shown

Message: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

JSON: Final = b"application/json"

PIECE: Final = 1 << 20
"""Bytes of a body that are unpacked at once, each time when there is room for them."""

SHORT: Final = 1 << 16
"""Bytes of JSON, or of what is compressed, that are looked at where they come, and not in a thread of its own."""


@dataclass(slots=True)
class Answer:
    """``body``: parts that follow each other, or an iterator of parts that are sent as they come.

    ``packs``: whether it is compressed for clients that take that. Triton's do so for inference alone.
    """

    body: Sequence[Any] | AsyncIterator[bytes]
    status: int = 200
    kind: bytes = JSON
    headers: Sequence[tuple[bytes, bytes]] = ()
    packs: bool = False

    @staticmethod
    def of_json(value: Any, status: int = 200, headers: Sequence[tuple[bytes, bytes]] = ()) -> Answer:
        """A value as JSON."""
        return Answer([orjson.dumps(value)], status, JSON, headers)


@dataclass(slots=True)
class HttpRequest:
    """``parts``: what stands in the places of a route's ``{}``. ``headers``: small letters.

    ``client``: the address that it comes from. ``holding``: its part of the room for requests.
    """

    serving: Serving
    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    receive: Receive
    parts: Sequence[str] = ()
    client: str = ""
    holding: Holding = field(init=False)

    def __post_init__(self) -> None:
        self.holding = Holding(self.serving.room)

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
        return content if packing in ("", "identity") else await self._unpacked(content, packing)

    async def json(self) -> Any:
        """The body, as JSON. Raises as `body`, and BadRequest for what is no JSON."""
        return self.parsed(await self.body())

    def parsed(self, content: Any) -> Any:
        """JSON of the body. There is to be room for what it becomes. Raises BadRequest, TooLarge, Busy."""
        most = self.serving.settings.limits.json_bytes
        if len(content) > most:
            hint = "send tensors as bytes (binary_data_size), or start the server with --serve-limit json_bytes=..."
            raise RequestTooLarge(f"the JSON has {len(content)} bytes, at most {most} are taken", hint=hint)
        self.holding.more(unfolded(content))
        return json_of(content)

    async def left(self) -> None:
        """Return when the client has left. To be asked once the body is read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _read(self) -> bytes | bytearray:
        """The body as it comes: there is room for what has come, not for what was announced."""
        told = self.headers.get(b"content-length", b"")
        if told.isdigit():
            self.serving.check_size(int(told[:19]))
        found: bytearray | None = None
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("the client left before its request was whole")
            part: bytes = message.get("body", b"")
            self.serving.check_size(len(part) + (0 if found is None else len(found)))
            self.holding.more(len(part))
            if found is None and not message.get("more_body"):
                return part
            found = bytearray() if found is None else found
            found += part
            if not message.get("more_body"):
                return found

    async def _unpacked(self, content: Any, packing: str) -> bytes | bytearray:
        """What was compressed; no more of it than a request may have. Long ones are unpacked in a thread."""
        window = {"gzip": 31, "x-gzip": 31, "deflate": 47}.get(packing)
        if window is None:
            raise UnknownEncoding(f"content-encoding is {shown(packing)}, wanted gzip, deflate or none")
        unpacker, view, found = zlib.decompressobj(window), memoryview(content), bytearray()
        try:
            for begin in range(0, len(view), SHORT):
                if unpacker.eof:
                    raise BadRequest(f"more bytes are left behind the {packing}")
                await self._unpack(unpacker, view[begin : begin + SHORT], found)
        except zlib.error as error:
            raise BadRequest(f"the body is no {packing}: {error}") from None
        if not unpacker.eof:
            raise BadRequest(f"the body ends in the middle of its {packing}")
        if unpacker.unused_data:
            raise BadRequest(f"{len(unpacker.unused_data)} bytes are left behind the {packing}")
        return found

    async def _unpack(self, unpacker: Any, packed: Any, found: bytearray) -> None:
        """Add what some bytes become, piece by piece, so that there is room for each."""
        while True:
            if len(found) < SHORT:
                part = unpacker.decompress(packed, SHORT)
            else:
                part = await asyncio.get_running_loop().run_in_executor(None, unpacker.decompress, packed, PIECE)
            self.serving.check_size(len(found) + len(part))
            self.holding.more(len(part))
            found += part
            packed = unpacker.unconsumed_tail
            if unpacker.eof or not (packed or part):
                return


def unfolded(content: Any) -> int:
    """Bytes of memory that JSON becomes at most, with what reading it takes, and arrays that are made of it.

    What each sign of it stands for was measured with orjson and Python's own reader on Python 3.11 to 3.14.
    """
    if len(content) < SHORT:
        return 64 * len(content)
    signs = np.frombuffer(content, np.uint8)
    total = 13 * len(content)  # the reader's own values
    for sign, count in _SIGNS.items():
        total += count * int(np.count_nonzero(signs == ord(sign)))
    is_wide = bool((signs >= 0x80).any()) or b"\\u" in content
    return total + len(content) * (4 if is_wide else 1)  # one wide character makes all of its text wide


_SIGNS: Final = {"{": 240, ":": 104, "[": 72, ",": 64, '"': 40}
"""Bytes of memory of what begins or ends with a sign."""


def json_of(content: Any) -> Any:
    """A value of JSON. NaN and infinities are taken, as clients in Python write them. Raises BadRequest."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if b"NaN" in content or b"Infinity" in content:
            return _lenient(content)
        raise BadRequest(f"the body is no JSON: {error}") from None


def _lenient(content: Any) -> Any:
    """The same by Python's own reader, which takes what is no number. It takes halves of characters, too."""
    import json

    text = bytes(content)
    try:
        if b"\\u" in text:
            for found in _TEXT.finditer(text):
                if b"\\u" in found.group():
                    orjson.loads(found.group())
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is no JSON: {type(error).__name__}") from None


_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
"""A text of JSON."""
