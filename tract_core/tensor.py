"""The public names of `tract_core.api.tensor`, and the element types."""

from tract_core.api.tensor import Tensor
from tract_core.data import DatumType

__all__ = ["DatumType", "Tensor"]
