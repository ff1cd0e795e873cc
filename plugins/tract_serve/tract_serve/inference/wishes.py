"""What the parameters of a request ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tract_serve.fields import whole_in
from tract_serve.models.served import RequestTrace, Wish

_NOTHING = Wish()


def wish_of(parameters: Mapping[str, Any], seconds: float | None = None, trace: RequestTrace | None = None) -> Wish:
    """``priority``, ``timeout`` (microseconds), and those whose meaning is up to the model.

    ``seconds``: that the client waits, if it says so otherwise. ``trace``: of the request. Raises BadRequest.
    """
    if not parameters and seconds is None and trace is None:
        return _NOTHING
    priority = _whole(parameters, "priority")
    timeout = _whole(parameters, "timeout")
    patience = timeout * 1e-6 if timeout else None
    if seconds is not None:
        patience = seconds if patience is None else min(seconds, patience)
    return Wish(priority, patience, parameters, trace)


def _whole(parameters: Mapping[str, Any], name: str) -> int:
    """A whole number, or its digits: some clients write parameters as texts."""
    found = parameters.get(name)
    if isinstance(found, str) and found.isascii() and found.isdigit():
        return whole_in({name: int(found[:20])}, name) or 0
    return whole_in(parameters, name) or 0
