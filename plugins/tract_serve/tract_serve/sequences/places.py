"""The store that a server is told to use."""

from __future__ import annotations

from functools import cache
from typing import Final

from tract_core.errors import InputError
from tract_serve.sequences.folder import FolderPlace
from tract_serve.sequences.redis import RedisPlace
from tract_serve.sequences.signing import Signer
from tract_serve.sequences.store import Store
from tract_serve.settings import Limits, Settings

REDIS: Final = ("redis://", "rediss://", "unix://")
"""How the address of a database begins."""


def store_of(settings: Settings) -> Store | None:
    """The store that settings name. Raises InputError where it cannot be used, or has no key."""
    if settings.store is None:
        return None
    if settings.store_key is None:
        hint = "--store-key FILE; head -c 32 /dev/urandom > FILE makes one"
        raise InputError("a store needs a key that states are signed with", where=settings.store, hint=hint)
    return _store(settings.store, settings.store_key, settings.limits)


@cache
def _store(address: str, key: str, limits: Limits) -> Store:
    """One for all models of a server."""
    signer = Signer.of_file(key)
    if address.startswith(REDIS):
        return Store(RedisPlace(address, limits), signer, limits)
    return Store(FolderPlace(address, limits), signer, limits)
