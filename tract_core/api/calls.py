"""What a caller gives for the inputs of a model, as arrays in the order of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tract_core.api.arrays import as_array
from tract_core.errors import InputError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array


def as_arrays(inputs: Sequence[Any] | Mapping[str, Any], model: TypedModel) -> list[Array]:
    """The inputs, in order or by name, as arrays in the order of the model: read-only, in native order, contiguous.

    Raises InputError for a wrong number of them, for unknown or missing names, and for what is no tensor.
    """
    wanted = [(model.outlet_name(outlet), model.outlet_fact(outlet)) for outlet in model.inputs]
    pairs = zip(_in_order(inputs, wanted), wanted, strict=True)
    return [as_array(value, name, fact.datum_type) for value, (name, fact) in pairs]


def named_inputs(inputs: Sequence[Any], named: Mapping[str, Any], names: Sequence[str]) -> list[Any] | dict[str, Any]:
    """The inputs of a call, as `as_arrays` takes them. Raises InputError for an input that is given twice."""
    if not named or len(inputs) > len(names):
        return [*inputs, *named.values()]
    by_name = dict(zip(names, inputs, strict=False))  # the others are named
    twice = [name for name in named if name in by_name]
    if twice:
        place = names.index(twice[0])
        raise InputError(f"input {twice[0]!r} is given twice: by name, and as number {place} of the others")
    return by_name | dict(named)


def _in_order(inputs: Any, wanted: Sequence[tuple[str, TypedFact]]) -> list[Any]:
    """The inputs in the order of the model.

    Raises InputError for a wrong number of them, and for unknown or missing names.
    """
    if isinstance(inputs, Mapping):
        by_name = cast("Mapping[Any, Any]", inputs)
        names = [name for name, _ in wanted]
        unknown = [str(name) for name in by_name if name not in names]
        missing = [name for name in names if name not in by_name]
        if unknown or missing:
            parts = [f"no input is named {', '.join(unknown)}"] if unknown else []
            parts += [f"missing: {', '.join(missing)}"] if missing else []
            raise InputError("; ".join(parts), hint=f"the model takes {_listed(wanted)}")
        return [by_name[name] for name in names]
    if not isinstance(inputs, (list, tuple)):
        raise InputError(
            f"inputs are given as a list, or as a dictionary by name; got {type(inputs).__name__}",
            hint="for one input, write [array]",
        )
    listed = list(cast("Sequence[Any]", inputs))
    if len(listed) != len(wanted):
        raise InputError(f"{len(listed)} inputs were given, the model takes {len(wanted)}: {_listed(wanted)}")
    return listed


def _listed(wanted: Sequence[tuple[str, TypedFact]]) -> str:
    return ", ".join(f"{name} ({fact})" for name, fact in wanted) or "none"
