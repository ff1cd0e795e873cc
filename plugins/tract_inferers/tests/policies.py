"""Policies in plain NumPy, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tract_inferers import InfererExt, ScratchPadView, Slot


class Affine(InfererExt):
    """``act = factor * obs``. ``size``: the most rows in one call. ``told``: which agents came and went."""

    def __init__(self, factor: float, *, inputs: Sequence[Slot] = (Slot("obs", ()),), size: int = 2**62) -> None:
        self.factor = np.float32(factor)
        self.inputs = inputs
        self.size = size
        self.told: list[tuple[str, int]] = []

    def select_batch_size(self, max_count: int) -> int:
        return min(max_count, self.size)

    def infer_raw(self, pad: ScratchPadView) -> None:
        assert 1 <= len(pad) <= self.size
        np.multiply(pad.inputs[0], self.factor, out=pad.outputs[0])

    def raw_input_shapes(self) -> Sequence[Slot]:
        return self.inputs

    def raw_output_shapes(self) -> Sequence[Slot]:
        return [Slot("act", ())]

    def begin_agent(self, id: int) -> None:  # noqa: A002 - the name in the interface
        self.told.append(("begin", id))

    def end_agent(self, id: int) -> None:  # noqa: A002 - the name in the interface
        self.told.append(("end", id))


class Recurrent(InfererExt):
    """``h' = h / 2 + obs[:2] + eps``, ``act = eps + h``, in f32.

    ``size``: the most rows in one call. ``fail_after``: calls that succeed before the others fail.
    """

    def __init__(self, *, size: int = 2**62) -> None:
        self.size = size
        self.fail_after: int | None = None

    def select_batch_size(self, max_count: int) -> int:
        return min(max_count, self.size)

    def infer_raw(self, pad: ScratchPadView) -> None:
        assert 1 <= len(pad) <= self.size
        obs, h, eps = pad.inputs
        pad.outputs[0][...] = h / 2 + obs[:, :2] + eps
        pad.outputs[1][...] = eps + h
        if self.fail_after is not None:
            if self.fail_after == 0:
                pad.outputs[0][...] = np.nan
                raise RuntimeError("it fails")
            self.fail_after -= 1

    def raw_input_shapes(self) -> Sequence[Slot]:
        return [Slot("obs", (3,)), Slot("h", (2,)), Slot("eps", (2,))]

    def raw_output_shapes(self) -> Sequence[Slot]:
        return [Slot("h", (2,)), Slot("act", (2,))]
