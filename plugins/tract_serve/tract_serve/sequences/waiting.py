"""Work in threads that cannot be stopped: who waits for it and is cancelled leaves when it is over."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def over(work: asyncio.Future[T]) -> T:
    """What the work gives, or raises. Where the task that waits is cancelled, that is raised once the work is over."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # which nobody is told
        raise
