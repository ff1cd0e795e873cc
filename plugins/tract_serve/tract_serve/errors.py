"""Requests that are not done: why, and by which status each protocol says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tract_core.errors import DimError, FactError, InputError, LimitExceeded, RunError, TractError
from tract_serve.texts import told


class Refusal(TractError):
    """A request that is not done. ``status``: that of HTTP. The text goes to the client.

    ``param``, ``code``: which parameter is meant, and a word for what is wrong, where the OpenAI interface has them.
    """

    status: ClassVar[int] = 400
    param: str | None = None
    code: str | None = None


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
    """The path is there, and not for this method of HTTP. ``allowed``: those that it is there for."""

    status = 405

    def __init__(self, problem: str, allowed: Sequence[str]) -> None:
        super().__init__(problem)
        self.allowed = allowed


class TooSlow(Refusal):
    """The client took too long to send its request."""

    status = 408


class RequestTooLarge(Refusal):
    """A request is larger than the server takes."""

    status = 413


class UnknownEncoding(Refusal):
    """The body is compressed in a way that is not known here."""

    status = 415


class TooMany(Refusal):
    """The client has asked for more already than one client may."""

    status = 429
    code = "rate_limit_exceeded"


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
        return told(str(error))
    return f"the server failed: {type(error).__name__}"


def error_object(error: BaseException) -> dict[str, str | None]:
    """An error, as the OpenAI interface says it."""
    status = status_of(error)
    kind = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    param, code = getattr(error, "param", None), getattr(error, "code", None)
    return {"message": text_of(error), "type": kind, "param": param, "code": code}
