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

    ``body_bytes``: of one request, as it comes and unpacked. ``bodies_bytes``: of all requests that are read, wait or
    run. ``json_bytes``: of the JSON of one, which takes 20 times as much once it is read. ``header_bytes``: of the line and the headers of one request. ``read_s``, ``write_s``: seconds for a client to
    send one request, and to take one answer. ``idle_s``: seconds that an open connection may be silent. ``connections``:
    at the same time. ``waiting``: requests that wait for one model. ``sequences``, ``sequence_idle_s``: of one model,
    how many are kept, and for how many seconds after their last request. ``regions``: of shared memory.
    ``response_bytes``: of one answer. ``load_s``: seconds in which a model must be loaded and prepared.
    """

    body_bytes: int = 256 << 20
    bodies_bytes: int = 1 << 30
    json_bytes: int = 32 << 20
    header_bytes: int = 64 << 10
    read_s: float = 30.0
    write_s: float = 60.0
    idle_s: float = 60.0
    connections: int = 1024
    waiting: int = 1024
    sequences: int = 1024
    sequence_idle_s: float = 60.0
    regions: int = 1024
    response_bytes: int = 1 << 30
    load_s: float = 600.0

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
    they are signed with. ``limits``: what clients may ask for; ``model_limits``: what files of models may.
    ``strict``: end with an error where a model cannot be loaded at the start. ``trace_rate``: of how many requests
    one is traced, where OpenTelemetry is installed; 0 for none. ``preload``: whether models are tried in a process
    of their own before they are taken.
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
    limits: Limits = field(default_factory=Limits)
    model_limits: LoadLimits = DEFAULT_LIMITS
    strict: bool = False
    trace_rate: int = 0
    preload: bool = True

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
