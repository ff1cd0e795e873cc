"""Calibrated quantisation: products of bytes in the place of products of floats, where the data allows it.

The public names are those in ``__init__.pyi``. They are imported when they are first used.
"""

from __future__ import annotations

from tract_core.public_names import public_names

__all__, __getattr__, __dir__ = public_names(__name__)  # pyright: ignore[reportUnsupportedDunderAll]: those of the stub
