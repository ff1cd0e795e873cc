"""The inputs and outputs of a model, with what is known of them, apart from the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact
    from tract_core.model.graph import OutletId
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array


@frozen
class ModelSignature:
    """What a model says of its inputs and outputs. It answers as the model does.

    ``inputs``, ``outputs``: their outlets, in order; ``names``, ``facts``: by outlet. ``properties``: of the model.
    """

    inputs: tuple[OutletId, ...]
    outputs: tuple[OutletId, ...]
    names: Mapping[OutletId, str]
    facts: Mapping[OutletId, TypedFact]
    properties: Mapping[str, Array]

    @staticmethod
    def of(model: TypedModel) -> ModelSignature:
        """That of a model as it is now."""
        outlets = dict.fromkeys([*model.inputs, *model.outputs])
        return ModelSignature(
            tuple(model.inputs),
            tuple(model.outputs),
            {outlet: model.outlet_name(outlet) for outlet in outlets},
            {outlet: model.outlet_fact(outlet) for outlet in outlets},
            dict[str, Any](model.properties),
        )

    def outlet_name(self, outlet: OutletId) -> str:
        """The name of an input or an output."""
        return self.names[outlet]

    def outlet_fact(self, outlet: OutletId) -> TypedFact:
        """The fact of an input or an output."""
        return self.facts[outlet]
