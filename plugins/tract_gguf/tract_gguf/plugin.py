"""What this distribution offers: the format, and the table of the networks that it builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import Format
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_FAMILIES: Final = ("gemma", "gpt2", "gpt_oss", "llama", "neox", "olmo2", "phi3", "t5", "whisper")
"""Modules of `tract_gguf.builders` that build networks."""

_ENCODERS: Final = ("bert",)
"""Those that build encoders of texts."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """How the network of an architecture is built, and how an encoder of texts is."""
    names = {"gguf": "GGUF", "gguf_encoders": "GGUF_ENCODERS"}
    return {table: f"tract_gguf.builders.table:{name}" for table, name in names.items()}


def row_modules() -> Mapping[str, Sequence[str]]:
    """The networks, by family."""
    tables = {"gguf": _FAMILIES, "gguf_encoders": _ENCODERS}
    return {table: [f"tract_gguf.builders.{one}" for one in families] for table, families in tables.items()}


@hookimpl
def tract_rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `row_modules`, by the index beside this module."""
    return read_index(__file__)


@hookimpl
def tract_formats() -> Sequence[Format]:
    """Files, and folders; both are read only."""
    files, folders = (
        "language models of llama.cpp, with weights in blocks",
        "language models in folders of transformers",
    )
    return [
        Format("gguf", (".gguf",), "tract_gguf.loader:GgufLoader", files, signatures=((0, b"GGUF"),)),
        Format(
            "huggingface",
            (".safetensors.index.json",),
            "tract_gguf.loader:FolderLoader",
            folders,
            entry="model.safetensors",
            signatures=((8, b'{"'),),
        ),
    ]
