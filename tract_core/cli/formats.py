"""The flags of the formats and stages that plugins bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tract_core.cli.brought import BroughtFlag
from tract_core.cli.command import Flag
from tract_core.errors import InputError
from tract_core.plugins import default_registry
from tract_core.plugins.descriptor import Option, Options

if TYPE_CHECKING:
    from tract_core.limits import LoadLimits


class FormatFlag(BroughtFlag):
    """A flag of a format, as ``--onnx-ignore-value-info``; its value is a keyword of the loader or the writer."""

    def __init__(self, format_name: str, keyword: str, option: str | Option, group: str) -> None:
        name = f"{format_name}_{keyword}"
        flag = option.flag if isinstance(option, Option) and option.flag else as_flag(name)
        names = [flag, f"of_{name}"]
        super().__init__(names, hook="tract_formats", offer=format_name, group=group, **attributes_of(option))
        self.format_name = format_name
        self.keyword = keyword


def attributes_of(option: str | Option) -> dict[str, Any]:
    """What click wants to know of a flag that a plugin describes."""
    if isinstance(option, str):
        option = Option(option)
    if option.kind is bool:
        return {"is_flag": True, "help": option.help}
    metavar = option.metavar or option.kind.__name__.upper()
    metavar = f"[{metavar}]" if option.alone else metavar
    return {"type": option.kind, "metavar": metavar, "help": option.help, "alone": option.alone}


def as_flag(name: str) -> str:
    """How a flag of this name is written."""
    return f"--{name.replace('_', '-')}"


def loader_flags() -> list[FormatFlag]:
    """The flags of the loaders of all installed formats."""
    forms = default_registry().formats().values()
    return [flag for form in forms for flag in _flags(form.name, form.flags, f"Loading {form.name} files")]


def writer_flags() -> list[FormatFlag]:
    """The flags of the writers of all installed formats."""
    forms = default_registry().formats().values()
    return [flag for form in forms for flag in _flags(form.name, form.writer_flags, f"Writing {form.name} files")]


def setting_flags() -> list[FormatFlag]:
    """The flags that are global, of the writers of all installed formats."""
    forms = default_registry().formats().values()
    return [flag for form in forms for flag in _flags(form.name, form.settings, f"Writing {form.name} files")]


def _flags(format_name: str, options: Options, group: str) -> list[FormatFlag]:
    return [FormatFlag(format_name, keyword, option, group) for keyword, option in options.items()]


def flags_of(format_name: str) -> dict[str, str]:
    """The flags of one format: for each keyword of its loader, how the flag is written."""
    return {keyword: as_flag(f"{format_name}_{keyword}") for keyword in default_registry().formats()[format_name].flags}


FlagT = TypeVar("FlagT", bound=Flag)


def given_among(flags: Iterable[FlagT], values: Mapping[str, Any]) -> dict[FlagT, Any]:
    """Those of the flags that were given, with their values, by what click read."""
    found = {flag: values.get(flag.name or "") for flag in flags}
    return {flag: value for flag, value in found.items() if value is not None and value is not False}


def keywords_for(format_name: str, given: Mapping[FormatFlag, Any]) -> dict[str, Any]:
    """The keywords that the flags give the loader or the writer. Raises InputError for flags of another format."""
    for flag in given:
        if flag.format_name != format_name:
            raise InputError(f"{flag.opts[0]} is about the format {flag.format_name}, the model is {format_name}")
    return {flag.keyword: value for flag, value in given.items()}


def loader_with(format_name: str, given: Mapping[FormatFlag, Any], limits: LoadLimits | None = None) -> Any:
    """What loads a format, with the flags that were given, and within ``limits``.

    Raises InputError when a flag is about another format, or the format has no limits.
    """
    from tract_core.api.reading import loader_of

    return loader_of(format_name, **keywords_for(format_name, given), limits=limits)
