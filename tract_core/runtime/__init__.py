"""Run models: the shapes that every runtime has, and the plain NumPy interpreter."""

from __future__ import annotations

from tract_core.public_names import public_names

__all__, __getattr__, __dir__ = public_names(__name__)
