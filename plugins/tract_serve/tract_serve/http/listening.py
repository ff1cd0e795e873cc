"""The part of a server that speaks HTTP: it takes connections, and ends once all are answered."""

from __future__ import annotations

import asyncio
import socket
import ssl
from email.utils import formatdate
from typing import Any, Final

import uvicorn
from uvicorn.server import ServerState

from tract_serve.http.guard import GuardedProtocol, quiet_uvicorn
from tract_serve.settings import Settings

BACKLOG: Final = 2048
"""Connections that wait to be taken."""


class Listening:
    """Connections for an ASGI application, each by uvicorn's protocols."""

    def __init__(self, application: Any, settings: Settings, bound: socket.socket) -> None:
        """``bound``: the socket that it listens on."""
        limits = settings.limits
        self._settings, self._bound, self._state = settings, bound, ServerState()
        self._server: asyncio.Server | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._config = uvicorn.Config(
            application,
            http=GuardedProtocol,
            ws="websockets-sansio",
            ws_max_size=limits.body_bytes,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=limits.idle_s,  # pyright: ignore[reportArgumentType]: which need not be whole
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
        )

    async def start(self) -> None:
        """Take connections."""
        quiet_uvicorn()
        self._config.load()
        secured: ssl.SSLContext | None = self._config.ssl
        patience = None if secured is None else self._settings.limits.read_s
        self._server = await asyncio.get_running_loop().create_server(
            self._connection, sock=self._bound, ssl=secured, backlog=BACKLOG, ssl_handshake_timeout=patience
        )
        self._tell_time()

    async def end(self, seconds: float) -> None:
        """Take no more connections, and return once all requests are answered, after so many seconds at the latest."""
        if self._server is not None:
            self._server.close()
        if self._clock is not None:
            self._clock.cancel()
        for one in [*self._state.connections]:
            one.shutdown()
        until = asyncio.get_running_loop().time() + seconds
        while (self._state.connections or self._state.tasks) and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.02)
        for task in [*self._state.tasks]:
            task.cancel()
        for one in [*self._state.connections]:
            one.transport.abort()

    def _connection(self) -> asyncio.Protocol:
        return GuardedProtocol(self._settings.limits, self._config, self._state)

    def _tell_time(self) -> None:
        """Have answers say when they were made, to the second."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        self._clock = asyncio.get_running_loop().call_later(1.0, self._tell_time)
