"""What a model wants and gives, for one agent."""

from __future__ import annotations

from tract_core.api.inference_model import InferenceModel
from tract_core.api.model import Model
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_inferers.models.single import single_of
from tract_inferers.slots import Slot


@frozen
class ModelApi:
    """The inputs and outputs of a model for one agent, in its order: names as the model has them, shapes, types."""

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    @classmethod
    def for_model(cls, model: InferenceModel | Model | TypedModel) -> ModelApi:
        """Those of a model. Raises Unsupported for one whose inputs have no axis of agents."""
        found = single_of(model)
        return cls(found.inputs, found.outputs)

    @classmethod
    def for_typed_model(cls, model: InferenceModel | Model | TypedModel) -> ModelApi:
        """The same as `for_model`."""
        return cls.for_model(model)
