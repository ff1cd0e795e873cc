"""Whether one policy can take the place of another: the same inputs and outputs, by name, order, shape and type."""

from __future__ import annotations

from tract_inferers.errors import IncompatibleInferer
from tract_inferers.inferer import Inferer
from tract_inferers.slots import Slots, as_slots, listed

Interface = tuple[Slots, Slots]
"""Raw inputs and raw outputs."""


def interface_of(inferer: Inferer) -> Interface:
    """The raw inputs and outputs of an inferer."""
    return as_slots(inferer.raw_input_shapes()), as_slots(inferer.raw_output_shapes())


def check_compatible(old: Interface, new: Interface) -> None:
    """Raises IncompatibleInferer, with both sides, where they are not the same."""
    for what, before, after in zip(("inputs", "outputs"), old, new, strict=True):
        if before != after:
            problem = f"its {what} are {listed(after)}; those of the one before are {listed(before)}"
            raise IncompatibleInferer(problem, where="new inferer")
