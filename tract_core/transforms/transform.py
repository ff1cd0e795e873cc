"""What a transform is: a frozen dataclass whose fields are its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol, runtime_checkable

from tract_core.analysis.findings import Finding, Sheet
from tract_core.model.typed import TypedModel
from tract_core.runtime.streams import Streamed


class Transform(Protocol):
    """A change to a whole model.

    ``name``: as users write it. The fields of the dataclass are the parameters; `tract_core.plugins.parameters`
    says how they are documented and read.
    """

    name: ClassVar[str]

    def apply(self, model: TypedModel) -> TypedModel:
        """The changed model. ``model`` itself stays as it is; constants are shared between both.

        Raises TransformError when the transform does not apply to this model.
        """
        ...


@runtime_checkable
class ExaminingTransform(Transform, Protocol):
    """A transform that takes part in ``tract MODEL doctor``."""

    def examine(self, model: TypedModel) -> Iterable[Finding | Sheet]:
        """What a user should know before it is applied to ``model``, which stays as it is."""
        ...


@runtime_checkable
class StreamingTransform(Transform, Protocol):
    """A transform that makes a model over pulses of one over a whole signal: ``compare --stream`` compares the two."""

    def streams(self, model: TypedModel) -> Mapping[str, Streamed]:
        """The tensors of ``model``, by name, as far as they are in the model over pulses, and how they come there."""
        ...
