"""What the exporter to archives refuses besides what every model may be refused for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tract_core.errors import InputError, ModelError, TractError

if TYPE_CHECKING:
    import numpy as np
    import torch

    from tract_torch.check.report import CheckReport


class CheckError(ModelError):
    """What was exported gives something else than the module.

    ``report``: what was compared until then, if anything. ``inputs``, ``outputs``: where it differs, the module's, by
    name.
    """

    advice = "check_io_tolerance loosens the comparison; 'tract MODEL compare' looks at single nodes"
    report: CheckReport | None = None
    inputs: Mapping[str, np.ndarray[Any, Any]] | None = None
    outputs: Mapping[str, np.ndarray[Any, Any]] | None = None


class CommandError(TractError):
    """A program that was called failed, took too long, or could not be started."""


class DownloadError(TractError):
    """A file could not be downloaded, or is not the one that was wanted."""

    advice = "try again later, or give a binary of your own with specific_tract_binary_path"


class OnnxExportError(TractError):
    """PyTorch's own exporter to ONNX does not take a module, or what it wrote cannot be loaded."""


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
