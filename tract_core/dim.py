"""The public name of `tract_core.api.dim`."""

from tract_core.api.dim import Dim

__all__ = ["Dim"]
