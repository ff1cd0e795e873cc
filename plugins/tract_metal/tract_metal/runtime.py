"""The runtime ``metal``: what can be chosen, and how a model is made ready."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import refuse_missing
from tract_metal.device import NAMES, MetalDevice, why_unusable

if TYPE_CHECKING:
    from tract_metal.plan import MetalPlan


@frozen
class MetalRuntime:
    """Has MLX compute models, on a GPU of Apple."""

    name: ClassVar[str] = "metal"
    device: str = field(default="gpu", metadata={"doc": "what computes: 'gpu', or 'cpu' to try things out without one"})

    def __post_init__(self) -> None:
        if self.device not in NAMES:
            raise ValueError(f"device is {self.device!r}, wanted one of {', '.join(NAMES)}")

    def why_unusable(self) -> str | None:
        """``None`` where MLX is there, and computes on the device asked for, else what is missing."""
        return why_unusable(self.device)

    def prepare(self, model: TypedModel) -> MetalPlan:
        """Compile a model. Raises Unsupported, naming every operator that MLX cannot compute and NumPy neither."""
        from tract_metal.plan import MetalPlan

        refuse_missing(model)
        return MetalPlan(model, MetalDevice.named(self.device))
