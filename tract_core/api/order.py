"""What a caller gives for the inputs or the outputs of a model, in the order of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from tract_core.errors import InputError

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact
    from tract_core.model.graph import OutletId
    from tract_core.model.typed import TypedModel
    from tract_core.prepared.signature import ModelSignature

Given = Sequence[Any] | Mapping[str, Any]
"""One value per input or output: in order, or by name."""

Wanted: TypeAlias = "Sequence[tuple[str, TypedFact]]"
"""The names and facts of the inputs or outputs."""


def wanted_of(model: TypedModel | ModelSignature, outlets: Sequence[OutletId]) -> Wanted:
    """The names and facts of the inputs, or of the outputs, of a model."""
    return [(model.outlet_name(outlet), model.outlet_fact(outlet)) for outlet in outlets]


def in_order(given: Given, wanted: Wanted, what: Literal["input", "output"]) -> list[Any]:
    """The values in the order of the model.

    Raises InputError for a wrong number of them, for unknown or missing names, and for what is no list or dictionary.
    """
    side = f"the model {'takes' if what == 'input' else 'gives'}"
    several = "inputs" if what == "input" else "arrays to fill"
    if isinstance(given, Mapping):
        by_name = cast("Mapping[Any, Any]", given)
        names = [name for name, _ in wanted]
        unknown = [str(name) for name in by_name if name not in names]
        missing = [name for name in names if name not in by_name]
        if unknown or missing:
            parts = [f"no {what} is named {', '.join(unknown)}"] if unknown else []
            parts += [f"missing: {', '.join(missing)}"] if missing else []
            raise InputError("; ".join(parts), hint=f"{side} {_listed(wanted)}")
        return [by_name[name] for name in names]
    if not isinstance(given, (list, tuple)):
        raise InputError(
            f"{several} are given as a list, or as a dictionary by name; got {type(given).__name__}",
            hint=f"for one {what}, write [array]",
        )
    listed = list(cast("Sequence[Any]", given))
    if len(listed) != len(wanted):
        raise InputError(f"{len(listed)} {several} were given, {side} {len(wanted)}: {_listed(wanted)}")
    return listed


def _listed(wanted: Wanted) -> str:
    return ", ".join(f"{name} ({fact})" for name, fact in wanted) or "none"
