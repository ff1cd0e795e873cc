"""What a transform is: a frozen dataclass whose fields are its parameters."""

from __future__ import annotations

from typing import ClassVar, Protocol

from tract_core.model.typed import TypedModel


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
