"""The application: routes, and what is told where something goes wrong."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote, unquote

from tract_core.errors import TractError
from tract_serve.errors import BadRequest, WrongMethod, error_object, status_of, text_of
from tract_serve.http.exchange import JSON, PIECE, Answer, HttpRequest, Message, Receive, Send
from tract_serve.logs import LOGGER
from tract_serve.serving import Serving
from tract_serve.tokens import check_token

Handler: TypeAlias = Callable[[HttpRequest], Awaitable[Answer]]

Routes: TypeAlias = Mapping[tuple[str, str], Handler]
"""What answers a method of HTTP and a path, with ``{}`` for each part that may be any."""

OPEN: Final = ("/v2/health/live", "/v2/health/ready")
"""Paths that say no more than that the server is there: whoever watches over it needs no token for them."""

PACKED_FROM: Final = 1024
"""Bytes of an answer from which on it is compressed for clients that ask for that."""


class Application:
    """An ASGI application that answers for the models of a `Serving`.

    ``serving`` is started and closed by the ``lifespan`` of ASGI, unless whoever made it does that.
    """

    def __init__(self, serving: Serving, routes: Routes, *, owns: bool = True) -> None:
        """``routes``: what answers which path. ``owns``: whether it starts and closes the serving."""
        self.serving, self._owns = serving, owns
        self._routes = _by_slashes(routes)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One connection of ASGI: a request, a WebSocket, or the life of the server."""
        kind = scope["type"]
        if kind == "http":
            await self._answer(scope, receive, send)
        elif kind == "websocket":
            from tract_serve.http.websocket import answer

            await answer(self.serving, scope, receive, send)
        elif kind == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            starts = message["type"] == "lifespan.startup"
            try:
                if self._owns:
                    await (self.serving.start() if starts else self.serving.close())
                await send({"type": f"{message['type']}.complete"})
            except TractError as error:
                await send({"type": f"{message['type']}.failed", "message": str(error)})
                return
            if not starts:
                return

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        path = _path(scope)
        headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
        request = HttpRequest(self.serving, scope["method"], path, scope.get("query_string", b""), headers, receive)
        request.client = (scope.get("client") or ("",))[0]
        try:
            if path not in OPEN:
                check_token(self.serving.settings, request.header(b"authorization"))
            handler = self._handler(request)
            answer = await handler(request)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # every request has an answer
            if not isinstance(error, TractError):
                LOGGER.exception("request.failed")
            answer = refused(error, path)
        try:
            await _send(answer, request, send)
        finally:
            request.holding.release()

    def _handler(self, request: HttpRequest) -> Handler:
        """What answers a request. Raises NotFound, WrongMethod."""
        there: list[str] = []
        asked = "GET" if request.method == "HEAD" else request.method
        for method, pattern, handler in self._routes.get(request.path.count("/"), ()):
            found = pattern.fullmatch(request.path)
            if found is not None:
                if method == asked:
                    request.parts = [unquote(part) for part in found.groups()]
                    return handler
                there.append(method)
        if there:
            raise WrongMethod(f"{request.path[:200]!r} is asked by {', '.join(there)}, not by {asked[:20]}", there)
        raise self.serving.absent(request.path)


def _path(scope: Message) -> str:
    """The path as it was asked for. A route's parts are decoded once it is found: a name may hold a slash as %2F."""
    path = cast("str", scope["path"])
    raw = cast("bytes", scope.get("raw_path") or b"").decode("latin-1")
    if raw == path or unquote(raw) == path:
        return raw
    return quote(path)  # of a server that says nothing else, or has taken its own begin off


def refused(error: BaseException, path: str) -> Answer:
    """What a client is told, as the protocol of the path has it."""
    status, text = status_of(error), text_of(error)
    headers = [(b"retry-after", b"1")] if status in (429, 503) else []
    if status == 401:
        headers = [(b"www-authenticate", b"Bearer")]
    if isinstance(error, WrongMethod):
        headers = [(b"allow", ", ".join(error.allowed).encode())]
    if path.startswith("/v1/"):
        return Answer.of_json({"error": error_object(error)}, status, headers)
    return Answer.of_json({"error": text}, status, headers)


