"""What a server is told when it starts: addresses, limits, and what clients may do."""

from __future__ import annotations

from dataclasses import field, fields
from numbers import Real
from typing import Any

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_core.limits import DEFAULT_LIMITS, LoadLimits

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Addresses that only this machine reaches."""


@frozen
class Limits:
    """What clients may ask for. All are looked at before memory is taken.

    ``body_bytes``: of one request over HTTP, as it comes and unpacked; ``json_bytes``: of the JSON in it;
    ``grpc_bytes``: of one message of gRPC, which is received whole before it is looked at; ``header_bytes``: of the
    line and the headers of one request. ``bodies_bytes``: of all requests that are read, wait or run, with what they
    become in memory, and of answers that are not taken yet. ``read_s``, ``write_s``: seconds for a client to send one
    request, and to take one answer. ``idle_s``: seconds that an open connection or stream may be silent.
    ``connections``: at the same time, of each protocol. ``streams``: of gRPC, at the same time; each may hold a
    message. ``waiting``: requests that wait for one model. ``sequences``, ``sequence_idle_s``: of one model, how many
    are kept, and for how many seconds after their last request; ``sequence_bytes``: of the state of one. ``stored``,
    ``stored_bytes``, ``stored_s``: of the store of such states, how many, with how many bytes in all, and for how many
    seconds. ``regions``: of shared memory. ``sent_bytes``: of files of models that clients have sent, in all.
    ``response_bytes``: of one answer. ``load_s``: seconds in which a model must be loaded and prepared. ``messages``:
    of a conversation. ``choices``: answers to one prompt. ``answer_s``: seconds in which an answer of a model that
    writes must be whole. ``waiting_of_one``: requests to such a model that one client may have there.
    """

    body_bytes: int = 256 << 20
    bodies_bytes: int = 1 << 30
    json_bytes: int = 32 << 20
    grpc_bytes: int = 64 << 20
    header_bytes: int = 64 << 10
    read_s: float = 30.0
    write_s: float = 60.0
    idle_s: float = 75.0
    connections: int = 1024
    streams: int = 64
    waiting: int = 1024
    sequences: int = 1024
    sequence_idle_s: float = 60.0
    sequence_bytes: int = 64 << 20
    stored: int = 100_000
    stored_bytes: int = 16 << 30
    stored_s: float = 86400.0
    regions: int = 1024
    sent_bytes: int = 1 << 30
    response_bytes: int = 256 << 20
    load_s: float = 600.0
    messages: int = 4096
    choices: int = 16
    answer_s: float = 600.0
    waiting_of_one: int = 256

    def __post_init__(self) -> None:
        for one in fields(self):
            value: Any = getattr(self, one.name)
            if isinstance(value, bool) or not isinstance(value, Real) or not value > 0:  # pyright: ignore[reportOperatorIssue]: a Real compares
                raise InputError(f"Limits: {one.name} is {value!r}, wanted a number above 0")


@frozen
class Settings:
    """What a server is told. ``http_port``, ``grpc_port``: 0 for any that is free, ``None`` for none.

    ``host``: the address that it listens on. ``runtime``: for models that do not say which, with its options.
    ``threads``: of each model that does not say how many; ``None`` for as many as the runtime takes. ``control``:
    whether clients may load and unload models; ``shared_memory``: whether they may name memory of this machine;
    ``None``: if only this machine reaches the server. ``watch_s``: seconds between looks at the repository's files;
    0 for never. ``tokens``: with one of which each request must come, if there are any. ``certificate``, ``key``:
    files for TLS. ``store``, ``store_key``: where states of sequences are kept, and the file with the key that
    they are signed with; ``store_every``: after how many requests of a sequence its state is kept; 0 for when it
    has been idle for a moment. ``origins``: of which web pages may open a WebSocket, besides those that come from
    this server; ``*`` for all. ``limits``: what clients may ask for; ``model_limits``: what files of models may.
    ``strict``: end with an error where a model cannot be loaded at the start. ``trace_rate``: of how many requests
    one is traced, where OpenTelemetry is installed; 0 for none. ``preload``: whether models are tried in a process
    of their own before they are taken. ``name``: of the model, where the source is one and no repository;
    ``None`` for that of its file or folder.
    """

    host: str = "127.0.0.1"
    http_port: int | None = 8000
    grpc_port: int | None = 8001
    runtime: str = "default"
    threads: int | None = None
    control: bool | None = None
    shared_memory: bool | None = None
    watch_s: float = 2.0
    tokens: tuple[str, ...] = ()
    certificate: str | None = None
    key: str | None = None
    store: str | None = None
    store_key: str | None = None
    store_every: int = 0
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    model_limits: LoadLimits = DEFAULT_LIMITS
    strict: bool = False
    trace_rate: int = 0
    preload: bool = True
    name: str | None = None

    def __post_init__(self) -> None:
        if not self.host:  # which would be all addresses for some, and this machine's own for others
            raise InputError("Settings: host is empty", hint="0.0.0.0 for all addresses, 127.0.0.1 for this machine")
        if (self.certificate is None) != (self.key is None):
            raise InputError("Settings: certificate and key go together")

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the server."""
        return self.host in LOOPBACK

    @property
    def allows_control(self) -> bool:
        """Whether clients may load and unload models."""
        return self.is_local if self.control is None else self.control

    @property
    def allows_shared_memory(self) -> bool:
        """Whether clients may have tensors read from and written to memory of this machine."""
        return self.is_local if self.shared_memory is None else self.shared_memory
