"""Find the transform that a user means, from a name, JSON, or a spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

from tract_core.errors import InputError, TransformError, meant
from tract_core.plugins.missing import RESERVED, not_installed
from tract_core.plugins.parameters import build, check_parameters, parse_call
from tract_core.plugins.registry import Registry
from tract_core.transforms.transform import Transform


@runtime_checkable
class Spec(Protocol):
    """A transform by name, with parameters that JSON can hold."""

    name: ClassVar[str]

    def parameters(self) -> dict[str, Any]:
        """Its parameters."""
        ...


def transform_like(value: Any, registry: Registry) -> Transform:
    """The transform that ``value`` stands for, see `tract_core.transforms.apply.apply_transform`."""
    if isinstance(value, str):
        return _from_json(value, registry) if value.lstrip().startswith("{") else _from_call(value, registry)
    if isinstance(value, Spec):
        return transform_named(value.name, value.parameters(), registry)
    if hasattr(value, "apply") and not isinstance(value, type):
        check_parameters(value)
        return value
    found = value.__name__ if isinstance(value, type) else type(value).__name__
    raise TransformError(
        f"{found} is no transform",
        hint="give a name, JSON that starts with {, a spec such as SetSymbols({'B': 1}), or an instance of a transform",
    )


def transform_class(name: str, registry: Registry) -> type[Any]:
    """The class of the transform of that name.

    Raises TransformError, or PluginError when its plugin is not installed.
    """
    offered = registry.transforms()
    if name in offered:
        return registry.load("tract_transforms", name)
    if name in RESERVED["transform"]:
        raise not_installed("transform", name, sorted(offered))
    near = meant(name, offered)
    raise TransformError(
        f"transform `{name}' could not be found; installed transforms: {', '.join(sorted(offered))}",
        hint=f"did you mean {near[0]!r}?" if near else "'tract list-transforms' shows them with their parameters",
    )


def transform_named(name: str, parameters: Mapping[str, Any], registry: Registry) -> Transform:
    """The transform of that name, with these parameters. Raises TransformError, or PluginError."""
    written = name.strip().replace("-", "_")
    kind = transform_class(written, registry)
    with registry.blaming("tract_transforms", written, "parameters"):
        return build(kind, written, parameters)


def _from_call(text: str, registry: Registry) -> Transform:
    if "(" not in text:
        return transform_named(text, {}, registry)
    try:
        name, parameters = parse_call(text)
    except InputError as error:
        raise TransformError(error.problem, hint=error.hint) from None
    return transform_named(name, parameters, registry)


def _from_json(text: str, registry: Registry) -> Transform:
    try:
        content: Any = json.loads(text)
    except ValueError as error:
        raise TransformError(f"{text!r} is no JSON: {error}") from None
    name = content.pop("name", None)
    if not isinstance(name, str):
        raise TransformError(f"missing 'name' field in {text!r}", hint='write {"name": "set_symbols", "values": {...}}')
    return transform_named(name, content, registry)
