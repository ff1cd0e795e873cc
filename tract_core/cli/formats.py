"""Which frontend reads a file: by its ending, by what a folder holds, or by ``--format``; and frontends' flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tract_core.cli.command import Flag
from tract_core.errors import InputError
from tract_core.plugins import default_registry
from tract_core.plugins.missing import not_installed

if TYPE_CHECKING:
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


def flags_of(format_name: str, prefix: str) -> list[str]:
    """The flags of one format whose keywords begin with ``prefix``, as they are written."""
    flags = default_registry().frontends()[format_name].flags
    return [_written(f"{format_name}_{keyword}") for keyword in flags if keyword.startswith(prefix)]


def _written(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def find_format(name: str, format_name: str | None) -> tuple[str, Path]:
    """The format of a model, and the path of it: for a folder, that of the model in it. Raises InputError."""
    path = Path(name)
    frontends = default_registry().frontends()
    if format_name is not None and format_name not in frontends:
        raise not_installed("format", format_name, frontends)
    if not path.exists():
        raise InputError("there is no such file", where=name, hint=_similar(path, frontends))
    if path.is_dir():
        path = _model_in(path, frontends, format_name)
    return format_name or _fitting(path, frontends).name, path


def loader_of(format_name: str, flags: Iterable[FrontendFlag]) -> Any:
    """What loads a format, with the flags that are on. Raises InputError when one is about another format."""
    for flag in flags:
        if flag.frontend != format_name:
            raise InputError(f"{flag.opts[0]} is about the format {flag.frontend}, the model is {format_name}")
    make = default_registry().load("tract_frontends", format_name)
    return make(**{flag.keyword: True for flag in flags})


def _fitting(path: Path, frontends: Mapping[str, Frontend]) -> Frontend:
    for frontend in frontends.values():
        if path.name.lower().endswith(frontend.extensions):
            return frontend
    known = ", ".join(f"{one.name} ({' '.join(one.extensions)})" for one in frontends.values()) or "none"
    distribution = next((_TO_INSTALL[end] for end in reversed(path.suffixes) if end in _TO_INSTALL), None)
    raise InputError(
        f"no installed format takes files named *{path.suffix or path.name}; installed: {known}",
        where=str(path),
        hint=f"pip install {distribution}" if distribution else "name the format with --format",
    )


def _model_in(folder: Path, frontends: Mapping[str, Frontend], format_name: str | None) -> Path:
    """The file ``model.onnx`` (or with another format's ending) in a folder."""
    wanted = [one for one in frontends.values() if format_name in (None, one.name)]
    names = [f"model{ending}" for one in wanted for ending in one.extensions]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"the folder holds none of {', '.join(names)}", where=str(folder), hint="name the file itself")


def _similar(path: Path, frontends: Mapping[str, Frontend]) -> str | None:
    """What the user may have meant by a file that is not there."""
    from difflib import get_close_matches

    endings = tuple(ending for one in frontends.values() for ending in one.extensions)
    try:
        there = [one.name for one in path.parent.iterdir() if one.name.lower().endswith(endings)]
    except OSError:
        return f"there is no folder {str(path.parent)!r}"
    near = get_close_matches(path.name, there, n=1)
    return f"did you mean {path.parent / near[0]}?" if near else None
