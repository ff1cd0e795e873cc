"""Which models are of texts, and whether they write them, make vectors of them, or score them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tract_core.errors import TractError
from tract_serve.chat.recipe import Kind

_RANK: Final = 4
"""The ``pooling_type`` of GGUF files whose models give scores."""

_HEAD: Final = "cls.output.weight"
"""The tensor of a head that gives scores."""


def kind_of_texts(path: Path) -> Kind:
    """What a model of texts is served as. What cannot be read counts as a model that writes: loading it tells why."""
    try:
        import tract_gguf
        from tract_gguf.builders.table import GGUF_ENCODERS
        from tract_transformers.generation.said_of_vectors import MODULES
    except ModuleNotFoundError:
        return "text"
    try:
        file = tract_gguf.read(path)
    except TractError:
        return "text"
    pooling: Any = file.metadata.get(f"{file.architecture}.pooling_type")
    if pooling == _RANK or _HEAD in file.tensors:
        return "scores"
    from tract_core.plugins import default_registry

    is_encoder = default_registry()[GGUF_ENCODERS].find(file.architecture) is not None
    return "vectors" if is_encoder or pooling or (path.is_dir() and (path / MODULES).is_file()) else "text"
