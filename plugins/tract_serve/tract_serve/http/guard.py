"""Connections whose clients send too much in front of a request, or take too long for it, are closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tract_serve.settings import Limits


def guarded(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol of uvicorn, with the limits on headers and on the time that they take."""

    class GuardedProtocol(HttpToolsProtocol):
        """A connection. The line and the headers of a request have to come within ``read_s``."""

        _headers_size = 0
        _in_headers = True
        _clock: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """A client has come."""
            super().connection_made(transport)
            self._wait(limits.read_s)

        def data_received(self, data: bytes) -> None:
            """Bytes have come."""
            if self._in_headers:
                if not self._headers_size:
                    self._wait(limits.read_s)
                self._headers_size += len(data)
                before = self._headers_size
                super().data_received(data)
                if self._in_headers and before > limits.header_bytes:
                    self._refuse()
                return
            super().data_received(data)

        def on_headers_complete(self) -> None:
            """The headers are whole; a body may follow."""
            self._in_headers, self._headers_size = False, 0
            self._wait(None)
            if sum(len(name) + len(value) for name, value in self.headers) > limits.header_bytes:
                self._refuse()
                return
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            """The request is whole; another may follow."""
            self._in_headers = True
            super().on_message_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            """The client has left."""
            self._wait(None)
            super().connection_lost(exc)

        def _refuse(self) -> None:
            """Say that it is too much, and close."""
            text = f'{{"error":"the headers have more than {limits.header_bytes} bytes"}}'.encode()
            head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
            self.transport.write(head + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(text) + text)
            self.transport.close()

        def _wait(self, seconds: float | None) -> None:
            """Close the connection in so many seconds, unless something else comes first."""
            if self._clock is not None:
                self._clock.cancel()
            self._clock = None if seconds is None else self.loop.call_later(seconds, self.transport.close)

    return GuardedProtocol
