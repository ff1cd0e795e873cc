"""Work that takes long is done in a thread, so that other clients are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


async def apart(is_long: bool, function: Callable[..., Any], *given: Any) -> Any:
    """What a function gives; in a thread where that takes long."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *given) if is_long else function(*given)
