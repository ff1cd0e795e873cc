"""Where observations of many agents lie side by side: a contiguous array per input and output, agents along axis 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tract_inferers.slots import Slot, Slots

Array = np.ndarray[Any, Any]

CAPACITY: Final = 6
"""Rows that a pad has room for at first."""


class ScratchPadView:
    """Rows that an inferer is to run: what it reads, and where it writes.

    ``ids``: the agent of each row, numbers from 0 to 2**64 - 1, each once. ``inputs``, ``outputs``: one array per raw
    input and raw output, in order, contiguous, of shape ``(rows, *shape)``. ``brain``: the number of the brain in its
    `Runtime`, and 0 elsewhere. ``slots``: the raw inputs and the raw outputs.
    """

    __slots__ = ("brain", "ids", "inputs", "outputs", "slots")

    def __init__(
        self,
        slots: tuple[Slots, Slots],
        ids: list[int],
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        brain: int = 0,
    ) -> None:
        self.slots = slots
        self.ids = ids
        self.inputs = inputs
        self.outputs = outputs
        self.brain = brain

    def __len__(self) -> int:
        return len(self.ids)

    def input_slot(self, slot: int) -> Array:
        """The array of a raw input, shape ``(rows, *shape)``. It may be written to: noise and memory are."""
        return self.inputs[slot]

    def output_slot(self, slot: int) -> Array:
        """The array of a raw output, shape ``(rows, *shape)``, which the inferer fills."""
        return self.outputs[slot]

    def input_slot_with_id(self, slot: int) -> tuple[list[int], Array]:
        """The agents of the rows, and `input_slot`."""
        return self.ids, self.inputs[slot]

    def output_slot_with_id(self, slot: int) -> tuple[list[int], Array]:
        """The agents of the rows, and `output_slot`."""
        return self.ids, self.outputs[slot]

    def input_name(self, slot: int) -> str:
        """The name of a raw input."""
        return self.slots[0][slot].name

    def output_name(self, slot: int) -> str:
        """The name of a raw output."""
        return self.slots[1][slot].name

    def rows(self, first: int, count: int) -> ScratchPadView:
        """The rows ``first`` to ``first + count``, on the same memory."""
        part = slice(first, first + count)
        inputs = [array[part] for array in self.inputs]
        return ScratchPadView(self.slots, self.ids[part], inputs, [array[part] for array in self.outputs], self.brain)


class ScratchPad:
    """Arrays that grow with the number of agents, and are used again for the next batch.

    ``inputs``: one array per raw input, of shape ``(capacity, *shape)``, of which the first ``len(pad)`` rows count.
    ``ids``: the agent of each row.
    """

    __slots__ = ("ids", "inputs", "slots")

    def __init__(self, inputs: Slots, outputs: Slots, capacity: int = CAPACITY) -> None:
        self.slots: tuple[Slots, Slots] = (inputs, outputs)
        self.ids: list[int] = []
        self.inputs = [slot.zeros(capacity) for slot in inputs]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def capacity(self) -> int:
        """Rows that there is room for without growing."""
        return len(self.inputs[0]) if self.inputs else 0

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all; those that are there keep their values."""
        if rows > self.capacity and self.inputs:
            room = max(rows, 2 * self.capacity)
            self.inputs = [_grown(array, slot, room) for array, slot in zip(self.inputs, self.slots[0], strict=True)]

    def next(self, agent: int) -> int:
        """Begin the row of an agent: its number. What its inputs hold is what was there before, until `push`."""
        row = len(self.ids)
        if row >= self.capacity:
            self.reserve(row + 1)
        self.ids.append(agent)
        return row

    def push(self, slot: int, value: Any) -> None:
        """Write one input of the last row."""
        self.inputs[slot][len(self.ids) - 1] = value

    def chunk(self, first: int, count: int, brain: int = 0) -> ScratchPadView:
        """The rows ``first`` to ``first + count``, those that there are, with fresh arrays for the outputs."""
        part = slice(first, min(first + count, len(self.ids)))
        ids = self.ids[part]
        inputs = [array[part] for array in self.inputs]
        return ScratchPadView(self.slots, ids, inputs, [slot.empty(len(ids)) for slot in self.slots[1]], brain)

    def clear(self) -> None:
        """Forget the rows. The memory stays."""
        self.ids = []


def _grown(array: Array, slot: Slot, room: int) -> Array:
    grown = slot.zeros(room)
    grown[: len(array)] = array
    return grown
