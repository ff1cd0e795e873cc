"""Policies that take as long as they are told, by a clock that only they move."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tract_inferers import InfererExt, ScratchPadView, Slot

from tract_core.errors import RunError

SERIAL = Slot("serial", (), np.dtype(np.int64))
ECHO = Slot("echo", (), np.dtype(np.int64))


class SimulatedClock:
    """Seconds since the beginning."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Echo(InfererExt):
    """Says what it is asked. ``meanwhile``: what happens while so many rows run. ``log``: its name at each run."""

    def __init__(self, meanwhile: Callable[[int], object] = lambda _: None, name: int = 0) -> None:
        self.meanwhile = meanwhile
        self.name = name
        self.log: list[int] = []

    def select_batch_size(self, max_count: int) -> int:
        return max_count

    def infer_raw(self, pad: ScratchPadView) -> None:
        self.log.append(self.name)
        self.meanwhile(len(pad))
        pad.outputs[0][...] = pad.inputs[0]

    def raw_input_shapes(self) -> Sequence[Slot]:
        return [SERIAL]

    def raw_output_shapes(self) -> Sequence[Slot]:
        return [ECHO]


class Broken(Echo):
    """Fails, as often as it is asked, when it has moved what there is to move."""

    def infer_raw(self, pad: ScratchPadView) -> None:
        super().infer_raw(pad)
        raise RunError("it is broken")


def moving(clock: SimulatedClock, fixed: float, per_row: float = 0.0) -> Callable[[int], None]:
    """What moves a clock by ``fixed + per_row * rows`` seconds."""

    def move(rows: int) -> None:
        clock.now += fixed + per_row * rows

    return move


def serial(number: int) -> dict[str, np.ndarray]:
    """An observation of an `Echo`."""
    return {"serial": np.array(number)}


def told(responses: object) -> dict[int, dict[int, int]]:
    """What `Echo`es said, by brain and agent."""
    return {int(brain): {agent: int(one["echo"]) for agent, one in of.items()} for brain, of in responses.items()}
