"""The inputs and outputs of a model, with what is known of them, apart from the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.later import Later, already

if TYPE_CHECKING:
    import numpy as np

    from tract_core.data import DType
    from tract_core.model.fact import TypedFact
    from tract_core.model.graph import OutletId
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array


@frozen
class Ports:
    """The inputs of a model, or its outputs, as far as every call needs to know them.

    ``names``: of each; ``dtypes``: the types of NumPy, ``None`` for texts and containers. ``kinds``: element types;
    ``None`` where those of NumPy say them.
    """

    names: tuple[str, ...]
    dtypes: tuple[np.dtype[Any] | None, ...]
    kinds: tuple[DType | None, ...]

    @staticmethod
    def of(model: TypedModel, outlets: Sequence[OutletId]) -> Ports:
        """Those of a model as it is now."""
        from tract_core.data import DatumType

        kinds = [model.outlet_fact(outlet).datum_type for outlet in outlets]
        dtypes = [_dtype(kind) for kind in kinds]
        said = [None if dtype is None else DatumType.from_numpy(dtype) for dtype in dtypes]
        return Ports(
            tuple(model.outlet_name(outlet) for outlet in outlets),
            tuple(dtypes),
            tuple(None if kind == one else kind for kind, one in zip(kinds, said, strict=True)),
        )


def _dtype(kind: DType) -> np.dtype[Any] | None:
    """The type of NumPy of the numbers of a tensor; ``None`` for what holds others, or is in no array."""
    from tract_core.data import Container, DatumType

    try:
        return None if isinstance(kind, Container) or kind is DatumType.STRING else kind.storage.numpy
    except Unsupported:
        return None


@frozen
class _Said:
    """``inputs``, ``outputs``: the outlets, in order; ``names``, ``facts``: by these. ``properties``: of the model."""

    inputs: tuple[OutletId, ...]
    outputs: tuple[OutletId, ...]
    names: Mapping[OutletId, str]
    facts: Mapping[OutletId, TypedFact]
    properties: Mapping[str, Array]


@frozen
class ModelSignature:
    """What a model says of its inputs and outputs. It answers as the model does.

    ``given``, ``returned``: its inputs and outputs, for calls. ``said``: the rest, for whoever asks.
    """

    given: Ports
    returned: Ports
    said: Later[_Said]

    @staticmethod
    def of(model: TypedModel) -> ModelSignature:
        """That of a model as it is now."""
        outlets = dict.fromkeys([*model.inputs, *model.outputs])
        said = _Said(
            tuple(model.inputs),
            tuple(model.outputs),
            {outlet: model.outlet_name(outlet) for outlet in outlets},
            {outlet: model.outlet_fact(outlet) for outlet in outlets},
            dict[str, Any](model.properties),
        )
        return ModelSignature(Ports.of(model, model.inputs), Ports.of(model, model.outputs), already(said))

    @property
    def inputs(self) -> tuple[OutletId, ...]:
        """The outlets that are inputs, in order."""
        return self.said.value.inputs

    @property
    def outputs(self) -> tuple[OutletId, ...]:
        """The outlets that are outputs, in order."""
        return self.said.value.outputs

    @property
    def properties(self) -> Mapping[str, Array]:
        """Those of the model."""
        return self.said.value.properties

    def outlet_name(self, outlet: OutletId) -> str:
        """The name of an input or an output."""
        return self.said.value.names[outlet]

    def outlet_fact(self, outlet: OutletId) -> TypedFact:
        """The fact of an input or an output."""
        return self.said.value.facts[outlet]


def ports_of(model: TypedModel | ModelSignature) -> tuple[Ports, Ports]:
    """The inputs and the outputs of a model."""
    if isinstance(model, ModelSignature):
        return model.given, model.returned
    return Ports.of(model, model.inputs), Ports.of(model, model.outputs)
