"""What can be said of how an archive is written: the keywords of its writer, which are flags of the command too."""

from __future__ import annotations

from typing import Final

from tract_core.plugins.descriptor import Export, Option

REGISTRIES: Final = (
    "tract_core",
    "tract_resource",
    "tract_onnx",
    "tract_pulse",
    "tract_extra",
    "tract_transformers",
)
"""The registries of the tract engines. Each has a flag of its name, which allows its operators."""

SETTINGS: Final = {
    "tract_core": Option("Allow operators of the registry tract_core, as is done unasked."),
    "no_tract_core": Option("Do not allow operators of tract_core.", flag="--no-nnef-tract-core"),
    "no_tract_py": Option("Do not allow what only this project reads.", flag="--no-nnef-tract-py"),
    **{name: Option(f"Allow operators of {name}.") for name in REGISTRIES[1:]},
    "registry": Option("Allow operators of this registry, of a plugin.", str, "NAME"),
    "opl": Option("Allow operators of all these registries.", flag="--opl"),
    "extended_identifier_syntax": Option("Write names that are no identifiers as they are."),
    "extern_all_constants": Option("Write small constants in files of their own too."),
}
"""What holds for whatever writes an archive, also on the way."""

WRITER_FLAGS: Final = {
    "override_output_name": Option("What the output is called in the archive.", str, "NAME"),
    "deterministic": Option("Write the same bytes for the same model, as is always done."),
    "compress_submodels": Option("Write submodels as compressed archives.", flag="--compress-submodels"),
    "compiled": Option(
        "Put its machine code into the archive too: for this machine, or for TARGET,TARGET as 'compile' has them.",
        str,
        "TARGETS",
        flag="--compiled",
        alone="native",
    ),
}
"""What holds for one archive."""

FORMS: Final = {
    ".nnef.tar": "loads at once: weights are mapped, not read, and processes share their memory",
    ".nnef.tgz": "smaller by what gzip gains, little on weights; all of it is read into memory, and sums are checked",
    ".nnef": "a folder of files to look into; loads as .nnef.tar does",
}
"""What archives are in, and what each is good for."""

EXPORTS: Final = {
    "": Export("Write a compressed archive.", {"container": "tgz"}),
    "tar": Export("Write an archive whose weights are mapped into memory.", {"container": "tar"}),
    "dir": Export("Write a folder.", {"container": "folder"}, "DIR"),
    "graph": Export("Write the text alone; '-' is standard output.", {"container": "text"}, "FILE|-"),
}
"""What can be written, by the end of the flag."""
