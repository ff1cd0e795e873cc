"""The parameters of transforms: how they are documented, listed, and read from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, cast

from tract_core.errors import TransformError


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: a field of the dataclass that a transform is. ``doc`` is taken from the field's metadata.

    ``key``: its name in JSON and on the command line; ``type``: the annotation, as text; ``default``: ``None`` also
    where there is none, see ``required``.
    """

    key: str
    field: str
    doc: str
    type: str
    required: bool
    default: Any


def parameters_of(transform: type[Any]) -> list[Parameter]:
    """The parameters of a transform, in order. A field such as ``from_`` is written ``from``."""
    return [_describe(field) for field in fields(transform)]


def _describe(field: Field[Any]) -> Parameter:
    factory: Any = field.default_factory
    default: Any = field.default if field.default is not MISSING else None if factory is MISSING else factory()
    required = field.default is MISSING and factory is MISSING
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    return Parameter(field.name.rstrip("_"), field.name, field.metadata.get("doc", ""), kind, required, default)


def build(transform: type[Any], name: str, given: Mapping[str, Any]) -> Any:
    """The transform with these parameters, by their keys (``-`` and ``_`` are the same); lists become tuples.

    Raises TransformError for a parameter that is unknown or missing, or of which the transform makes no sense.
    """
    known = {one.key: one for one in parameters_of(transform)}
    values = {key.replace("-", "_"): value for key, value in given.items()}
    unknown = [key for key in values if key not in known]
    if unknown:
        listed = ", ".join(known) or "none"
        raise TransformError(f"{name} has no parameter {', '.join(map(repr, unknown))}; its parameters: {listed}")
    required = [one.key for one in known.values() if one.required]
    if any(key not in values for key in required):
        plural = "parameters" if len(required) > 1 else "parameter"
        raise TransformError(f"{name} transform requires {' and '.join(map(repr, required))} {plural}")
    fitting = {known[key].field: _fixed(value) for key, value in values.items()}
    try:
        return transform(**fitting)
    except (TypeError, ValueError) as error:
        raise TransformError(f"{name}: {error}", hint=f"given were {dict(given)!r}") from error


def _fixed(value: Any) -> Any:
    """A list as a tuple, which a frozen transform can hold; anything else as it is."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def texts(name: str, key: str, value: Any) -> tuple[str, ...]:
    """``value`` as a tuple of texts; a single text is a tuple of one. Raises TransformError for anything else."""
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType]: checked next
    if not all(isinstance(item, str) for item in items):
        raise TransformError(f"{name}: {key!r} is {value!r}, wanted a list of texts")
    return tuple(items)
