"""The device that MLX computes on, and what is missing where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from tract_core.errors import RunError
from tract_core.frozen import frozen

NAMES: Final = ("gpu", "cpu")


def why_unusable(name: str) -> str | None:
    """``None`` where MLX computes on a device of this name, else what is missing."""
    try:
        import mlx.core as mx
    except ImportError as error:
        return f"MLX cannot be loaded ({error}): 'pip install mlx' brings it on macOS, 'pip install mlx[cpu]' on Linux"
    if name == "gpu" and not mx.metal.is_available():
        return "MLX finds no GPU of Apple here; metal(device='cpu') computes on the processor, to try things out"
    return None


@frozen
class MetalDevice:
    """A device of MLX. ``name``: ``gpu`` or ``cpu``; ``compiles``: whether MLX can write kernels of its own for it.

    For the processor, it calls a compiler of C++ for that, where there is one.
    """

    name: str
    compiles: bool = True

    @staticmethod
    def named(name: str) -> MetalDevice:
        """The device of that name, as it is on this machine."""
        return MetalDevice(name, name == "gpu" or shutil.which("g++") is not None)

    @contextmanager
    def computing(self) -> Generator[Any]:
        """What is computed inside, is computed there. Raises RunError for what goes wrong in MLX."""
        import mlx.core as mx

        try:
            with mx.stream(mx.Device(mx.gpu if self.name == "gpu" else mx.cpu)):
                yield mx
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise RunError(f"MLX says: {error}") from error
