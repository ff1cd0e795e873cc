"""Transforms: whole-model rewrites, by name or by class, each a frozen dataclass whose fields are its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.registry import Registry
    from tract_core.transforms.lookup import Spec

__all__ = ["Transform", "apply_transform"]


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


def apply_transform(
    model: TypedModel, transform: str | Spec | Transform, registry: Registry | None = None
) -> TypedModel:
    """The model that a transform makes of ``model``, in normal form. ``model`` itself stays as it is.

    ``transform``: a name, JSON with ``"name"`` and parameters, a spec, or a transform. Raises TransformError for one
    that is unknown, misparametrised or does not apply, PluginError for one whose plugin is not installed.
    """
    from tract_core.transforms.lookup import transform_like

    registry = registry or model.registry
    found = transform_like(transform, registry)
    with registry.blaming("tract_transforms", getattr(found, "name", ""), "apply"):
        return found.apply(model).declutter()
