"""The flags of the formats that are installed."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import TYPE_CHECKING, Any

from tract_core.cli.command import Flag
from tract_core.errors import InputError
from tract_core.plugins import default_registry

if TYPE_CHECKING:
    from tract_core.limits import LoadLimits


class FrontendFlag(Flag):
    """A flag that a frontend takes, as ``--onnx-ignore-value-info``."""

    def __init__(self, frontend: str, keyword: str, text: str) -> None:
        name = f"{frontend}_{keyword}"
        super().__init__([_written(name), name], is_flag=True, help=text, group=f"Loading {frontend} files")
        self.frontend = frontend
        self.keyword = keyword


def frontend_flags() -> list[FrontendFlag]:
    """The flags of all installed frontends."""
    return [
        FrontendFlag(frontend.name, keyword, text)
        for frontend in default_registry().frontends().values()
        for keyword, text in frontend.flags.items()
    ]


def flags_of(format_name: str) -> dict[str, str]:
    """The flags of one format: for each keyword of its loader, how the flag is written."""
    flags = default_registry().frontends()[format_name].flags
    return {keyword: _written(f"{format_name}_{keyword}") for keyword in flags}


def _written(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def loader_as_asked(format_name: str, flags: Iterable[FrontendFlag], limits: LoadLimits | None = None) -> Any:
    """What loads a format, with the flags that are on, and within ``limits``.

    Raises InputError when a flag is about another format, or the format has no limits.
    """
    from tract_core.api.frontends import loader_of

    for flag in flags:
        if flag.frontend != format_name:
            raise InputError(f"{flag.opts[0]} is about the format {flag.frontend}, the model is {format_name}")
    wishes: dict[str, Any] = {flag.keyword: True for flag in flags}
    if limits is not None:
        if "limits" not in signature(default_registry().load("tract_frontends", format_name)).parameters:
            raise InputError(f"--limit: the format {format_name} has no limits")
        wishes["limits"] = limits
    return loader_of(format_name, **wishes)
