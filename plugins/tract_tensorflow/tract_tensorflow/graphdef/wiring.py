"""Where one node of a graph becomes core operators.

Nodes added here are named after the node of the file, with a suffix; in the end, the node that yields an output gets
that output's name (`tract_core.frontend.names`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.frontend.wiring import SlotWiring
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel


@frozen
class Variable:
    """The handle of a variable, which is no tensor. ``name``: what its value is found by; ``what``: for messages."""

    name: str
    what: str = "the variable"


@frozen
class Reserved:
    """A list of tensors none of which is set: only how many they are is a tensor. ``kind``: of what elements."""

    kind: DatumType


Mark = Variable | Reserved
"""What an input of a node is that is more, or less, than a tensor."""


class GraphWiring(SlotWiring):
    """The typed model under construction, and one node's inputs in it.

    ``inputs``: one outlet per input of the node, ``None`` for the handle of a variable. ``marks``: the inputs that are
    handles, or lists of which nothing is set, whose outlet is that of their length.
    """

    def __init__(
        self,
        model: TypedModel,
        name: str,
        inputs: Sequence[OutletId | None],
        marks: Mapping[int, Mark] | None = None,
    ) -> None:
        super().__init__(model, name, inputs)
        self.marks = dict(marks or {})

    def optional_input(self, slot: int) -> OutletId | None:
        """An input that may be left out. Raises Unsupported for one that is no tensor."""
        if slot in self.marks:
            raise Unsupported(f"input {slot} is {describe(self.marks[slot])}, which this operator does not take")
        return super().optional_input(slot)

    def reserved(self, slot: int) -> tuple[Reserved, OutletId] | None:
        """An input that is a list of which nothing is set, and its length; ``None`` for any other input."""
        mark, length = self.marks.get(slot), self.slots[slot] if slot < len(self.slots) else None
        return (mark, length) if isinstance(mark, Reserved) and length is not None else None


def describe(mark: Mark) -> str:
    """A mark, for messages."""
    return "a list of which nothing is set" if isinstance(mark, Reserved) else f"{mark.what} {mark.name[:200]!r}"
