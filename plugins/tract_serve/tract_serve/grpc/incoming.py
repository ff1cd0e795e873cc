"""Requests of gRPC as they come: each is received whole before anything can be said of it.

What is received at the same time is bounded by how many are: a call waits for its turn before its message is asked for,
and until then a client can send no more than a window of 64 KiB.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from google.protobuf.message import DecodeError

from tract_serve.errors import BadRequest, Busy, RequestTooLarge, TooSlow
from tract_serve.messages import message
from tract_serve.settings import Limits

SMALL: Final = 1 << 16
"""Bytes of a request whose parts are not counted."""

MOST_FIELDS: Final = 10_000
"""Parts of a request for a run: its inputs, outputs, parameters and raw contents."""

COPIES: Final = 3
"""How often raw contents are in memory while a request is taken apart: as they came, in the message, as an array."""

UNFOLDED: Final = 48
"""Bytes of memory that any other byte of a request becomes at most, which is in elements of BYTES that are empty."""

RAW_CONTENTS: Final = 7
"""The number of ``raw_input_contents`` in a request for a run."""

FILES: Final = 3
"""The number of ``parameters`` in a request to load a model, which may be its files."""


class Incoming:
    """The requests of all calls of one server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._turns = asyncio.Semaphore(max(1, limits.bodies_bytes // limits.grpc_bytes))
        self._streams = 0

    async def one(self, context: Any) -> bytes:
        """The request of a call. Raises TooSlow where it does not come in time, BadRequest where there is none."""
        try:
            async with asyncio.timeout(self._limits.read_s), self._turns:
                found = await context.read()
        except TimeoutError:
            raise TooSlow(f"the request did not come within {self._limits.read_s:g} seconds") from None
        if not isinstance(found, bytes):  # but the end of what comes
            raise BadRequest("the call has no request")
        return found

    async def next(self, context: Any) -> bytes | None:
        """The next request of a stream; ``None`` at its end. Raises TooSlow where there is none for too long."""
        try:
            async with asyncio.timeout(self._limits.idle_s):
                found = await context.read()
        except TimeoutError:
            raise TooSlow(f"the stream was silent for {self._limits.idle_s:g} seconds") from None
        return found if isinstance(found, bytes) else None

    def begin_stream(self) -> None:
        """One stream more. Raises Busy where there are too many."""
        if self._streams >= self._limits.streams:
            problem = f"{self._streams} streams are open, and no more are taken"
            raise Busy(problem, hint="send several sequences by one stream, or start the server with more (streams)")
        self._streams += 1

    def end_stream(self) -> None:
        """One stream less."""
        self._streams -= 1

    def cost(self, content: bytes, raw: int = RAW_CONTENTS) -> int:
        """Bytes of memory that a request becomes at most. ``raw``: the number of its field that stays bytes.

        Raises BadRequest, TooLarge.
        """
        if len(content) < SMALL:
            return UNFOLDED * len(content)
        rest = _without_raw(content, raw)
        if rest > self._limits.json_bytes:
            problem = f"the request has {rest} bytes besides raw contents, at most {self._limits.json_bytes}"
            raise RequestTooLarge(
                problem, hint="send tensors as raw_input_contents, or start the server with more (json_bytes)"
            )
        return COPIES * (len(content) - rest) + UNFOLDED * rest


def read_as(name: str, content: bytes) -> Any:
    """A message. Raises BadRequest for what is none."""
    try:
        return message(name).FromString(content)
    except DecodeError:
        raise BadRequest(f"what came is no message of the protocol ({name})") from None


def _without_raw(content: bytes, raw: int) -> int:
    """Bytes of a message that are not in the field of that number. Raises BadRequest for what is none, TooLarge."""
    at, rest, count = 0, 0, 0
    while at < len(content):
        begun = at
        key, at = _number(content, at)
        kind = key & 7
        if kind == 2:
            length, at = _number(content, at)
            at += length
        elif kind == 0:
            _, at = _number(content, at)
        else:
            at += {1: 8, 5: 4}.get(kind, len(content))
        count += 1
        if at > len(content):
            raise BadRequest("what came is no message of the protocol")
        if count > MOST_FIELDS:
            raise RequestTooLarge(f"the request has more than {MOST_FIELDS} parts")
        rest += at - begun if key >> 3 != raw else 0
    return rest


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends. Raises BadRequest where it does not."""
    found, shift = 0, 0
    for place in range(at, min(at + 10, len(content))):
        part = content[place]
        found |= (part & 127) << shift
        if part < 128:
            return found, place + 1
        shift += 7
    raise BadRequest("what came is no message of the protocol")
