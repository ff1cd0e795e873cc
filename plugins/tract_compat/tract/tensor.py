"""The names of `tract_core.tensor`."""

from tract_core.tensor import DatumType, Tensor

__all__ = ["DatumType", "Tensor"]
