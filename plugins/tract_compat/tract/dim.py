"""The names of `tract_core.dim`."""

from tract_core.dim import Dim

__all__ = ["Dim"]
