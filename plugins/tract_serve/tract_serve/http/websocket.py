"""WebSockets: a signal as it comes, and what the model makes of it, in one connection.

``/v2/models/{}/stream``: the first message of the client is JSON, of which everything may be left out; then come its
frames, and ``{"end": true}``. The server answers with JSON of what it takes, with frames, and with JSON of how much
there was in all. What goes wrong is told as ``{"error": ...}``, and the connection is closed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from secrets import token_hex
from typing import Any, Final, cast
from urllib.parse import parse_qs, unquote, urlsplit

import orjson
from uvicorn.protocols.utils import ClientDisconnected

from tract_core.errors import TractError
from tract_serve.errors import BadRequest, Forbidden, TooSlow, status_of, text_of
from tract_serve.fields import parameters_of
from tract_serve.http.exchange import Message, Receive, Send
from tract_serve.http.frames import Frames, frames_of
from tract_serve.logs import LOGGER, log
from tract_serve.models.served import Served
from tract_serve.sequences.asked import AskedTurn, asked_of
from tract_serve.sequences.sequenced import Sequenced
from tract_serve.serving import Serving
from tract_serve.settings import LOOPBACK, Settings
from tract_serve.tokens import check_token

_PATH: Final = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?/stream")

_CLOSED: Final[dict[int, int]] = {400: 1007, 404: 1008, 408: 1008, 413: 1009, 503: 1013, 504: 1013}
"""By which code a WebSocket is closed (RFC 6455, 7.4.1, and IANA's list), by the status of what went wrong."""

_INSIDE: Final = 1011
_REASON: Final = 120
"""Bytes of the text that comes with a close."""


async def answer(serving: Serving, scope: Message, receive: Receive, send: Send) -> None:
    """One WebSocket, until its end."""
    await receive()  # that it is asked for
    headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
    try:
        match = _PATH.fullmatch(_path_of(scope))
        if match is None:
            raise serving.absent(scope["path"])
        check_origin(serving.settings, headers)
        token = _token(serving.settings, headers, scope.get("query_string", b""))
        name, version = (unquote(part) for part in match.groups(""))
    except TractError as error:
        await _refuse(send, error)
        return
    await send({"type": "websocket.accept"})
    with suppress(ClientDisconnected):
        await _Connection(serving, name, version, receive, send).serve(is_known=token)


def check_origin(settings: Settings, headers: Mapping[bytes, bytes]) -> None:
    """Raises Forbidden where a web page asks that came from elsewhere: browsers say so, and let it ask.

    Where only this machine reaches the server, its name has to be one of this machine, too: else a page could come from
    a name that was this machine's address a moment later.
    """
    origin, host = (headers.get(name, b"").decode("latin-1").lower() for name in (b"origin", b"host"))
    if not origin or "*" in settings.origins or origin in settings.origins:
        return
    is_here = not settings.is_local or (urlsplit(f"//{host}").hostname or "") in LOOPBACK
    if urlsplit(origin).netloc != host or not host or not is_here:
        raise Forbidden(
            f"pages of {origin[:100]!r} may not open a WebSocket here", hint=f"start the server with --origin {origin}"
        )


def _token(settings: Settings, headers: Mapping[bytes, bytes], query: bytes) -> bool:
    """Whether the client has shown that it may ask; else its first message has to. Raises Unauthorised."""
    shown = headers.get(b"authorization", b"").decode("latin-1")
    asked = parse_qs(query.decode("latin-1"), max_num_fields=16).get("token", []) if len(query) < 1 << 12 else []
    if not shown and asked:
        shown = f"Bearer {asked[0]}"
    if not settings.tokens or shown:
        check_token(settings, shown)
        return True
    return False


def _path_of(scope: Message) -> str:
    """The path as it was asked for: a name may hold a slash as %2F."""
    raw = cast("bytes", scope.get("raw_path") or b"").decode("latin-1")
    return raw if unquote(raw) == scope["path"] else cast("str", scope["path"])


async def _refuse(send: Send, error: TractError) -> None:
    """Answer in the place of a WebSocket, as other requests are."""
    body = orjson.dumps({"error": text_of(error)})
    headers = [(b"content-type", b"application/json")]
    start = {"type": "websocket.http.response.start", "status": status_of(error), "headers": headers}
    with suppress(ClientDisconnected):
        await send(start)
        await send({"type": "websocket.http.response.body", "body": body})


class _Gone(Exception):
    """The client has left."""


class _Connection:
    """One WebSocket that was accepted."""

    def __init__(self, serving: Serving, name: str, version: str, receive: Receive, send: Send) -> None:
        self._serving, self._name, self._version = serving, name, version
        self._receive, self._send = receive, send
        self._limits = serving.settings.limits
        self._parameters: dict[str, Any] = {}
        self._is_ours = False
        self._came = self._went = 0

    async def serve(self, *, is_known: bool) -> None:
        """Until it ends. ``is_known``: whether the client has shown a token, if there are any."""
        try:
            frames = await self._greeted(is_known=is_known)
            await self._go_on(frames)
        except (_Gone, ClientDisconnected):
            pass
        except asyncio.CancelledError:
            raise
        except Exception as error:  # every client is told
            if not isinstance(error, TractError):
                LOGGER.exception("stream.failed")
            await self._close_with(error)
        finally:
            await self._leave()

    async def _greeted(self, *, is_known: bool) -> Frames:
        """The first message, and the answer to it."""
        first = await self._next(self._limits.read_s)
        hello = _object(first)
        if not is_known:
            check_token(self._serving.settings, f"Bearer {hello.get('token', '')}")
        given = parameters_of(hello)
        served = self._serving.tensors(self._name, self._version)
        frames = frames_of(served, self._name, self._version, hello)
        self._parameters = self._named(served, given)
        told = {"model_name": served.name, "model_version": served.version, "parameters": self._parameters}
        await self._say({**told, **frames.told()})
        log("stream.begun", model=served.name)
        return frames

    def _named(self, served: Served, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of the requests: of a sequence of its own, unless the client names one."""
        if not isinstance(served, Sequenced):
            return dict(given)
        asked = asked_of(given)  # which refuses what is wrong
        self._is_ours = asked.id is None
        found = {"sequence_id": f"stream {token_hex(8)}" if asked.id is None else asked.id}
        return {**{name: value for name, value in given.items() if name != "sequence_end"}, **found}

    async def _go_on(self, frames: Frames) -> None:
        """Frames in, frames out, one at a time: what comes meanwhile waits in the connection."""
        once = {"sequence_start": self._parameters.pop("sequence_start", True)} if self._is_sequence else {}
        while True:
            message = await self._next(self._limits.idle_s)
            if isinstance(message, str):
                if _object(message).get("end") is not True:
                    raise BadRequest('wanted {"end": true}, or frames of bytes')
                await self._end(frames, has_begun=not once)
                return
            found = await self._answered(frames, message, {**self._parameters, **once})
            once, self._came = {}, self._came + len(message)
            if found:
                await self._give(found)

    async def _answered(self, frames: Frames, message: bytes, parameters: Mapping[str, Any]) -> bytes:
        """What comes back for a frame, for which there is to be room."""
        room = self._serving.room
        room.take(len(message))
        try:
            return await frames.answered(self._serving, message, parameters)
        finally:
            room.give_back(len(message))

    async def _end(self, frames: Frames, *, has_begun: bool) -> None:
        """All that is still to come, and how much there was; then the end."""
        if has_begun and self._is_sequence:
            served = self._serving.tensors(self._name, self._version)
            if isinstance(served, Sequenced):
                rest = frames.of_outputs(await served.finish(self._asked))
                if rest:
                    await self._give(rest)
        await self._say({"end": True, "received_bytes": self._came, "sent_bytes": self._went})
        await self._put({"type": "websocket.close", "code": 1000})
        log("stream.ended", model=self._name, received=self._came, sent=self._went)

    async def _leave(self) -> None:
        """What nobody else can go on with is left."""
        if self._is_ours and self._is_sequence:
            with suppress(TractError):
                served = self._serving.tensors(self._name, self._version)
                if isinstance(served, Sequenced):
                    await served.leave(self._asked)

    @property
    def _is_sequence(self) -> bool:
        return "sequence_id" in self._parameters

    @property
    def _asked(self) -> AskedTurn:
        return asked_of({"sequence_id": self._parameters["sequence_id"]})

    async def _next(self, patience: float) -> bytes | str:
        """The next message. Raises _Gone, and TooSlow where none comes for so many seconds."""
        try:
            async with asyncio.timeout(patience):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow(f"nothing came for {patience:g} seconds", hint="--serve-limit idle_s=...") from None
        if message["type"] != "websocket.receive":
            raise _Gone
        found = message.get("bytes")
        return cast("bytes | str", message["text"] if found is None else found)

    async def _give(self, content: bytes) -> None:
        self._went += len(content)
        await self._put({"type": "websocket.send", "bytes": content})

    async def _say(self, told: Mapping[str, Any]) -> None:
        await self._put({"type": "websocket.send", "text": orjson.dumps(told).decode()})

    async def _put(self, message: Message) -> None:
        """Send a message. Raises _Gone where the client does not take it."""
        try:
            async with asyncio.timeout(self._limits.write_s):
                await self._send(message)
        except TimeoutError:
            raise _Gone from None

    async def _close_with(self, error: Exception) -> None:
        """Say what went wrong, and close."""
        status, text = status_of(error), text_of(error)
        code = _CLOSED.get(status, 1008 if status < 500 else _INSIDE)
        with suppress(_Gone, ClientDisconnected):
            await self._say({"error": text, "status": status})
            reason = text.encode()[:_REASON].decode(errors="ignore").splitlines()[:1]
            await self._put({"type": "websocket.close", "code": code, "reason": "".join(reason)})


def _object(message: bytes | str) -> Mapping[str, Any]:
    """A message of JSON. Raises BadRequest for any other."""
    most = 1 << 16
    if isinstance(message, bytes):
        raise BadRequest("the first message is of bytes, wanted JSON", hint="{} is enough")
    try:
        found = orjson.loads(message) if len(message) <= most else None
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise BadRequest(f"a message of text is no object of JSON, or has more than {most} characters")
    return cast("Mapping[str, Any]", found)
