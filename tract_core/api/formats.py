"""Which format a file has: by its name, by what a folder holds, or as the caller says; and what reads and writes it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tract_core.api.display import size
from tract_core.errors import InputError, MissingFile, TractError
from tract_core.lookalikes import HEAD, recognise, recognise_folder
from tract_core.plugins import Registry, default_registry
from tract_core.plugins.endings import formats_for
from tract_core.plugins.missing import ENDINGS, WRITER, how_to_get, not_installed

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.descriptor import Format

MOST_NAMES: Final = 10_000
"""Files that are looked at, for models, or for a name like that of one that is not there."""

LISTED: Final = 20
"""How many models of a folder are named."""

DEPTH: Final = 4
"""How many levels of folders are looked through for models."""

ALIKE: Final = 0.75
"""How alike two names are, from 0 to 1, when one may be a misspelling of the other."""


def find_format(path: Path, format_name: str | None = None) -> tuple[str, Path]:
    """The format of a model, and the path of it: for a folder, that of the model in it.

    Raises InputError where no installed format takes the file, MissingFile for one that is not there.
    """
    formats = default_registry().formats()
    if format_name is not None and format_name not in formats:
        raise not_installed("format", format_name, formats)
    if not path.exists():
        raise missing_file(path)
    if path.is_dir():
        whole = _format_of_folder(path, formats, format_name)
        if whole is not None:
            return whole, path
        path = _model_in(path, formats, format_name)
    return format_name or _format_of(path, formats).name, path


def format_to_write(path: Path, formats: Mapping[str, Format], format_name: str | None = None) -> Format:
    """The format that a model is to be written in: the one that is named, else that of the file's ending.

    Raises PluginError for one that is not installed, InputError where none of those that are writes such a file.
    """
    if format_name is not None and format_name not in formats:
        raise not_installed("format", format_name, formats)
    writers = {name: form for name, form in formats.items() if form.writer}
    if not writers:
        raise InputError("none of the installed formats can be written", where=str(path), hint=how_to_get(WRITER))
    if format_name is not None and format_name not in writers:
        there = ", ".join(writers) or "none"
        raise InputError(f"the format {format_name} is only read; formats that are written: {there}", where=str(path))
    found = writers[format_name] if format_name is not None else _fitting(path, writers)
    if found is None:
        hint = "end the name as one of them does, or say which format it is to have (--as on the command line)"
        raise _no_format("writes", path, writers, hint)
    return found


def place_to_write(model: Path, named: str | None, format_name: str | None = None) -> Path:
    """Where a model is written: the path that is named, which gets the usual ending of a file where it has none.

    In a folder that is there, and where none is named in the current one, it is called as ``model``. Raises InputError
    where that would take the place of ``model``, and where no format that is installed has a usual ending.
    """
    if named is not None and (format_name or Path(named).suffix):
        return Path(named)
    formats = default_registry().formats()
    usual = _usual_ending(formats, format_name)
    if named is not None and not Path(named).is_dir():
        return Path(f"{named}{usual}")
    whole = model.resolve()
    ending = max((one.ending_of(whole) for one in formats.values()), key=len, default="") or whole.suffix
    target = Path(named or "") / (whole.name[: len(whole.name) - len(ending)] + usual)
    if target.resolve() == whole:
        raise InputError("it would take the place of the model itself", where=str(target), hint="name a file with -o")
    return target


def _usual_ending(formats: Mapping[str, Format], format_name: str | None) -> str:
    """Of the files that are written where nobody says more. Raises InputError, PluginError where nothing is known."""
    if format_name is not None and format_name not in formats:
        raise not_installed("format", format_name, formats)
    forms = {name: one.forms for name, one in formats.items() if one.forms and format_name in (None, name)}
    ours = [name for name in forms if default_registry().owner("tract_formats", name) == WRITER]
    found = next(iter([*ours, *forms]), None)
    if found is None:
        hint = "name a file with -o" if format_name else how_to_get(WRITER)
        raise InputError("it is not said where to write it", hint=hint)
    return next(iter(forms[found]))


def write_as(form: Format, model: TypedModel, path: Path, **flags: Any) -> None:
    """Write a model to a file of an installed format, as `format_to_write` finds it.

    ``flags``: keywords of its writer. Raises InputError, PluginError, Unsupported for what the format cannot say.
    """
    write_with(made(model.registry, form.name, "writer", form.writer_keywords, flags), form, model, path)


def write_with(writer: Any, form: Format, model: TypedModel, path: Path) -> None:
    """Write a model to a file by a writer of that format. Raises TractError, with the path."""
    try:
        with model.registry.blaming("tract_formats", form.name, "writing"):
            writer.write(model, path)
    except TractError as error:
        raise error.at(str(path)) from error.__cause__


def made(registry: Registry, format_name: str, part: str, known: Iterable[str], flags: Mapping[str, Any]) -> Any:
    """The loader or the writer of a format, made with those flags that are set. Raises PluginError, InputError."""
    make = registry.load("tract_formats", format_name, part)
    unknown = [name for name in flags if name not in known]
    if unknown:
        there = ", ".join(one for one in known if one != "limits") or "none"
        raise InputError(f"the {part} of the format {format_name} has no option {unknown[0]!r}; it has {there}")
    given = {name: value for name, value in flags.items() if value is not None}
    if "limits" in given and "limits" not in signature(make).parameters:
        raise InputError(f"the format {format_name} has no limits (--limit on the command line)")
    with registry.blaming("tract_formats", format_name, f"making the {part}"):
        return make(**given)


def format_of_content(content: bytes) -> str:
    """The name of the installed format whose files begin as ``content`` does, or of the one that any file may be of.

    Raises InputError where that leaves none, or several.
    """
    formats = default_registry().formats().values()
    begins = [one for one in formats if any(content.startswith(magic, at) for at, magic in one.signatures)]
    found = begins or [one for one in formats if not one.signatures]
    if len(found) == 1:
        return found[0].name
    there = ", ".join(one.name for one in found or formats) or "none"
    lookalike = recognise(content[:HEAD]) if not found else None
    if lookalike is not None:
        raise InputError(f"it is {lookalike.what}; formats that are installed: {there}", hint=lookalike.advice)
    problem = f"its first bytes do not tell its format; {'it may be one of' if found else 'installed are'} {there}"
    raise InputError(problem, hint="say which it has: load_bytes(content, format_name=...)")


def _format_of(path: Path, formats: Mapping[str, Format]) -> Format:
    found = _fitting(path, formats)
    if found is not None:
        return found
    advice = "if it is a model all the same, say which format it has (--format on the command line)"
    error = _no_format("takes", path, formats, advice)
    if path.suffix not in ENDINGS:
        with path.open("rb") as file:
            lookalike = recognise(file.read(HEAD), path.name)
        if lookalike is not None:
            problem = f"it is {lookalike.what}, and no installed format takes it"
            raise InputError(problem, where=str(path), hint=lookalike.advice)
    raise error


def _no_format(does: str, path: Path, formats: Mapping[str, Format], hint: str) -> InputError:
    """The error for a file that none of these formats reads or writes, as ``does`` says."""
    known = ", ".join(f"{one.name} ({' '.join(one.extensions)})" for one in formats.values()) or "none"
    named = f"files named *{path.suffix}" if path.suffix else "files whose names have no ending"
    problem = f"no installed format {does} {named}; installed: {known}"
    owner = ENDINGS.get(path.suffix)
    if owner and not any(path.suffix in one.extensions for one in default_registry().formats().values()):
        hint = how_to_get(owner)
    return InputError(problem, where=str(path), hint=hint)


def _fitting(path: Path, formats: Mapping[str, Format]) -> Format | None:
    """The format that the name of a file tells. Raises InputError where there are several."""
    fitting = formats_for(path.name, formats)
    if len(fitting) > 1:
        hint = "say which one it has (--format on the command line)"
        raise InputError(f"the formats {' and '.join(fitting)} all take files named so", where=str(path), hint=hint)
    return formats[fitting[0]] if fitting else None


def _format_of_folder(folder: Path, formats: Mapping[str, Format], format_name: str | None) -> str | None:
    """The format that a whole folder is a model of, if it is one."""
    wanted = [one for one in formats.values() if format_name in (None, one.name) and one.entry]
    return next((one.name for one in wanted if (folder / one.entry).is_file()), None)


def _model_in(folder: Path, formats: Mapping[str, Format], format_name: str | None) -> Path:
    """The one file ``model.onnx`` (or with another format's ending) in a folder. Raises InputError, listing others."""
    wanted = [one for one in formats.values() if format_name in (None, one.name)]
    endings = tuple(ending for one in wanted for ending in one.extensions)
    named = [path for ending in endings if (path := folder / f"model{ending}").is_file()]
    if len(named) == 1:
        return named[0]
    entries = [one.entry for one in wanted if one.entry] + [f"model{one.extensions[0]}" for one in wanted]
    problem = f"it is a folder, which holds {'several' if named else 'none'} of {', '.join(entries)}"
    models = named or models_in(folder, endings)
    if not models:
        lookalike = recognise_folder([entry.name for entry in islice(_entries(folder), MOST_NAMES)])
        if lookalike is not None:
            raise InputError(f"it is {lookalike.what}", where=str(folder), hint=lookalike.advice)
        raise InputError(f"{problem}, nor any other model", where=str(folder), hint="give the path of a model")
    listed = "\n".join(f"  {path}  {size(path.stat().st_size)}" for path in models[:LISTED])
    more = f"\n  and {len(models) - LISTED} more" if len(models) > LISTED else ""
    problem = f"{problem}; the models in it are\n{listed}{more}"
    raise InputError(problem, where=str(folder), hint="give the path of one of them")


def models_in(folder: Path, endings: tuple[str, ...], depth: int = DEPTH) -> list[Path]:
    """The models in a folder and in those below it, by their endings, nearest first; hidden folders are left out.

    ``depth``: how many levels of folders are looked through.
    """
    found: list[Path] = []
    level, seen = [folder], 0
    for _ in range(depth):
        entries = [entry for place in level for entry in islice(_entries(place), MOST_NAMES)]
        seen += len(entries)
        found += [Path(entry.path) for entry in entries if entry.name.lower().endswith(endings) and entry.is_file()]
        folders = (entry for entry in entries if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False))
        level = [Path(entry.path) for entry in folders] if seen < MOST_NAMES else []
    return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []  # a folder that may not be read


def missing_file(path: Path) -> MissingFile:
    """The error for a file that is not there, with what may have been meant."""
    return MissingFile("there is no such file", where=str(path), hint=_similar(path))


def _similar(path: Path) -> str | None:
    try:
        there = [one.name for one in islice(path.parent.iterdir(), MOST_NAMES)]
    except (OSError, ValueError):  # ValueError: a path that no system call takes
        return f"there is no folder {str(path.parent)!r}"
    from difflib import get_close_matches

    alike = get_close_matches(path.name, [name for name in there if Path(name).suffix == path.suffix], 1, ALIKE)
    near = alike or get_close_matches(path.name, there, 1, ALIKE)
    if near:
        return f"did you mean {str(path.parent / near[0])!r}?"
    return None if path.is_absolute() else f"check the path; a relative one begins at {str(Path.cwd())!r}"
