"""Whether one policy can take the place of another: the same inputs and outputs, by name, order, shape and type."""

from __future__ import annotations

from itertools import zip_longest

from tract_core.errors import InputError
from tract_inferers.errors import IncompatibleInferer
from tract_inferers.inferer import Inferer
from tract_inferers.slots import Slot, Slots, as_slots, listed

Interface = tuple[Slots, Slots]
"""Raw inputs and raw outputs."""


def interface_of(inferer: Inferer) -> Interface:
    """The raw inputs and outputs of an inferer. Raises InputError for what is none, as a model."""
    try:
        return as_slots(inferer.raw_input_shapes()), as_slots(inferer.raw_output_shapes())
    except (AttributeError, TypeError):
        if not isinstance(inferer, type) and hasattr(inferer, "infer_raw"):
            raise
        hint = "DynamicInferer.from_model(model) makes one of a model"
        raise InputError(f"wanted an inferer, got {_kind(inferer)}", where="inferer", hint=hint) from None


def _kind(found: object) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"


def check_compatible(old: Interface, new: Interface) -> None:
    """Raises IncompatibleInferer, with what is different and both sides of it, where they are not the same."""
    for what, before, after in zip(("input", "output"), old, new, strict=True):
        pairs = enumerate(zip_longest(before, after))
        told = [f"{what} {number}{_told(one, other)}" for number, (one, other) in pairs if one != other]
        if told:
            problem = f"{'; '.join(told)}; all {what}s of the one before: {listed(before)}"
            raise IncompatibleInferer(problem, where="new inferer")


def _told(before: Slot | None, after: Slot | None) -> str:
    if after is None:
        return f", {before}, is missing"
    return f", {after}, is one too many" if before is None else f" is {after}, wanted {before}"
