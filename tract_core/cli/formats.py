"""Which frontend reads a file: by its ending, by what a folder holds, or by ``--format``; and frontends' flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tract_core.cli.command import Flag
from tract_core.errors import InputError
from tract_core.lookalikes import HEAD, recognise
from tract_core.plugins import default_registry
from tract_core.plugins.missing import not_installed

if TYPE_CHECKING:
    from tract_core.limits import LoadLimits
    from tract_core.plugins.descriptor import Frontend

_TO_INSTALL: Final = {".onnx": "tract-onnx", ".nnef": "tract-nnef", ".tgz": "tract-nnef", ".tar": "tract-nnef"}


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


def flags_of(format_name: str, prefix: str) -> dict[str, str]:
    """The flags of one format whose keywords begin with ``prefix``: for each keyword, how it is written."""
    flags = default_registry().frontends()[format_name].flags
    return {keyword: _written(f"{format_name}_{keyword}") for keyword in flags if keyword.startswith(prefix)}


def _written(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def find_format(name: str, format_name: str | None) -> tuple[str, Path]:
    """The format of a model, and the path of it: for a folder, that of the model in it. Raises InputError."""
    from tract_core.api.frontends import missing_file

    path = Path(name)
    frontends = default_registry().frontends()
    if format_name is not None and format_name not in frontends:
        raise not_installed("format", format_name, frontends)
    if not name:
        raise InputError("the path of MODEL is empty")
    if not path.exists():
        raise missing_file(path)
    if path.is_dir():
        path = _model_in(path, frontends, format_name)
    return format_name or _fitting(path, frontends).name, path


def loader_of(format_name: str, flags: Iterable[FrontendFlag], limits: LoadLimits | None = None) -> Any:
    """What loads a format, with the flags that are on, and within ``limits``.

    Raises InputError when a flag is about another format, or the format has no limits.
    """
    for flag in flags:
        if flag.frontend != format_name:
            raise InputError(f"{flag.opts[0]} is about the format {flag.frontend}, the model is {format_name}")
    make = default_registry().load("tract_frontends", format_name)
    wishes: dict[str, Any] = {flag.keyword: True for flag in flags}
    if limits is not None:
        if "limits" not in signature(make).parameters:
            raise InputError(f"--limit: the format {format_name} has no limits")
        wishes["limits"] = limits
    return make(**wishes)


def _fitting(path: Path, frontends: Mapping[str, Frontend]) -> Frontend:
    for frontend in frontends.values():
        if path.name.lower().endswith(frontend.extensions):
            return frontend
    known = ", ".join(f"{one.name} ({' '.join(one.extensions)})" for one in frontends.values()) or "none"
    problem = f"no installed format takes files named *{path.suffix or path.name}; installed: {known}"
    if path.suffix in _TO_INSTALL:
        raise InputError(problem, where=str(path), hint=f"pip install {_TO_INSTALL[path.suffix]}")
    with path.open("rb") as file:
        found = recognise(file.read(HEAD), path.name)
    if found is not None:
        raise InputError(f"it is {found.what}; {problem}", where=str(path), hint=found.advice)
    raise InputError(problem, where=str(path), hint="if it is a model all the same, name its format with --format")


def _model_in(folder: Path, frontends: Mapping[str, Frontend], format_name: str | None) -> Path:
    """The file ``model.onnx`` (or with another format's ending) in a folder."""
    wanted = [one for one in frontends.values() if format_name in (None, one.name)]
    names = [f"model{ending}" for one in wanted for ending in one.extensions]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"the folder holds none of {', '.join(names)}", where=str(folder), hint="name the file itself")
