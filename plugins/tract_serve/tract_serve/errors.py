"""Requests that are not done: why, and by which status each protocol says so."""

from __future__ import annotations

from typing import ClassVar, Final

from tract_core.errors import DimError, FactError, InputError, LimitExceeded, RunError, TractError


class Refusal(TractError):
    """A request that is not done. ``status``: that of HTTP. The text goes to the client."""

    status: ClassVar[int] = 400


class BadRequest(Refusal):
    """What a client sent breaks the protocol, or does not fit the model."""


class Unauthorised(Refusal):
    """The client has not shown a token that is known here."""

    status = 401


class Forbidden(Refusal):
    """The server was not started so that clients may do this."""

    status = 403


class NotFound(Refusal):
    """There is no such path, model, version, region or sequence."""

    status = 404


class WrongMethod(Refusal):
    """The path is there, and not for this method of HTTP."""

    status = 405


class TooSlow(Refusal):
    """The client took too long to send its request."""

    status = 408


class TooLarge(Refusal):
    """A request is larger than the server takes."""

    status = 413


class UnknownEncoding(Refusal):
    """The body is compressed in a way that is not known here."""

    status = 415


class Failed(Refusal):
    """The server failed, and not by what the client sent."""

    status = 500


class Busy(Refusal):
    """Too much is waiting already, or the model is not ready yet. Asking again later may work."""

    status = 503


class TooLate(Refusal):
    """The time that the client gave is over."""

    status = 504


_BY_CLIENT: Final = (InputError, FactError, DimError, RunError, LimitExceeded)
"""What a run raises because of what it was given."""


def status_of(error: BaseException) -> int:
    """The status of HTTP for an error, whoever raised it."""
    if isinstance(error, Refusal):
        return error.status
    return 400 if isinstance(error, _BY_CLIENT) else 500


def text_of(error: BaseException) -> str:
    """What a client is told. What went wrong inside is not told, but for what this project itself has said of it."""
    if isinstance(error, TractError):
        return str(error)
    return f"the server failed: {type(error).__name__}"