async def _send(answer: Answer, request: HttpRequest, send: Send) -> None:
    """Send an answer, whole or as it comes; a client that does not take it is left."""
    if isinstance(answer.body, AsyncIterator):
        await _send_parts(answer, answer.body, request, send)
        return
    limits = request.serving.settings.limits
    content: Any = _joined(answer.body)
    if len(content) > limits.response_bytes:
        problem = f"the answer has {len(content)} bytes, at most {limits.response_bytes} are sent"
        answer = refused(BadRequest(problem, hint="ask for fewer outputs, or for less at once"), request.path)
        content = _joined(answer.body)
    request.holding.anyway(len(content))
    headers = [(b"content-type", answer.kind), *answer.headers]
    packing = _packing(request.header(b"accept-encoding"), answer.kind) if answer.packs else ""
    if packing and len(content) >= PACKED_FROM:
        content = await asyncio.get_running_loop().run_in_executor(None, _packed, content, packing)
        headers.append((b"content-encoding", packing.encode()))
    headers.append((b"content-length", str(len(content)).encode()))
    with suppress(TimeoutError):
        async with asyncio.timeout(limits.write_s + 1):  # where the connection has a clock of its own, that ends first
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            for begin in range(0, len(content) - PIECE, PIECE):
                part = content[begin : begin + PIECE]
                await send({"type": "http.response.body", "body": part, "more_body": True})
            last = content if len(content) <= PIECE else content[(len(content) - 1) // PIECE * PIECE :]
            await send({"type": "http.response.body", "body": last})


def _joined(body: Any) -> Any:
    """The parts of a body as one."""
    return body[0] if len(body) == 1 else b"".join(body)


async def _send_parts(answer: Answer, parts: AsyncIterator[bytes], request: HttpRequest, send: Send) -> None:
    """Send parts as they come; stop making them when the client leaves, or does not take one."""
    headers = [(b"content-type", answer.kind), (b"cache-control", b"no-cache"), *answer.headers]
    limit = request.serving.settings.limits.write_s
    left = asyncio.ensure_future(request.left())
    sending = asyncio.ensure_future(_send_each(answer.status, headers, parts, limit, send))
    try:
        await asyncio.wait((sending, left), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        left.cancel()
        sending.cancel()
        await asyncio.wait((sending,))
        close = getattr(parts, "aclose", None)
        if close is not None:
            await close()


async def _send_each(
    status: int, headers: list[tuple[bytes, bytes]], parts: AsyncIterator[bytes], limit: float, send: Send
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    async for part in parts:
        try:
            async with asyncio.timeout(limit):
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except TimeoutError:
            return
    await send({"type": "http.response.body", "body": b""})


def _packing(accepted: str, kind: bytes) -> str:
    """How an answer is compressed for a client: by the first way that both know; not at all unless it asks.

    Tensors as bytes hardly become smaller: they are compressed for who names one way, and not for who takes any.
    """
    ways = accepted.lower().split(",")
    if kind != JSON and len(ways) > 1:
        return ""
    for one in ways:
        name, _, quality = one.strip().partition(";")
        if name.strip() in ("gzip", "deflate") and quality.replace(" ", "") not in ("q=0", "q=0.0"):
            return name.strip()
    return ""


def _packed(content: Any, packing: str) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31 if packing == "gzip" else 15)
    return packer.compress(content) + packer.flush()


def _by_slashes(routes: Routes) -> Mapping[int, list[tuple[str, re.Pattern[str], Handler]]]:
    """Routes by the number of slashes in their path, which most requests are told apart by."""
    found: dict[int, list[tuple[str, re.Pattern[str], Handler]]] = {}
    for (method, path), handler in routes.items():
        pattern = re.compile(re.escape(path).replace(r"\{\}", "([^/]+)"))
        found.setdefault(path.count("/"), []).append((method, pattern, handler))
    return found
