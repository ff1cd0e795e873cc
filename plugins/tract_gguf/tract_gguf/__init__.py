"""GGUF files: read in place, and made into models whose weights stay in blocks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tract_core.limits import DEFAULT_LIMITS, LoadLimits

if TYPE_CHECKING:
    from tract_core.api.model import Model
    from tract_gguf.reading.file import GgufFile

__all__ = ["load", "load_halves", "read"]


def read(path: str | os.PathLike[str], *, limits: LoadLimits = DEFAULT_LIMITS) -> GgufFile:
    """What a file says and holds: its metadata and its tensors, which stay in the file until somebody looks at them.

    A folder of Hugging Face is read as if it were a file. Raises ModelError where it cannot be read, with its path.
    """
    from pathlib import Path

    from tract_gguf.folders.folder import read_folder
    from tract_gguf.reading.file import read_file

    return read_folder(Path(path), limits) if Path(path).is_dir() else read_file(path, limits)


def load(path: str | os.PathLike[str], *, limits: LoadLimits = DEFAULT_LIMITS) -> Model:
    """The model of a file or a folder: tokens and the past in, logits and the past with the new positions out.

    Of an encoder of texts: tokens and which of them count in, a vector for each token out.

    Raises ModelError for a file that cannot be read, and Unsupported for an architecture that has no builder.
    """
    from pathlib import Path
    from typing import cast

    from tract_core.api.loading import Loader

    found = Path(path)
    return cast("Model", Loader("huggingface" if found.is_dir() else "gguf").load(found, limits=limits))


def load_halves(path: str | os.PathLike[str], *, limits: LoadLimits = DEFAULT_LIMITS) -> tuple[Model, Model]:
    """The encoder and the decoder of a file or a folder that has both, as T5 and Whisper.

    Raises ModelError for a file that cannot be read, and Unsupported for an architecture without such halves.
    """
    from tract_core.api.model import Model
    from tract_core.errors import TractError
    from tract_core.limits import spending
    from tract_core.plugins import default_registry
    from tract_gguf.loader import build_halves

    try:
        with spending(limits):
            found = build_halves(read(path, limits=limits), registry=default_registry(), limits=limits)
    except TractError as error:
        raise error.at(str(path)) from error.__cause__
    encoder, decoder = (Model.from_typed(one.declutter()) for one in (found.encoder, found.decoder))
    return encoder, decoder
