"""Connections of clients that send too much, or too slowly, or do not take what they are answered, are closed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import httptools
import orjson
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tract_serve.settings import Limits

MOST_HEADERS: Final = 256
"""Of one request."""

MOST_PIPELINED: Final = 16
"""Requests of one connection that wait for the one before."""

LINGER_S: Final = 2.0
"""Seconds in which the rest of a request is taken that is answered already: a client may write before it reads."""

BRIEFLY_S: Final = 0.2
"""The same for connections that are too many."""

_REASONS: Final = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


_UPGRADES: Final = (b"upgrade", b"connection", b"http2-settings")
"""Headers that offer another protocol."""


class RefusedRequest(Exception):
    """Ends the reader of a connection that is refused."""


class GuardedProtocol(HttpToolsProtocol):
    """A connection by uvicorn's protocol, with limits. One clock at a time says how long its client may take.

    ``header_bytes``: of the line and the headers of a request, and of what comes between and behind the parts of its
    body. ``read_s``: in which line and headers have to come. ``write_s``: in which an answer has to be taken.
    ``idle_s``: in which something has to be asked. ``connections``: that are open; one more takes the place of one
    that asks for nothing.
    """

    cycle: RequestResponseCycle | None  # pyright: ignore[reportIncompatibleVariableOverride]: uvicorn begins with None

    def __init__(self, limits: Limits, config: Config, state: ServerState) -> None:
        super().__init__(config, state, {})
        self.limits = limits
        self._loose, self._is_loose = 0, False  # bytes since the last headers, part of a body, or end of one
        self._in_headers = self._in_body = self._is_refused = False
        self._hosts = self._count = self._counted = 0
        self._version, self._method = "", b""
        self._since = 0.0
        self._clock: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A client has come."""
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self.limits.connections and not self._takes_place():
            self._refuse(503, f"{self.limits.connections} connections are open, and no more are taken")
            self._wait(BRIEFLY_S)
            return
        self._wait(self.limits.read_s, 408)

    def _takes_place(self) -> bool:
        """Whether there is place, once the connection is closed that has asked for nothing for the longest time."""
        others = [one for one in self.connections if one is not self and not _is_leaving(one)]
        if len(others) < self.limits.connections:
            return True
        idle = [one for one in others if isinstance(one, GuardedProtocol) and one._is_idle]
        if idle:
            min(idle, key=lambda one: one._since).transport.abort()
        return bool(idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left."""
        self._stop_clocks()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._is_refused or self.transport.is_closing():
            return
        self._loose += len(data)
        self._is_loose = True
        self._unset_keepalive_if_required()
        self._read(data)
        if not self._is_loose:
            self._loose = 0
        elif self._loose > self.limits.header_bytes:
            self._refuse(431, f"the headers have more than {self.limits.header_bytes} bytes")
        is_ours = self.transport.get_protocol() is self  # and not that of a WebSocket by now
        if is_ours and self._clock is None and self.timeout_keep_alive_task is None and self._is_idle:
            self._wait(self.limits.idle_s)

    def _read(self, data: bytes) -> None:
        """As uvicorn does, but for upgrades that are not taken: the request counts all the same."""
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserError:
                self.send_400_response("")
            except httptools.HttpParserUpgrade as upgrade:
                if not self._should_upgrade():
                    self.parser = httptools.HttpRequestParser(self)
                    data = self._without_upgrade() + data[upgrade.args[0] :]
                    continue
                self.handle_websocket_upgrade()
            return

    def _without_upgrade(self) -> bytes:
        """The head of the request that comes, without the upgrade that it offers."""
        lines = [b"%s %s HTTP/%s" % (self._method, self.url, self._version.encode())]
        lines += [b"%s: %s" % header for header in self.headers if header[0] not in _UPGRADES]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def on_message_begin(self) -> None:
        """The first byte of a request has come."""
        super().on_message_begin()
        self._in_headers, self._hosts = True, 0
        self._count += 1
        self._wait(self.limits.read_s, 408)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come, or what may stand behind a body, which nothing reads."""
        if not self._in_headers:
            return
        if len(self.headers) >= MOST_HEADERS:
            self._stop(431, f"there are more than {MOST_HEADERS} headers")
        super().on_header(name, value)
        self._hosts += self.headers[-1][0] == b"host"

    def on_headers_complete(self) -> None:
        """The headers are whole; a body may follow."""
        self._is_loose, self._in_headers, self._in_body = False, False, True
        self._wait(None)
        self._version, self._method = self._told()
        if self._method == b"CONNECT":
            self._stop(400, "there is no way from here to elsewhere")
        if self._is_offered:
            return
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self.limits.header_bytes:
            self._stop(431, f"the headers have more than {self.limits.header_bytes} bytes")
        version = self._version
        if version not in ("1.0", "1.1"):
            self._stop(400, f"what came is no request of HTTP/1.1, but of {version}")
        if self._hosts != 1 and (self._hosts or version == "1.1"):
            self._stop(400, f"there are {self._hosts} headers 'host', wanted one")
        if len(self.pipeline) >= MOST_PIPELINED:
            self._stop(400, f"more than {MOST_PIPELINED} requests wait for the one before")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body has come."""
        self._is_loose = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole; another may follow."""
        self._is_loose = self._in_body = False
        self._wait(None)
        if not self._is_offered:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request is answered: the rest of it may be on its way, and the answer not taken yet."""
        super().on_response_complete()
        self._since = self.loop.time()
        if self._in_body and not self.pipeline:
            self._wait(min(self.limits.read_s, LINGER_S))
        if self.transport.get_write_buffer_size():
            self._wait_for_writing()

    def pause_writing(self) -> None:
        """The client takes its answer more slowly than it is made."""
        super().pause_writing()
        self._wait_for_writing()

    def resume_writing(self) -> None:
        """It has taken most of it."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._writing = _stopped(self._writing)

    def handle_websocket_upgrade(self) -> None:
        """The connection is another protocol's from now on."""
        self._stop_clocks()
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        if not self._is_refused:
            self._refuse(400, "what came is no request of HTTP/1.1")

    def shutdown(self) -> None:
        """The server ends."""
        super().shutdown()
        self._wait_for_writing()

    def timeout_keep_alive_handler(self) -> None:
        """The connection was silent for too long."""
        self.transport.close()
        self._wait_for_writing()

    def _stop(self, status: int, problem: str) -> None:
        self._refuse(status, problem)
        raise RefusedRequest(problem)

    def _refuse(self, status: int, problem: str) -> None:
        """Say why, and close. Nothing is said where an answer is under way: it would be taken for a part of it."""
        cycle, self._is_refused = self.cycle, True
        is_told = not self.pipeline and (cycle is None or cycle.response_complete or not cycle.response_started)
        if cycle is not None and not cycle.response_complete:  # whoever answers it is told that nobody listens
            cycle.disconnected = True
            cycle.message_event.set()
        if not is_told:
            self.transport.close()
            self._wait_for_writing()
            return
        text = orjson.dumps({"error": problem})
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: application/json\r\n"
        head += f"connection: close\r\ncontent-length: {len(text)}\r\n\r\n"
        self.transport.write(head.encode() + text)
        if self.transport.can_write_eof():  # closed at once, the system would not let the client read what is written
            self.transport.write_eof()
        self._wait(min(self.limits.read_s, LINGER_S))

    def _wait(self, seconds: float | None, status: int = 0) -> None:
        """Close the connection in so many seconds, unless something else comes first."""
        self._clock = _stopped(self._clock)
        if seconds is not None:
            self._clock = self.loop.call_later(seconds, self._late, status)

    def _late(self, status: int) -> None:
        if status and self._in_headers:
            self._refuse(status, f"the request did not come within {self.limits.read_s:g} seconds")
            return
        self.transport.close()
        self._wait_for_writing()

    def _told(self) -> tuple[str, bytes]:
        """The version of HTTP, and the method, of the request that comes."""
        parser: Any = self.parser
        return parser.get_http_version(), parser.get_method()

    @property
    def _is_offered(self) -> bool:
        """Whether the request that comes offers to go on with another protocol, which is not taken.

        Its parser leaves the body out then, so that another one reads it (`_without_upgrade`).
        """
        parser: Any = self.parser
        return parser.should_upgrade() and not self._should_upgrade()

    def _should_upgrade(self) -> bool:
        return self._method == b"GET" and super()._should_upgrade()

    @property
    def _is_idle(self) -> bool:
        """Whether the client has asked for nothing that is not answered."""
        return not (self._in_headers or self._in_body) and (self.cycle is None or self.cycle.response_complete)

    def _wait_for_writing(self) -> None:
        """End the connection in ``write_s``, unless the client takes what is sent before."""
        if self._writing is None:
            self._counted = self._count
            self._writing = self.loop.call_later(self.limits.write_s, self._end)

    def _end(self) -> None:
        self._writing = None
        is_taken = not self.transport.get_write_buffer_size() and not self.transport.is_closing()
        if not is_taken and (self._count == self._counted or self.transport.is_closing()):
            self.transport.abort()
        elif not is_taken:  # what waits now is a later answer
            self._wait_for_writing()

    def _stop_clocks(self) -> None:
        self._clock, self._writing = _stopped(self._clock), _stopped(self._writing)


def _is_leaving(connection: Any) -> bool:
    """Whether a connection was refused, or is being closed."""
    return getattr(connection, "_is_refused", False) or connection.transport.is_closing()


def _stopped(clock: asyncio.TimerHandle | None) -> None:
    if clock is not None:
        clock.cancel()


def quiet_uvicorn() -> None:
    """Have uvicorn log its own failures alone, and not what clients do."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
