"""Files of GGUF and folders of weights, which another distribution reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tract_core.errors import PluginError

GGUF: Final = b"GGUF"
"""With what such a file begins."""


WEIGHTS_END: Final = ".safetensors"
"""How files end that folders have their weights in."""


def has_weights(path: Path) -> bool:
    """Whether a path is a folder with weights in safetensors."""
    return path.is_dir() and any(path.glob(f"*{WEIGHTS_END}"))


def is_gguf(path: Path) -> bool:
    """Whether a file begins as GGUF files do."""
    try:
        with path.open("rb") as file:
            return file.read(len(GGUF)) == GGUF
    except OSError:
        return False


def gguf() -> Any:
    """The distribution that reads such files. Raises PluginError, with how to install it, where it is missing."""
    from importlib import import_module

    try:
        return import_module("tract_gguf")
    except ModuleNotFoundError as error:
        if error.name != "tract_gguf":
            raise
        from tract_core.plugins.missing import how_to_get

        raise PluginError("GGUF files are read by tract-gguf", hint=how_to_get("tract-gguf")) from None
