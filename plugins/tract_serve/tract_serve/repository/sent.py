"""Models whose files clients send when they have them loaded: each in a folder of its own, for as long as it is served.

As Triton's extension *model repository* has it: parameters ``file:1/model.onnx``, and ``config`` with them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from tract_serve.config import NAMES
from tract_serve.errors import BadRequest, Failed, RequestTooLarge
from tract_serve.repository.layout import FoundModel, found_of
from tract_serve.settings import Settings
from tract_serve.texts import shown

FILE: Final = "file:"
"""How the parameter begins that is a file, in front of its path."""

_MOST_FILES: Final = 1000
_MOST_PARTS: Final = 4
"""Of a path: ``VERSION/MODEL/FOLDER/FILE``."""

_MOST_CHARACTERS: Final = 200
"""Of the name of a model, a folder or a file."""


class SentModels:
    """Files are written and removed by the thread that loads; `found` and `put` are for the thread of the server."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._found: dict[str, FoundModel] = {}
        self._sizes: dict[Path, int] = {}

    @property
    def found(self) -> Mapping[str, FoundModel]:
        """Those that are served, by name."""
        return self._found

    def write(self, name: str, config: str, files: Mapping[str, bytes]) -> FoundModel:
        """Write the files of a model, by their paths in its folder. It is served once it is `put`.

        Raises BadRequest for names that are none, RequestTooLarge, and Failed where the disk takes no more.
        """
        _check_part(name, "the name of the model")
        paths = {_parts_of(path): content for path, content in files.items()}
        size = sum(map(len, paths.values()))
        held, most = sum(self._sizes.values()), self._settings.limits.sent_bytes
        if held + size > most or len(paths) > _MOST_FILES:
            problem = f"the model has {len(paths)} files with {size} bytes, and those before {held}"
            hint = "unload some, put it into the repository, or start the server with --serve-limit sent_bytes=..."
            raise RequestTooLarge(f"{problem}; at most {_MOST_FILES} and {most} are kept", hint=hint)
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="tract-sent-"))
            self._sizes[folder] = size
            _write(folder, {**paths, (NAMES[0],): config.encode("utf-8", "surrogatepass")})
            found = found_of(folder, self._settings)
        except OSError as error:
            if folder is not None:
                self.forget(folder)
            problem = f"the files cannot be written: {error.strerror or error}"
            raise Failed(problem, where=f"model {name!r}") from None
        if found is None:  # it has a configuration, so there is always something to say of it
            raise AssertionError(folder)
        return replace(found, name=name)

    def put(self, found: FoundModel) -> FoundModel | None:
        """It is to be served, in place of the one before of that name, which is returned, and still there."""
        before = self._found.get(found.name)
        self._found[found.name] = found
        return before

    def settle(self, found: FoundModel, before: FoundModel | None, *, is_served: bool) -> None:
        """Either it is served, and the one before is removed; or the other way round."""
        gone, stays = (before, found) if is_served else (found, before)
        if gone is not None:
            self.forget(gone.folder)
        if stays is None:
            self._found.pop(found.name, None)
        else:
            self._found[found.name] = stays

    def drop(self, name: str) -> None:
        """It is no longer served, if it was."""
        before = self._found.pop(name, None)
        if before is not None:
            self.forget(before.folder)

    def forget(self, folder: Path) -> None:
        """Remove what was written."""
        shutil.rmtree(folder, ignore_errors=True)
        self._sizes.pop(folder, None)

    def close(self) -> None:
        """Remove all."""
        for folder in [*self._sizes]:
            self.forget(folder)


def _write(folder: Path, files: Mapping[tuple[str, ...], bytes]) -> None:
    for parts, content in files.items():
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _parts_of(path: str) -> tuple[str, ...]:
    """A path with ``/`` between its parts, which stays where it is. Raises BadRequest."""
    parts = tuple(path.split("/"))
    if len(parts) > _MOST_PARTS:
        raise BadRequest(f"{shown(path)} has {len(parts)} parts, wanted at most {_MOST_PARTS}, as 1/model.onnx")
    for part in parts:
        _check_part(part, f"a part of the path {shown(path)}")
    return parts


def _check_part(part: str, what: str) -> None:
    """Raises BadRequest for what some system takes for another place, or for nothing."""
    is_odd = not part.isprintable() or part.endswith((" ", ".")) or any(one in part for one in '/\\:*?"<>|')
    if not part or part.startswith(".") or is_odd or len(part) > _MOST_CHARACTERS:
        raise BadRequest(f"{what} is {shown(part)}, wanted a plain name, as model.onnx")
