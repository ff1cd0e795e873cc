"""What all protocols share: the models, what clients may ask for, and what is counted."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tract_core.version import version
from tract_serve.errors import BadRequest, Busy, Forbidden, NotFound, TooLarge
from tract_serve.models.kinds import Model
from tract_serve.models.served import Served
from tract_serve.repository.repository import Repository
from tract_serve.settings import Settings
from tract_serve.shared_memory import SharedMemory

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


class Room:
    """Bytes of requests that are read, wait or run; no more than the settings allow."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def take(self, count: int) -> None:
        """So many more. Raises Busy where there is no room for them."""
        if count > self._left:
            problem = f"the requests that are open take {self._most - self._left} bytes, and {count} more are too many"
            raise Busy(problem, hint="ask again later")
        self._left -= count

    def give_back(self, count: int) -> None:
        """So many fewer."""
        self._left += count

    @contextmanager
    def of(self, count: int) -> Generator[None]:
        """Inside, there is room for so many."""
        self.take(count)
        try:
            yield
        finally:
            self.give_back(count)


class Serving:
    """The parts of a server. Used by the thread of one event loop."""

    def __init__(self, source: Path, settings: Settings) -> None:
        """``source``: a repository of models, or one model."""
        self.settings = settings
        self.repository = Repository(source, settings)
        self.room = Room(settings.limits.bodies_bytes)
        self.trace_rate = settings.trace_rate
        self.shared_memory = SharedMemory(settings.limits.regions, settings.limits.body_bytes)

    async def start(self) -> None:
        """Load the models. Raises TractError where there are none."""
        await self.repository.start()

    async def close(self) -> None:
        """Return once everything is answered."""
        await self.repository.close()

    @property
    def is_ready(self) -> bool:
        """Whether the models are loaded."""
        return self.repository.is_started

    def metadata(self) -> dict[str, object]:
        """What the server says of itself."""
        return {"name": NAME, "version": version(), "extensions": list(EXTENSIONS)}

    def tensors(self, name: str, model_version: str = "") -> Served:
        """The model of that name, which takes tensors. Raises NotFound, Busy, and BadRequest for one of another kind."""
        found: Model = self.repository.model(name, model_version)
        if not isinstance(found, Served):
            raise BadRequest("it writes text", where=f"model {name!r}", hint="ask by /v1/chat/completions")
        return found

    def regions(self) -> SharedMemory:
        """Memory of this machine that clients have named. Raises Forbidden where they may not."""
        if not self.settings.allows_shared_memory:
            hint = "start it with --shared-memory"
            raise Forbidden("the server takes no tensors from memory that it shares with clients", hint=hint)
        return self.shared_memory

    def check_control(self) -> None:
        """Raises Forbidden where clients may not load and unload models."""
        if not self.settings.allows_control:
            raise Forbidden("the server has no models loaded and unloaded by clients", hint="start it with --control")

    def check_size(self, count: int) -> None:
        """Raises TooLarge where a request has more bytes than are taken."""
        most = self.settings.limits.body_bytes
        if count > most:
            raise TooLarge(
                f"the request has {count} bytes, at most {most} are taken", hint="start it with --limit body_bytes=..."
            )

    def absent(self, path: str) -> NotFound:
        """What is said of a path that is not there."""
        return NotFound(f"there is nothing at {path[:200]!r}", hint="GET /v2 says what there is")
