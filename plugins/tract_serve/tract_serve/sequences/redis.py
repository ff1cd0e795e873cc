"""A store in Redis (or what speaks its protocol): a key for each sequence, which leaves by itself when it is old."""

from __future__ import annotations

from time import time
from typing import Any, Final

from tract_core.errors import InputError
from tract_core.importing import imported
from tract_serve.sequences.store import NotStored
from tract_serve.settings import Limits

_PREFIX: Final = "tract:sequence:"
_INDEX: Final = "tract:sequences"
"""A sorted set of the names, by when they were written."""

_TAG: Final = 48
"""Bytes at the begin of what is stored that tell it from what was there before: its format and its signature."""

_PATIENCE_S: Final = 5.0


class RedisPlace:
    """States in a database, of this server and of others that use it."""

    def __init__(self, address: str, limits: Limits) -> None:
        """``address``: ``redis://host:port/db``. Raises InputError where the client is not installed."""
        try:
            redis: Any = imported("redis")
        except ImportError:
            raise InputError(
                "a store in Redis needs its client", where=address, hint="pip install 'tract-serve[redis]'"
            ) from None
        self._errors: tuple[type[Exception], ...] = (redis.RedisError, OSError)
        self._limits = limits
        try:
            self._client: Any = redis.Redis.from_url(
                address, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S
            )
            self._client.ping()
        except (*self._errors, ValueError) as error:
            raise InputError(f"the store is not reached: {error}", where=_shown(address)) from None
        self._where = _shown(address)

    def put(self, name: str, content: bytes) -> None:
        """Keep it under its name. Raises NotStored, as where the database is full."""
        limits, now = self._limits, time()
        try:
            with self._client.pipeline(transaction=True) as pipe:
                pipe.set(_PREFIX + name, content, px=int(limits.stored_s * 1000))
                pipe.zadd(_INDEX, {name: now})
                pipe.zremrangebyscore(_INDEX, 0, now - limits.stored_s)
                pipe.zcard(_INDEX)
                count: int = pipe.execute()[-1]
            if count > limits.stored:
                oldest: list[bytes] = [one for one, _ in self._client.zpopmin(_INDEX, count - limits.stored)]
                self._client.delete(*(_PREFIX + one.decode() for one in oldest))
        except self._errors as error:
            raise self._problem(error) from None

    def get(self, name: str) -> bytes | None:
        """What is kept under a name."""
        try:
            return self._client.get(_PREFIX + name)
        except self._errors as error:
            raise self._problem(error) from None

    def tag(self, name: str) -> object:
        """The signature of what is kept."""
        try:
            return self._client.getrange(_PREFIX + name, 0, _TAG - 1) or None
        except self._errors as error:
            raise self._problem(error) from None

    def remove(self, name: str) -> None:
        """Leave what is kept under a name."""
        try:
            self._client.delete(_PREFIX + name)
            self._client.zrem(_INDEX, name)
        except self._errors as error:
            raise self._problem(error) from None

    def _problem(self, error: Exception) -> NotStored:
        return NotStored(f"the store is not reached: {error or type(error).__name__}", where=self._where)


def _shown(address: str) -> str:
    """An address without the password that may be in it."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
