"""All that the code of a kernel depends on, as text: it is read off the fields of the plan, and none is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, Final, cast

from tract_core.data import Constant
from tract_core.model.fields import field_names
from tract_llvm.elements.expressions import Apply, Expression, step_text
from tract_llvm.language.types import ElementType
from tract_llvm.objects.origins import origin_of


def plan_text(plan: object) -> str:
    """All that a plan says, equal for equal plans only, and the same in every process.

    Types and functions are told by their origin, so that the text changes with their sources too; constants by their
    digest. Raises TypeError for what cannot be told.
    """
    told = _TOLD.get(type(plan))
    if told is not None:
        return told(plan)
    if isinstance(plan, tuple):
        parts = cast("tuple[object, ...]", plan)  # isinstance does not tell of what
        return f"({', '.join([plan_text(part) for part in parts])})"
    if isinstance(plan, Enum):
        return f"{origin_of(type(plan))}.{plan.name}"
    if is_dataclass(plan) and not isinstance(plan, type):
        fields = [f"{name}={plan_text(getattr(plan, name))}" for name in field_names(plan)]
        return f"{origin_of(type(plan))}({', '.join(fields)})"
    if callable(plan):
        return origin_of(plan)
    raise TypeError(f"the code of a kernel cannot depend on {plan!r}: nothing tells it from others")


_TOLD: Final[Mapping[type, Callable[[Any], str]]] = {
    **dict.fromkeys((bool, int, float, str, type(None)), repr),
    Expression: lambda one: f"{{{one.text()}}}",
    Apply: lambda one: f"{{{step_text(one)}}}",
    ElementType: lambda one: one.name,
    Constant: lambda one: one.digest.hex(),
}
"""What the fields of plans hold, by type, but for what has fields itself."""
