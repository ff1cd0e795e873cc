"""Apply a transform, by name or by class, to a model."""

from __future__ import annotations

from tract_core.model.typed import TypedModel
from tract_core.plugins.registry import Registry
from tract_core.transforms.lookup import Spec, transform_like
from tract_core.transforms.transform import Transform


def apply_transform(
    model: TypedModel, transform: str | Spec | Transform, registry: Registry | None = None
) -> TypedModel:
    """The model that a transform makes of ``model``, in normal form. ``model`` itself stays as it is.

    ``transform``: a name, JSON with ``"name"`` and parameters, a spec, or a transform. Raises TransformError for one
    that is unknown, misparametrised or does not apply, PluginError for one whose plugin is not installed.
    """
    registry = registry or model.registry
    found = transform_like(transform, registry)
    with registry.blaming("tract_transforms", getattr(found, "name", ""), "apply"):
        return found.apply(model).declutter()
