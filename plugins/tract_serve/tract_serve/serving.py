"""What all protocols share: the models, what clients may ask for, and what is counted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Lock
from typing import Final

from tract_core.version import version
from tract_serve.errors import BadRequest, Busy, Forbidden, NotFound, RequestTooLarge
from tract_serve.models.protocol import ServedModel
from tract_serve.models.served import Served
from tract_serve.repository.repository import Repository
from tract_serve.sequences.places import store_of
from tract_serve.settings import Settings
from tract_serve.shared_memory import SharedMemory
from tract_serve.texts import shown

NAME: Final = "tract"

EXTENSIONS: Final = (
    "binary_tensor_data",
    "classification",
    "model_configuration",
    "model_repository",
    "parameters",
    "schedule_policy",
    "sequence",
    "statistics",
    "system_shared_memory",
    "trace",
    "logging",
)


CONTROL_BYTES: Final = 2 << 20
"""Of a request that is none for a run."""

SMALL: Final = 1 << 20
"""Bytes of a request that finds room where large ones find none any more."""


class RequestRoom:
    """Bytes of requests that are read, wait or run, and of answers; no more than the settings allow.

    The last eighth is kept for small requests. Used by any thread.
    """

    def __init__(self, most: int) -> None:
        self._most = self._left = most
        self._lock = Lock()

    @property
    def taken(self) -> int:
        """Bytes that are held."""
        return self._most - self._left

    def take(self, count: int, held: int = 0) -> None:
        """So many more. ``held``: by the same request. Raises Busy where there is no room for them now.

        Raises TooLarge where there never is.
        """
        kept = 0 if held + count <= SMALL else self._most // 8
        if held + count > self._most - kept:
            problem = f"the request takes {held + count} bytes of memory, and all together {self._most - kept} at most"
            raise RequestTooLarge(problem, hint="send less at once, or start the server with more (bodies_bytes)")
        with self._lock:
            if count <= self._left - kept:
                self._left -= count
                return
        problem = f"the requests that are open take {self.taken} bytes, and {count} more are too many"
        raise Busy(problem, hint="ask again later")

    def take_anyway(self, count: int) -> None:
        """So many more, which are there already."""
        with self._lock:
            self._left -= count

    def give_back(self, count: int) -> None:
        """So many fewer."""
        with self._lock:
            self._left += count


class Holding:
    """What one request holds of the room."""

    def __init__(self, room: RequestRoom) -> None:
        self._room = room
        self._taken = 0

    def more(self, count: int) -> None:
        """So many bytes more. Raises Busy where there is no room for them."""
        self._room.take(count, self._taken)
        self._taken += count

    def anyway(self, count: int) -> None:
        """The same for bytes that are there already: what comes later finds less room."""
        self._room.take_anyway(count)
        self._taken += count

    def release(self) -> None:
        """It holds nothing any more."""
        self._room.give_back(self._taken)
        self._taken = 0


class Serving:
    """The parts of a server. Used by the thread of one event loop."""

    def __init__(self, source: Path, settings: Settings) -> None:
        """``source``: a repository of models, or one model."""
        self.settings = settings
        self.repository = Repository(source, settings)
        self.room = RequestRoom(settings.limits.bodies_bytes)
        self.trace_rate = settings.trace_rate
        self.shared_memory = SharedMemory(settings.limits.regions, settings.limits.body_bytes)

    async def start(self) -> None:
        """Load the models. Raises TractError where there are none, or the store of states cannot be used."""
        await asyncio.to_thread(store_of, self.settings)
        await self.repository.start()

    async def close(self) -> None:
        """Return once everything is answered."""
        await self.repository.close()

    @property
    def is_ready(self) -> bool:
        """Whether the models are loaded."""
        return self.repository.is_started

    @property
    def writes_texts(self) -> bool:
        """Whether there is a model of another kind than those of tensors."""
        versions = self.repository.models.values()
        return any(not isinstance(one, Served) for models in versions for one in models.values())

    def metadata(self) -> dict[str, object]:
        """What the server says of itself."""
        return {"name": NAME, "version": version(), "extensions": list(EXTENSIONS)}

    def tensors(self, name: str, model_version: str = "") -> Served:
        """The model of that name, which takes tensors. Raises NotFound, Busy, BadRequest for one of another kind."""
        found: ServedModel = self.repository.model(name, model_version)
        if not isinstance(found, Served):
            hint = "GET /v1/models says what it is, and /v1/chat/completions and the like ask it"
            raise BadRequest("it takes texts, and no tensors", where=f"model {name!r}", hint=hint)
        return found

    def regions(self) -> SharedMemory:
        """Memory of this machine that clients have named. Raises Forbidden where they may not."""
        if not self.settings.allows_shared_memory:
            hint = "start it with --shared-memory"
            raise Forbidden("the server takes no tensors from memory that it shares with clients", hint=hint)
        return self.shared_memory

    def check_page(self, origin: str) -> None:
        """Raises Forbidden where a page in a browser asks for what changes the server, and nobody said that it may.

        ``origin``: the header of that name. Any page that somebody on this machine opens reaches the loopback address.
        """
        settings = self.settings
        if origin and settings.control is None and not {"*", origin.lower()} & {*settings.origins}:
            hint = f"start it with --origin {origin[:100]}, or with --control for all"
            raise Forbidden(f"the server is not changed by pages in browsers, as {shown(origin)}", hint=hint)

    def check_control(self) -> None:
        """Raises Forbidden where clients may not load and unload models."""
        if not self.settings.allows_control:
            raise Forbidden("the server has no models loaded and unloaded by clients", hint="start it with --control")

    def check_size(self, count: int) -> None:
        """Raises TooLarge where a request has more bytes than are taken."""
        most = self.settings.limits.body_bytes
        if count > most:
            raise RequestTooLarge(
                f"the request has {count} bytes, at most {most} are taken",
                hint="start it with --serve-limit body_bytes=...",
            )

    def absent(self, path: str) -> NotFound:
        """What is said of a path that is not there."""
        return NotFound(f"there is nothing at {path[:200]!r}", hint="GET /v2 says what there is")
