"""What clients say by name, in JSON or in parameters of gRPC: each value looked at for type and range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tract_serve.errors import BadRequest
from tract_serve.texts import shown

MOST: Final = (1 << 63) - 1
"""The largest whole number that is taken."""

_NAMES: Final = {dict: "an object", list: "a list"}


def checked(value: object, kind: type, what: str, where: str | None = None) -> Any:
    """A value that is of a type of JSON. ``what``: it is. Raises BadRequest."""
    if not isinstance(value, kind):
        raise BadRequest(f"{what} is a {type(value).__name__}, wanted {_NAMES[kind]}", where=where)
    return value


def parameters_of(told: Mapping[str, Any], where: str | None = None) -> Mapping[str, Any]:
    """The parameters of a request, a tensor or a stream; none where they are missing. Raises BadRequest."""
    found = told.get("parameters")
    return {} if found is None else checked(found, dict, "'parameters'", where)


def list_in(told: Mapping[str, Any], name: str) -> list[Any]:
    """A list, of whatever. Raises BadRequest, also where it is missing."""
    if name not in told:
        raise BadRequest(f"{name!r} is missing")
    return checked(told[name], list, repr(name))


def text_in(told: Mapping[str, Any], name: str, where: str | None = None) -> str:
    """A text that is not empty. Raises BadRequest, also where it is missing."""
    found = told.get(name)
    if not isinstance(found, str) or not found:
        raise BadRequest(f"{name!r} is missing, or no text", where=where)
    return found


def flag_in(told: Mapping[str, Any], name: str, where: str | None = None, *, default: bool = False) -> bool:
    """True or false. Raises BadRequest."""
    found = told.get(name, default)
    if not isinstance(found, bool):
        raise BadRequest(f"{name} is {shown(found)}, wanted true or false", where=where)
    return found


def whole_in(told: Mapping[str, Any], name: str, where: str | None = None) -> int | None:
    """A whole number from 0 on; ``None`` where it is missing. Raises BadRequest."""
    found = told.get(name)
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= MOST:
        raise BadRequest(f"{name} is {shown(found)}, wanted a number from 0 on", where=where)
    return found
