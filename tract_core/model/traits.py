"""What several classes of the core have in common, as protocols to write types with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from tract_core.model.graph import OutletId

FactT_contra = TypeVar("FactT_contra", contravariant=True)
OpT_contra = TypeVar("OpT_contra", contravariant=True)


@runtime_checkable
class DatumTypeExt(Protocol):
    """What plain element types (`DatumType`) and quantised ones (`QuantizedType`) both answer."""

    @property
    def storage(self) -> DatumTypeExt:
        """The plain type of the stored elements."""
        ...

    @property
    def short(self) -> str:
        """The text form used in facts."""
        ...

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of the stored elements."""
        ...

    def is_quantized(self) -> bool:
        """Whether the stored integers stand for other numbers."""
        ...


@runtime_checkable
class DatumExt(Protocol):
    """A value that is known before the model runs: `Constant`, or `SymbolicArray`."""

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The elements, read-only."""
        ...


@runtime_checkable
class SpecialOps(Protocol[FactT_contra, OpT_contra]):
    """A graph that knows its own operators for inputs, and the facts that an operator gives: `TypedModel`."""

    def add_source(self, name: str, fact: FactT_contra) -> OutletId:
        """Add an input to the model."""
        ...

    def wire_node(self, name: str, op: OpT_contra, inputs: Sequence[OutletId]) -> tuple[OutletId, ...]:
        """Add an operator that reads ``inputs``; returns its outlets."""
        ...
