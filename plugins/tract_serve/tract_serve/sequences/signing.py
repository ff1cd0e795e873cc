"""What stands in a store: a state with what it belongs to, signed, so that nothing is read that others have written.

A file begins with `_FORMAT`, the signature (HMAC-SHA256 of RFC 2104), and the length of its head; then come the head, a
text of JSON, and the state. The signature is over all of that, each part behind its length, under a key that is made
from the one that is given and is good for nothing else.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_serve.errors import BadRequest

_FORMAT: Final = b"tract sequence 1"
_PURPOSE: Final = b"tract-serve: states of sequences, version 1"
_SIGNATURE: Final = 32
_LENGTH: Final = 4
_FIRST: Final = len(_FORMAT) + _SIGNATURE + _LENGTH

LEAST_KEY: Final = 32
"""Bytes of a key."""

MOST_KEY: Final = 1 << 16


@frozen
class Head:
    """What a state belongs to: a ``version`` of a ``model``. ``digest``: of the model.

    ``sequence``: its key; ``turns``: how many are done.
    """

    model: str
    version: str
    digest: str
    sequence: str
    turns: int


class Signer:
    """Signs what goes to a store, and looks at what comes back."""

    def __init__(self, key: bytes) -> None:
        """``key``: secret; whoever has it writes states that are taken here. Raises InputError for a short one."""
        if len(key) < LEAST_KEY:
            hint = "head -c 32 /dev/urandom > FILE makes one"
            raise InputError(f"the key has {len(key)} bytes, wanted at least {LEAST_KEY}", hint=hint)
        self._key = hmac.digest(key, _PURPOSE, "sha256")

    @staticmethod
    def of_file(path: str) -> Signer:
        """With the key in a file. Raises InputError where there is none."""
        try:
            with Path(path).open("rb") as file:
                return Signer(file.read(MOST_KEY))
        except OSError as error:
            raise InputError(f"the key cannot be read: {error.strerror or error}", where=path) from None

    def signed(self, head: Head, state: bytes) -> bytes:
        """What is stored."""
        text = json.dumps(asdict(head)).encode()
        return b"".join([_FORMAT, self._of(text, state), len(text).to_bytes(_LENGTH, "little"), text, state])

    def read(self, content: bytes) -> tuple[Head, bytes]:
        """The head and the state of what was stored. Raises BadRequest where the signature is not right."""
        size = int.from_bytes(content[_FIRST - _LENGTH : _FIRST], "little")
        text, state = content[_FIRST : _FIRST + size], content[_FIRST + size :]
        given = content[len(_FORMAT) : len(_FORMAT) + _SIGNATURE]
        is_right = hmac.compare_digest(given, self._of(text, state))
        if not is_right or not content.startswith(_FORMAT) or len(text) != size:
            hint = "it is damaged, or was signed with another key: start the sequence again"
            raise BadRequest("the state that was kept is not signed with the server's key", hint=hint)
        told: dict[str, Any] = json.loads(text)
        return Head(**told), state

    def _of(self, text: bytes, state: bytes) -> bytes:
        made = hmac.new(self._key, digestmod="sha256")
        for part in (_FORMAT, text, state):
            made.update(len(part).to_bytes(8, "little"))
            made.update(part)
        return made.digest()


def check_belongs(found: Head, wanted: Head) -> None:
    """Raises BadRequest, with the reason, where a state is none of this sequence of this model. Turns are no matter."""
    where = f"model {wanted.model!r}"
    if (found.model, found.sequence) != (wanted.model, wanted.sequence):
        problem = "the state that was kept is of another sequence or another model"
        raise BadRequest(problem, where=where, hint="files in the store were exchanged: start the sequence again")
    hint = "start the sequence again (sequence_start)"
    if found.version != wanted.version:
        problem = f"the sequence is one of version {found.version}, and this is version {wanted.version}"
        raise BadRequest(problem, where=where, hint=hint)
    if not hmac.compare_digest(found.digest, wanted.digest):
        problem = "the model, or what runs it, has changed since the sequence was kept"
        raise BadRequest(problem, where=where, hint=hint)
