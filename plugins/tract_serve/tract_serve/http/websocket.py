"""WebSockets: nothing answers them yet."""

from __future__ import annotations

from typing import Any

from tract_serve.serving import Serving


async def answer(serving: Serving, scope: Any, receive: Any, send: Any) -> None:
    """Close it."""
    await receive()
    await send({"type": "websocket.close", "code": 1008})
