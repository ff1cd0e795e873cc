"""Where states of sequences are kept, so that they go on after a restart, or on another replica."""

from __future__ import annotations

from typing import Protocol

from tract_core.digests import digest_of
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_serve.errors import BadRequest
from tract_serve.sequences.signing import Head, Signer, check_belongs
from tract_serve.settings import Limits


class NotStored(TractError):
    """A state is not in the store, and why: it is full, gone, or not reached. The sequence goes on in memory."""


class Place(Protocol):
    """Where bytes are kept by name: a folder, or a database. Called by threads; names are digits of base 16."""

    def put(self, name: str, content: bytes) -> None:
        """Keep it, whole or not at all, in the place of what has that name. Raises NotStored."""
        ...

    def get(self, name: str) -> bytes | None:
        """What has that name; ``None`` where there is nothing. Raises NotStored."""
        ...

    def tag(self, name: str) -> object:
        """What is another one after each `put`; ``None`` where there is nothing. Raises NotStored."""
        ...

    def remove(self, name: str) -> None:
        """Leave it, if it is there. Raises NotStored."""
        ...


@frozen
class StoredState:
    """A state that was kept: the pickle of it, how many turns are done, and the tag that it has."""

    state: bytes
    turns: int
    tag: object


class Store:
    """Signed states of sequences in a place. Called by threads."""

    def __init__(self, place: Place, signer: Signer, limits: Limits) -> None:
        self._place, self._signer, self._limits = place, signer, limits

    def put(self, head: Head, state: bytes) -> object:
        """Keep a state. Returns its tag. Raises NotStored."""
        most = self._limits.sequence_bytes
        if len(state) > most:
            problem = f"the state has {len(state)} bytes, at most {most} are kept"
            raise NotStored(problem, hint="start the server with --serve-limit sequence_bytes=...")
        name = _name(head)
        self._place.put(name, self._signer.signed(head, state))
        return self._place.tag(name)

    def get(self, head: Head) -> StoredState | None:
        """The state of a sequence; ``None`` where none is kept. Raises NotStored, BadRequest where it is not taken."""
        name = _name(head)
        tag = self._place.tag(name)
        content = None if tag is None else self._place.get(name)
        if content is None:
            return None
        try:
            found, state = self._signer.read(content)
            check_belongs(found, head)
        except BadRequest as error:
            error.where = f"{error.where or f'model {head.model!r}'}, {head.sequence[:100]!r}"
            raise
        return StoredState(state, found.turns, tag)

    def tag(self, head: Head) -> object:
        """What is another one each time the state of the sequence is kept. Raises NotStored."""
        return self._place.tag(_name(head))

    def remove(self, head: Head) -> None:
        """Leave the state of a sequence. Raises NotStored."""
        self._place.remove(_name(head))


def _name(head: Head) -> str:
    return digest_of("sequence", head.model, head.version, head.sequence)
