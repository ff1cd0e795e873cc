"""What this distribution offers: the format, its tables, and how the operators of the core are spelled in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import Format
from tract_core.plugins.hookspecs import hookimpl

_FAMILIES: Final = (
    "binary",
    "cast",
    "einsum",
    "elementwise",
    "variable",
)


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """How operators are read, and how they are written."""
    return {"nnef": "tract_nnef.registry:NNEF", "nnef_write": "tract_nnef.registry:NNEF_WRITE"}


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any] | Sequence[str]]:
    """How the operators of the core are read and written."""
    modules = [f"tract_nnef.ops.{family}" for family in _FAMILIES]
    return {"nnef": modules, "nnef_write": modules}


@hookimpl
def tract_formats() -> Sequence[Format]:
    """Archives: folders, and tar files that are compressed or not."""
    endings = (".nnef.tgz", ".nnef.tar.gz", ".nnef.tar", ".tgz", ".tar.gz", ".tar", ".nnef")
    summary = "cooked models: NNEF, with the operators that the tract engines add"
    return [
        Format(
            "nnef",
            endings,
            "tract_nnef.reading.loader:Nnef",
            summary,
            writer="tract_nnef.writing.saver:NnefWriter",
            handle="tract_nnef.handle:Nnef",
            entry="graph.nnef",
        )
    ]
