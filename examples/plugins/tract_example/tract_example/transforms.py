"""Smooth the outputs of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tract_core.data import Constant
from tract_core.errors import TransformError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_example.smooth import Smooth


@dataclass(frozen=True, slots=True)
class SmoothOutputs:
    """Take a moving average of every output of floats."""

    name: ClassVar[str] = "smooth_outputs"
    decay: float = field(metadata={"doc": "the weight of the past, from 0 to 1"})
    axis: int = field(default=0, metadata={"doc": "the axis of time"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with an average behind every output of floats. Raises TransformError for an odd decay."""
        if not 0 <= self.decay <= 1:
            raise TransformError(f"smooth_outputs: 'decay' is {self.decay}, wanted a number from 0 to 1")
        result = model.clone()
        result.set_outputs([self._smooth(result, outlet) for outlet in result.outputs])
        return result

    def _smooth(self, model: TypedModel, outlet: OutletId) -> OutletId:
        if not model.outlet_fact(outlet).datum_type.is_float():
            return outlet
        name = model.outlet_name(outlet)
        op = Smooth(self.axis, Constant(np.array(self.decay, np.float32)))
        (smoothed,) = model.wire_node(model.unique_name(f"{name}.smooth"), op, [outlet])
        model.outlet_labels.pop(outlet, None)
        model.set_label(smoothed, name)
        return smoothed
