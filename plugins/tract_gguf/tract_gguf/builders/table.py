"""The table of networks: for the name of an architecture, what wires it.

@builds(ROWS, "llama")
def llama(network: Network) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tract_core.plugins.tables import Rows, TableKey, function_row

if TYPE_CHECKING:
    from tract_gguf.builders.network import Network
    from tract_gguf.builders.text_encoder import TextEncoder

BuildFn = Callable[["Network"], None]
"""Wires a network of the architecture, with its outputs."""

EncodeFn = Callable[["TextEncoder"], None]
"""Wires an encoder of texts of the architecture, with its outputs."""

GGUF: TableKey[str, BuildFn] = TableKey("gguf", "how the network of an architecture is built", function_row)
"""Rows are keyed by the name that files have as ``general.architecture``."""


def builds(rows: Rows, *architectures: str) -> Callable[[BuildFn], BuildFn]:
    """A row for each of these architectures."""

    def add(builder: BuildFn) -> BuildFn:
        for architecture in architectures:
            rows.add(GGUF, architecture, builder)
        return builder

    return add


GGUF_ENCODERS: TableKey[str, EncodeFn] = TableKey(
    "gguf_encoders", "how the encoder of texts of an architecture is built", function_row
)
"""Rows are keyed as those of `GGUF`."""


def encodes(rows: Rows, *architectures: str) -> Callable[[EncodeFn], EncodeFn]:
    """A row for each of these architectures of encoders."""

    def add(builder: EncodeFn) -> EncodeFn:
        for architecture in architectures:
            rows.add(GGUF_ENCODERS, architecture, builder)
        return builder

    return add
