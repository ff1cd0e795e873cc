"""The writer of the format: a model becomes an archive."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tract_core.model.typed import TypedModel
from tract_nnef.archive.tensors import tensor_file
from tract_nnef.archive.writing import write_folder, write_tar, write_tar_gz
from tract_nnef.registry import CORE
from tract_nnef.syntax.printer import print_document, print_quantization
from tract_nnef.writing.document import Writer, Written

USUAL: Final = frozenset({CORE})
"""The registries whose operators archives may use unless somebody says otherwise."""


class NnefWriter:
    """Writes archives."""

    def __init__(self, *, registries: Collection[str] = USUAL, extended: bool = False) -> None:
        """``registries``, ``extended``: see `Writer`."""
        self._registries, self._extended = registries, extended

    def write(self, model: TypedModel, path: Path) -> None:
        """Write an archive: a tar file where the name ends so, compressed where it says so, else a folder.

        Raises InputError, Unsupported.
        """
        name = path.name.lower()
        written = files_of(self.document(model), extended=self._extended)
        if name.endswith((".tgz", ".tar.gz")):
            write_tar_gz(path, written)
        elif name.endswith(".tar"):
            write_tar(path, written)
        else:
            write_folder(path, written)

    def document(self, model: TypedModel) -> Written:
        """What the archive of a model says. Raises Unsupported."""
        return Writer(model, self._registries, extended=self._extended).write()


def files_of(written: Written, *, extended: bool = False) -> Mapping[str, Sequence[Any]]:
    """The files of an archive, by name, in the order in which they are written; each is pieces of memory."""
    files: dict[str, Sequence[Any]] = {"graph.nnef": [print_document(written.document, extended=extended).encode()]}
    if written.quantization:
        files["graph.quant"] = [print_quantization(written.quantization).encode()]
    for label in sorted(written.tensors):
        files[f"{label}.dat"] = tensor_file(written.tensors[label].array)
    return files
