"""Policies in NumPy, for tests of what stands around a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tract_inferers import InfererExt, ScratchPadView, Slot

from tract_core.errors import RunError

FIRST, SECOND = Slot("first", (2, 3)), Slot("second", (), np.dtype(np.int64))
SUM, TWICE = Slot("sum", (3,)), Slot("twice", (), np.dtype(np.int64))


class Toy(InfererExt):
    """sum = first summed over its first axis, plus second; twice = 2 * second. ``calls``: rows of each call.

    ``most``: rows that it takes at once. ``failing``: numbers of the calls, from 0, that fail.
    """

    def __init__(self, most: int = 1 << 62, failing: Sequence[int] = ()) -> None:
        self.most = most
        self.failing = set(failing)
        self.calls: list[int] = []

    def select_batch_size(self, max_count: int) -> int:
        return min(self.most, max_count)

    def infer_raw(self, pad: ScratchPadView) -> None:
        self.calls.append(len(pad))
        first, second = pad.inputs
        pad.outputs[0][...] = first.sum(axis=1) + second[:, None]
        pad.outputs[1][...] = 2 * second
        if len(self.calls) - 1 in self.failing:
            raise RunError("the toy is broken")

    def raw_input_shapes(self) -> Sequence[Slot]:
        return FIRST, SECOND

    def raw_output_shapes(self) -> Sequence[Slot]:
        return SUM, TWICE


def observation(number: float, second: int = 0) -> dict[str, np.ndarray]:
    """One observation of a `Toy`."""
    return {"first": np.full((2, 3), number, np.float32), "second": np.array(second)}
