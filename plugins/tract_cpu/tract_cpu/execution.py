"""The memory and the tables with which a compiled model runs at certain sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.dims import Dim, evaluate
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_cpu.aligned import ALIGNMENT, aligned
from tract_cpu.binding import Bound, Layout
from tract_cpu.native.executor import FRAME, FULL, LINE
from tract_cpu.native.objects import address_of
from tract_cpu.native.repeat import Repeat, look_closer
from tract_cpu.native.sharing import Sharing
from tract_cpu.outputs import Output

WORK_FOR_THREADS: Final = 1 << 20
"""How much work others have to take off a run so that they are woken: that takes as long as so many products."""

WORK_TO_SHARE: Final = 1 << 14
"""The same for one step, which is offered to those that are awake already."""

WORK_FOR_OTHERS: Final = 1 << 17
"""From how much work on a run lets other threads run Python meanwhile: below it, it is over in some microseconds."""


class Arena:
    """Memory for tensors, whose content changes: a piece for what has its sizes from each part of a run on.

    ``begins``: the addresses of the slots whose sizes are known by now.
    """

    def __init__(self, slots: Array, stages: Sequence[int], before: Arena | None) -> None:
        """``slots``: where those of this part begin in its piece, in bytes, and its size. ``stages``: of all slots."""
        piece = aligned(np.empty, [int(slots[-1])], np.uint8)
        self._pieces: list[Array] = [piece] if before is None else [*before._pieces, piece]
        self._stages = stages
        self.begins: Array = address_of(piece) + slots[:-1]
        if before is not None:
            earlier = np.array(stages, np.int64) < len(self._pieces) - 1
            self.begins[earlier] = before.begins[earlier]

    def slot(self, number: int) -> tuple[Array, int]:
        """The piece that a slot lies in, and where in it, in bytes."""
        piece = self._pieces[self._stages[number]]
        return piece, int(self.begins[number]) - address_of(piece)

    def may_hold(self, array: Array) -> bool:
        """Whether an array may lie here."""
        return any(np.may_share_memory(array, piece) for piece in self._pieces)


class Execution:
    """Used by one state at a time.

    ``symbols``: the sizes. ``frame``: the address of what the executor takes; ``frame_within``: the same for going on
    in the middle of a loop, which has moved addresses. ``steps``: how many native steps there
    are. ``passed``: the addresses that a run passes. ``status``: the address where kernels refuse. ``stage``: the part
    of a run that this is for, which begins when sizes come up; ``before``: what the part before was run with, whose
    memory this one goes on with. ``outputs``: those that native code fills and whose sizes are known from this part on,
    by their numbers; ``filled``: their shapes and types. ``shapes``: those of the inputs of the last turn; ``given``:
    the values of symbols that the caller gave with them; ``repeat``: what does a turn with such inputs again.
    ``never_stops``: whether loops are done before anybody has to look at the clock. ``seen``: tensors in its memory, as
    views that nobody can write to, for those that the host looks at in every turn. ``sharing``: what says whether runs
    are shared with other threads; without it they are, where there is work for these.
    """

    sharing: Sharing | None = None

    def __init__(
        self,
        layout: Layout,
        kernels: Sequence[int],
        outputs: Mapping[int, tuple[Sequence[Dim], np.dtype[Any]]],
        symbols: Mapping[str, int],
        threads: int,
        *,
        before: Execution | None = None,
    ) -> None:
        """``kernels``: the address of each step's kernel. ``threads``: how many there may be."""
        self.before, self.stage = before, 0 if before is None else before.stage + 1
        bound = layout.bind(symbols, self.stage)
        self.symbols, self.steps = dict(symbols), len(kernels)
        sizes = {number: tuple(evaluate(dim, symbols) for dim in shape) for number, (shape, _) in outputs.items()}
        self.shapes: list[tuple[int, ...]] | None = None
        self.given: Mapping[str, int] | None = None
        self.filled = [(sizes[number], dtype) for number, (_, dtype) in outputs.items()]
        self.outputs = {number: Output(*one) for number, one in zip(outputs, self.filled, strict=True)}
        self.arena = Arena(bound.slots, layout.arena.stages, before and before.arena)
        self.repeat: Repeat = look_closer
        self.seen: dict[OutletId, Array] = {}
        self.is_short = int((bound.work * bound.times).sum()) + bound.work_of_loops < WORK_FOR_OTHERS
        self.never_stops = bound.work_of_loops < FULL
        parts = _parts(bound, threads)
        self.threads = 1 if parts is None else threads
        each = -(-bound.scratch // ALIGNMENT) * ALIGNMENT
        self._scratch = aligned(np.empty, [each * self.threads], np.uint8)
        self._arguments = bound.arguments
        self._arguments[layout.in_arena[0]] += self.arena.begins[layout.in_arena[1]]
        begin = address_of(self._arguments)
        self._arguments[layout.in_arguments[0]] = begin + 8 * layout.in_arguments[1]
        self.passed: Array = np.zeros(layout.passed_count, np.int64) if before is None else before.passed.copy()
        self._arguments[layout.in_passed[0]] = address_of(self.passed) + 8 * layout.in_passed[1]
        self._fresh = self._arguments.copy() if layout.loops else None
        rows = [kernels, [begin + 8 * one for one in layout.begins], bound.tasks, 1 if parts is None else parts]
        self._steps = np.array(np.broadcast_arrays(*rows), np.int64).T.copy()
        patches = [(begin + 8 * place, number, self._arguments[place]) for place, number in layout.passed]
        self._patches = np.array(patches, np.int64).reshape(-1, 3)
        status = np.zeros(2, np.int64)
        self.passed[-1] = self.status = address_of(status)
        self._status = memoryview(status.data)
        self.course = np.zeros(LINE, np.int64)
        tables = (
            self._steps,
            self._patches,
            len(patches),
            self.passed,
            self._scratch,
            each,
            status,
            self.course,
        )
        self._frame = np.array([one if isinstance(one, int) else address_of(one) for one in tables], np.int64)
        self.memory = (self._frame, self.arena, self._scratch, self._arguments, *tables)
        self.frame = address_of(self._frame)
        self._frame_within = self._frame.copy()
        self._frame_within[FRAME.index("patch_count")] = 0
        self.frame_within = address_of(self._frame_within)

    def begin_anew(self) -> None:
        """Forget where loops are that were left in the middle."""
        self.course[:] = 0
        if self._fresh is not None:
            self._arguments[:] = self._fresh

    def refused(self) -> int | None:
        """The step that could not do its work in the last call, so that those after it did not run. Told once."""
        if not self._status[0]:
            return None
        self._status[0] = 0
        self.begin_anew()
        return self._status[1]


def _parts(bound: Bound, threads: int) -> Array | None:
    """In how many parts each step is shared: 1 where that takes longer; ``None`` where nobody is worth waking."""
    gain = bound.work - bound.work // threads - WORK_TO_SHARE
    shared = (gain >= 0) & (bound.tasks > 1)
    if threads == 1 or not shared.any() or (gain * bound.times)[shared].sum() < WORK_FOR_THREADS:
        return None
    return np.where(shared, np.minimum(bound.tasks, threads), 1)
