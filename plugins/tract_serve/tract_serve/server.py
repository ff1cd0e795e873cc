"""A server: both protocols in one event loop, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tract_core.errors import InputError
from tract_serve.grpc.service import grpc_server
from tract_serve.http.application import Application
from tract_serve.http.listening import Listening
from tract_serve.logs import log
from tract_serve.models.trying import end_trials
from tract_serve.routes import ROUTES
from tract_serve.serving import Serving
from tract_serve.settings import Settings

GRACE_S: Final = 30.0
"""Seconds in which requests are answered that are there when the server ends."""

FILES: Final = 1024
"""Files that are open besides clients' connections and memory: models, libraries, connections of gRPC."""

SWITCH_S: Final = 0.0005
"""Seconds after which a thread of Python lets others in: one that loads a model holds up nobody for long."""


class Server:
    """A server of the models of a repository. ``http_port``, ``grpc_port``: where it listens, once it is started."""

    def __init__(self, source: str | Path, settings: Settings | None = None) -> None:
        """``source``: a repository of models, or one model."""
        self.settings = settings or Settings()
        _check_certificate(self.settings)
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
        allow_files(self.settings.limits.connections + self.settings.limits.regions + FILES)
        try:
            asyncio.run(self.serve(started, signals=True))
        finally:
            end_trials()  # Python waits for the thread that waits for them

    def end(self) -> None:
        """Take no more requests; `serve` returns once those are answered that are there."""
        self._ends.set()

    async def serve(self, started: Callable[[Server], None] | None = None, *, signals: bool = False) -> None:
        """Serve until `end`. Raises as `run`."""
        if signals:
            self._listen_to_signals()
        http = self._http()
        grpc = await self._start_grpc()
        try:
            if http is not None:
                await http.start()
            await self._until_ended(started)
        finally:
            await asyncio.gather(self._end_http(http), self._end_grpc(grpc))
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

    def _http(self) -> Listening | None:
        settings = self.settings
        if settings.http_port is None:
            return None
        bound = _bound(settings.host, settings.http_port)
        self.http_port = bound.getsockname()[1]
        return Listening(Application(self.serving, ROUTES, owns=False), settings, bound)

    async def _end_http(self, http: Listening | None) -> None:
        if http is not None:
            await http.end(GRACE_S)

    async def _end_grpc(self, grpc: Any) -> None:
        if grpc is not None:
            await grpc.stop(GRACE_S)

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
        if sys.platform != "win32":
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


def allow_files(count: int) -> None:
    """Have this process open so many files and connections, as far as the system lets it."""
    if sys.platform == "win32":  # which has no such limit
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _check_certificate(settings: Settings) -> None:
    """Raises InputError where the certificate or its key cannot be read, or do not belong together."""
    if settings.certificate is None or settings.key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.key)
    except (OSError, ssl.SSLError) as error:
        problem = f"the certificate {settings.certificate} and the key {settings.key} cannot be used: {error}"
        raise InputError(problem, hint="both are PEM files, and belong together") from None


def _credentials(settings: Settings) -> Any:
    if settings.certificate is None or settings.key is None:
        return None
    import grpc

    key, certificate = Path(settings.key).read_bytes(), Path(settings.certificate).read_bytes()
    return grpc.ssl_server_credentials([(key, certificate)])
