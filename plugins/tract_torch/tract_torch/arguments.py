"""Whether what a user gives is what was wanted: errors that say so, in the place of those that come of it later."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from tract_core.errors import InputError

if TYPE_CHECKING:
    import torch

Kind = TypeVar("Kind")


def of_type(given: object, kind: type[Kind] | tuple[type, ...], what: str, wanted: str) -> Kind:
    """What is given, if it is of a type. Raises InputError, which says ``wanted``, for anything else."""
    if isinstance(given, kind):
        return cast("Kind", given)
    raise InputError(f"{what} is {type(given).__name__}, wanted {wanted}")


def path_of(given: object, what: str) -> Path:
    """The path that is given as one or as a text. Raises InputError for anything else."""
    return Path(of_type(given, (str, os.PathLike), what, "a path"))


def module_of(given: object, what: str = "model") -> torch.nn.Module:
    """Raises InputError for what is no module, and says how a class becomes one."""
    import torch

    if isinstance(given, type) and issubclass(given, torch.nn.Module):
        raise InputError(f"{what} is a class, wanted a torch.nn.Module", hint=f"make one: {given.__name__}(...)")
    return of_type(given, torch.nn.Module, what, "a torch.nn.Module")


Choice = TypeVar("Choice", bound=StrEnum)


def chosen(kind: type[Choice], given: object, what: str) -> Choice:
    """A member of an enumeration, by itself or its text. Raises InputError, which lists them, for anything else."""
    try:
        return kind(given)
    except ValueError:
        raise InputError(f"{what} is {given!r}, wanted one of {', '.join(kind)}") from None
