"""The reference runtime: every node computed by its NumPy meaning.

The written meaning of a model, not a fast way to run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tract_core.frozen import frozen
from tract_core.runtime.plan import TypedSimplePlan

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel


@frozen
class ReferenceRuntime:
    """The plain NumPy interpreter of the core."""

    name: ClassVar[str] = "reference"

    def why_unusable(self) -> str | None:
        """``None``: it works wherever the core does."""
        return None

    def prepare(self, model: TypedModel) -> TypedSimplePlan:
        """The plan of ``model``. Raises Unsupported, naming every operator that has no NumPy meaning."""
        return TypedSimplePlan(model)
