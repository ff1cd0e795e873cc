"""What this distribution offers: the format, and the table of the networks that it builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tract_core.plugins.descriptor import Format
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.index import read_index

_FAMILIES: Final = ("gemma", "gpt2", "gpt_oss", "llama", "neox", "olmo2", "phi3")
"""Modules of `tract_gguf.builders` that build networks."""


@hookimpl
def tract_api_version() -> str:
    """The version of the plugin seam that this was written for."""
    return "1.0"


@hookimpl
def tract_tables() -> Mapping[str, str]:
    """How the network of an architecture is built."""
    return {"gguf": "tract_gguf.builders.table:GGUF"}


def row_modules() -> Mapping[str, Sequence[str]]:
    """The networks, by family."""
    return {"gguf": [f"tract_gguf.builders.{family}" for family in _FAMILIES]}


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
