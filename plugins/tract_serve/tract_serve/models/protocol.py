"""What a model that is ready is to the rest of the server, whatever it is served as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ServedModel(Protocol):
    """A version of a model that is ready, whatever it is served as."""

    @property
    def name(self) -> str:
        """The name in the repository."""
        ...

    @property
    def version(self) -> str:
        """A number, as a text."""
        ...

    def told(self) -> Mapping[str, Any]:
        """What the log says of it."""
        ...

    async def close(self) -> None:
        """Return once everything is answered that it has."""
        ...
