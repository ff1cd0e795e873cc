"""The writer of the format: a model becomes an archive, or its text alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tract_core.data.blocks import Blocks
from tract_core.errors import InputError, PluginError
from tract_core.model.typed import TypedModel
from tract_core.plugins.missing import how_to_get
from tract_core.saving import whole_file
from tract_nnef.archive.tensors import tensor_file
from tract_nnef.archive.writing import Files, tar_bytes, tar_gz_bytes, write_folder, write_tar, write_tar_gz
from tract_nnef.documents.operators import check_registry
from tract_nnef.documents.writer import Writer, Written
from tract_nnef.flags import REGISTRIES, SETTINGS, WRITER_FLAGS
from tract_nnef.options import Writing, chosen
from tract_nnef.registry import COMPILED, NNEF, NNEF_BESIDE, PY
from tract_nnef.syntax.printer import print_document, print_quantization
from tract_nnef.writing.extensions import with_sizes_in_full


class NnefWriter:
    """Writes archives.

    ``container``: ``folder``, ``tar``, ``tgz``, or ``text`` for ``graph.nnef`` alone; without it the name decides.
    ``flags``: those of `tract_nnef.flags`.
    """

    def __init__(self, *, container: str | None = None, how: Writing | None = None, **flags: Any) -> None:
        """Raises InputError for a flag that is none."""
        known = {**SETTINGS, **WRITER_FLAGS}
        unknown = sorted(flags.keys() - known.keys())
        if unknown:
            raise InputError(f"archives are not written with {unknown[0]!r}; there are {', '.join(sorted(known))}")
        self._container = container
        self._how = how or Writing(
            chosen(flags),
            extended=flags.get("extended_identifier_syntax", False),
            extern_all=flags.get("extern_all_constants", False),
            output_name=flags.get("override_output_name"),
            pack_submodels=flags.get("compress_submodels", False),
            compiled=flags.get("compiled"),
        )

    def write(self, model: TypedModel, path: Path) -> None:
        """Write an archive, whole or not at all. Raises InputError, Unsupported; files are replaced, folders are not.

        It is a tar file where the name ends so, compressed where the name says so, else a folder.
        """
        if self._container == "text":
            with whole_file(path) as file:
                file.write(self.text(model).encode())
            return
        if (self._container or _by_name(path)) == "tgz":
            self._refuse_code()
        self.write_files(self.files(model), path)

    def write_files(self, files: Files, path: Path) -> None:
        """Write the files of an archive, as `write` does. Raises InputError."""
        container = self._container or _by_name(path)
        if container == "tgz":
            write_tar_gz(path, files, self._how.level)
        else:
            (write_tar if container == "tar" else write_folder)(path, files)

    def text(self, model: TypedModel) -> str:
        """The text of the document, for standard output. Raises Unsupported, InputError where an archive is meant."""
        if self._container not in (None, "text"):
            raise InputError("an archive is no text, and is not written to standard output", hint="name a file")
        return print_document(self.document(model).document, extended=self._how.extended)

    def to_bytes(self, model: TypedModel) -> bytes:
        """An archive in memory: a compressed one, unless ``container`` is ``tar``. Raises Unsupported."""
        if self._container == "tar":
            return self.to_tar(model)
        self._refuse_code()
        return tar_gz_bytes(self.files(model))

    def to_tar(self, model: TypedModel) -> bytes:
        """An archive in memory that is not compressed. Raises Unsupported."""
        return tar_bytes(self.files(model))

    def document(self, model: TypedModel) -> Written:
        """What the archive of a model says. Raises Unsupported."""
        how = self._how
        for name in sorted(how.registries.difference(REGISTRIES, (PY,))):
            check_registry(name, model.registry[NNEF])
        if how.output_name is not None:
            model = _with_output(model, how.output_name)
        model = with_sizes_in_full(model, ours=PY in how.registries)
        return Writer(model, how.registries, extended=how.extended, extern_all=how.extern_all, held=how.held).write()

    def files(self, model: TypedModel) -> Files:
        """The files of the archive, by name, in the order in which they are written. Raises Unsupported."""
        return {**self.files_of(self.document(model)), **self._beside(model)}

    def _beside(self, model: TypedModel) -> Files:
        """What lies beside the model. Raises PluginError where nobody makes it."""
        if self._how.compiled is None:
            return {}
        compiled_for = model.registry[NNEF_BESIDE].find(COMPILED)
        if compiled_for is None:
            raise PluginError("no plugin that is installed compiles models", hint=how_to_get("tract-cpu"))
        files = compiled_for(model, self._how.compiled)
        return {f"{COMPILED}/{name}": content for name, content in files.items()}

    def _refuse_code(self) -> None:
        if self._how.compiled is not None:
            problem = "machine code is mapped from where it lies, which a compressed archive does not allow"
            raise InputError(problem, hint="write a .nnef.tar, or a folder")

    def files_of(self, written: Written) -> Files:
        """The files of the archive that a document is in. Raises Unsupported for a submodel that cannot be written."""
        text = print_document(written.document, extended=self._how.extended)
        files: dict[str, Sequence[Any]] = {"graph.nnef": [text.encode()]}
        if written.quantization:
            files["graph.quant"] = [print_quantization(written.quantization).encode()]
        for label in sorted(written.tensors):
            held = written.tensors[label]
            files[f"{label}.dat"] = tensor_file(held if isinstance(held, Blocks) else held.array)
        inner = NnefWriter(how=replace(self._how, output_name=None, compiled=None))
        for label, submodel in written.submodels.items():
            if self._how.pack_submodels:
                files[f"{label}.nnef.tgz"] = [inner.to_bytes(submodel)]
            else:
                files |= {f"{label}/{name}": content for name, content in inner.files(submodel).items()}
        return files


def _with_output(model: TypedModel, name: str) -> TypedModel:
    """The same model, whose output has another name. Raises InputError unless it has one output."""
    if len(model.outputs) != 1:
        raise InputError(f"the model has {len(model.outputs)} outputs, and one of them cannot be told to be {name!r}")
    (output,) = model.outputs
    others = (outlet for node in model.live_nodes() for outlet in node.outlets() if outlet != output)
    if output in model.inputs or any(model.outlet_name(outlet) == name for outlet in others):
        raise InputError(f"the output cannot be called {name!r}: another tensor of the model is")
    result = model.clone()
    result.set_label(output, name)
    return result


def _by_name(path: Path) -> str:
    name = path.name.lower()
    return "tgz" if name.endswith((".tgz", ".tar.gz")) else "tar" if name.endswith(".tar") else "folder"
