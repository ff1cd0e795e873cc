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


class Named(InfererExt):
    """Nothing but names: of ``inputs`` and ``outputs``."""

    def __init__(self, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> None:
        self.inputs, self.outputs = inputs, outputs

    def select_batch_size(self, max_count: int) -> int:
        return max_count

    def infer_raw(self, pad: ScratchPadView) -> None:
        raise NotImplementedError

    def raw_input_shapes(self) -> Sequence[Slot]:
        return self.inputs

    def raw_output_shapes(self) -> Sequence[Slot]:
        return self.outputs


class Counting(InfererExt):
    """``count' = count + 1``, of any shape and type."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.slots = [Slot("count", shape, dtype)]

    def select_batch_size(self, max_count: int) -> int:
        return max_count

    def infer_raw(self, pad: ScratchPadView) -> None:
        pad.outputs[0][...] = (pad.inputs[0] + pad.inputs[0].dtype.type(1)).astype(pad.inputs[0].dtype)
        pad.outputs[1][...] = pad.inputs[0]

    def raw_input_shapes(self) -> Sequence[Slot]:
        return self.slots

    def raw_output_shapes(self) -> Sequence[Slot]:
        (slot,) = self.slots
        return [slot, Slot("seen", slot.shape, slot.dtype)]


class TwoOfEach(InfererExt):
    """Two states and two noises, element by element, in f32, so that nothing depends on who shares a batch.

    ``sizes``: the rows that a call may have, among them 1; ``fail_after``: calls that succeed before the others fail.
    """

    def __init__(self, sizes: Sequence[int], factor: float = 1.0) -> None:
        self.sizes = sorted(sizes)
        self.factor = np.float32(factor)
        self.fail_after: int | None = None
        self.calls = 0

    def step(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """``c'``, ``act``, ``h'``, for arrays of one shape."""
        (obs, h, noise, c, more), half = inputs, np.float32(0.5)
        return [c * half + h + more, (h - c + noise * obs) * self.factor + more, h * half + obs + noise]

    def select_batch_size(self, max_count: int) -> int:
        return max(size for size in self.sizes if size <= max_count)

    def infer_raw(self, pad: ScratchPadView) -> None:
        assert len(pad) in self.sizes
        self.calls += 1
        for out, value in zip(pad.outputs, self.step(pad.inputs), strict=True):
            out[...] = value
        if self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after < 0:
                raise RuntimeError("it fails")

    def raw_input_shapes(self) -> Sequence[Slot]:
        return [Slot("obs", (2,)), Slot("h", (2,)), Slot("noise", (2,)), Slot("c_in", (2,)), Slot("more", (2,))]

    def raw_output_shapes(self) -> Sequence[Slot]:
        return [Slot("c_out", (2,)), Slot("act", (2,)), Slot("h", (2,))]
