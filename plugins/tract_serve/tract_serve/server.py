"""A server: both protocols in one event loop, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import uvicorn

from tract_core.errors import InputError
from tract_serve.grpc.service import grpc_server
from tract_serve.http.application import Application
from tract_serve.http.guard import guarded
from tract_serve.logs import log
from tract_serve.serving import Serving
from tract_serve.settings import Settings

GRACE_S: Final = 30.0
"""Seconds in which requests are answered that are there when the server ends."""

SWITCH_S: Final = 0.0005
"""Seconds after which a thread of Python lets others in: one that loads a model holds up nobody for long."""


class Server:
    """A server of the models of a repository. ``http_port``, ``grpc_port``: where it listens, once it is started."""

    def __init__(self, source: str | Path, settings: Settings | None = None) -> None:
        """``source``: a repository of models, or one model."""
        self.settings = settings or Settings()
        self.serving = Serving(Path(source), self.settings)
        self.http_port: int | None = None
        self.grpc_port: int | None = None
        self._ends = asyncio.Event()

    def run(self, started: Callable[[Server], None] | None = None) -> None:
        """Serve until a signal (SIGINT, SIGTERM) comes. ``started``: called once models are loaded.

        SIGHUP has the repository looked through again. Raises TractError where the source holds no model, or a port
        is taken.
        """
        sys.setswitchinterval(SWITCH_S)
        asyncio.run(self.serve(started, signals=True))

    def end(self) -> None:
        """Take no more requests; `serve` returns once those are answered that are there."""
        self._ends.set()

    async def serve(self, started: Callable[[Server], None] | None = None, *, signals: bool = False) -> None:
        """Serve until `end`. Raises as `run`."""
        if signals:
            self._listen_to_signals()
        http, bound = self._http()
        grpc = await self._start_grpc()
        tasks = [asyncio.ensure_future(http.serve(sockets=[bound]))] if http is not None and bound is not None else []
        try:
            await self._until_ended(started)
        finally:
            if http is not None:
                http.should_exit = True
            if grpc is not None:
                await grpc.stop(GRACE_S)
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await self.serving.close()
            log("server.ended")

    async def _until_ended(self, started: Callable[[Server], None] | None) -> None:
        loading = asyncio.ensure_future(self.serving.start())
        ending = asyncio.ensure_future(self._ends.wait())
        await asyncio.wait((loading, ending), return_when=asyncio.FIRST_COMPLETED)
        if not loading.done():
            loading.cancel()
            return
        loading.result()
        log("server.ready", http_port=self.http_port, grpc_port=self.grpc_port)
        if started is not None:
            started(self)
        await ending

    def _http(self) -> tuple[uvicorn.Server | None, socket.socket | None]:
        settings, limits = self.settings, self.settings.limits
        if settings.http_port is None:
            return None, None
        bound = _bound(settings.host, settings.http_port)
        self.http_port = bound.getsockname()[1]
        config = uvicorn.Config(
            Application(self.serving, owns=False),
            http=guarded(limits),
            ws="websockets-sansio",
            ws_max_size=limits.body_bytes,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=int(limits.idle_s),
            timeout_graceful_shutdown=int(GRACE_S),
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
        )
        server = uvicorn.Server(config)
        server.capture_signals = lambda: suppress()  # pyright: ignore[reportAttributeAccessIssue]: signals are ours
        return server, bound

    async def _start_grpc(self) -> Any:
        settings = self.settings
        if settings.grpc_port is None:
            return None
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        server, ports = grpc_server(self.serving, [f"{host}:{settings.grpc_port}"], _credentials(settings))
        self.grpc_port = ports[0]
        await server.start()
        return server

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM"):
            with suppress(NotImplementedError):  # as on Windows, where Ctrl-C raises KeyboardInterrupt
                loop.add_signal_handler(getattr(signal, name), self._ends.set)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _reload(self) -> None:
        task = asyncio.ensure_future(self.serving.repository.reload())
        task.add_done_callback(lambda done: done.exception())


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises InputError where the address is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        problem = f"the address {host}:{port} cannot be listened on: {error.strerror or error}"
        raise InputError(problem, hint="name another port: --http-port") from None
    return bound


def _credentials(settings: Settings) -> Any:
    if settings.certificate is None or settings.key is None:
        return None
    import grpc

    key, certificate = Path(settings.key).read_bytes(), Path(settings.certificate).read_bytes()
    return grpc.ssl_server_credentials([(key, certificate)])
