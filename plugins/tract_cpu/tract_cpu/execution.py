"""The memory and the tables with which a compiled model runs at certain sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tract_core.dims import evaluate
from tract_core.limits import MAX_SIZE
from tract_core.runtime.held import owner_of
from tract_cpu.aligned import aligned
from tract_cpu.native.executor import FRAME, FULL, LINE_WORDS, OVER, STEP, STOPPED
from tract_cpu.native.objects import address_of
from tract_cpu.native.repeat import Repeat, look_closer
from tract_cpu.outputs import Output

if TYPE_CHECKING:
    from tract_core.dims import Dim
    from tract_core.model.graph import OutletId
    from tract_core.plugins.keys import Array
    from tract_cpu.binding import ArgumentLayout, Bound, Section
    from tract_cpu.native.sharing import Sharing

WORK_FOR_OTHERS: Final = 1 << 17
"""From how much work on a run lets other threads run Python meanwhile: below it, it is over in some microseconds."""

LaterKey: TypeAlias = "tuple[bytes, ...] | tuple[tuple[str, int], ...]"
"""By what the next stage of a run is known: by all that was read for it, or by the sizes that came up."""

_ARRAY: Final[Any] = np.ndarray


class Arena:
    """Memory for tensors, whose content changes: a piece for what has its sizes from each stage of a run on.

    ``begins``: the addresses of the slots whose sizes are known by now.
    """

    def __init__(self, stages: Sequence[int], before: Arena | None) -> None:
        """``stages``: of all slots. ``before``: memory up to the stage before, which this goes on with."""
        self._stages = stages
        self._pieces: list[Array] = [] if before is None else [*before._pieces]
        self._owners: set[int] = set() if before is None else {*before._owners}
        self.begins: Array = np.zeros(len(stages), np.int64) if before is None else before.begins.copy()

    def lay(self, slots: Sequence[int], places: Sequence[int]) -> None:
        """Memory for the slots of the next stage. ``places``: where each begins, in bytes; the last is the size."""
        piece = aligned(np.empty, [places[-1]], np.uint8)
        self._pieces.append(piece)
        self._owners.add(id(owner_of(piece)))
        self.begins[slots] = address_of(piece) + np.array(places[:-1], np.int64)

    def slot(self, number: int) -> tuple[Array, int]:
        """The piece that a slot lies in, and where in it, in bytes."""
        piece = self._pieces[self._stages[number]]
        return piece, int(self.begins[number]) - address_of(piece)

    def may_hold(self, array: Array) -> bool:
        """Whether an array may lie here."""
        owner = owner_of(array)
        if isinstance(owner, _ARRAY):
            return id(owner) in self._owners
        return any(np.may_share_memory(array, piece) for piece in self._pieces)


class Execution:
    """The memory and the tables for one stage of a run with certain sizes. Used by one state at a time.

    ``symbols``: the sizes that came up for this stage; ``values``: of all symbols known now. ``first``: the number of
    its first native step; ``steps``: of the one behind its last one. ``frame``: the address of what the executor takes;
    ``frame_within``: the same for going on in the middle of a loop, which has moved addresses. ``passed``: the
    addresses that a run passes. ``status``: the address where kernels refuse. ``later``: what the next stage is run
    with, by what was found out for it; ``later_count``, ``later_bytes``: how much there is of later stages, at the
    first one. ``outputs``: those that native code fills and whose sizes are known from this stage on, by their numbers;
    ``filled``: their shapes and types. ``shapes``: those of the inputs of the last turn; ``given``: the values of
    symbols that the caller gave with them; ``repeat``: what does a turn with such inputs again. ``never_stops``:
    whether a call is done before anybody has to look at the clock. ``seen``: tensors in its memory, as views that
    nobody can write to, for those that the host looks at in every turn; ``looked_at``: the same for those that are read
    at its end, by the ids of their `View`. ``sharing``: what says whether runs are shared with other threads; without
    it they are, where there is work for these. ``bytes``: how much memory the stage takes, with its outputs;
    ``bytes_so_far``: with those before it. ``is_watched``: whether one of its steps has to be told when time is up.
    ``may_repeat``: whether turns with such inputs may be done by a native function.
    """

    sharing: Sharing | None = None
    is_watched: bool = False
    may_repeat: bool = False
    later_count: int = 0
    later_bytes: int = 0

    def __init__(
        self,
        layout: ArgumentLayout,
        kernels: Sequence[int],
        constants: Array,
        outputs: Mapping[int, tuple[Sequence[Dim], np.dtype[Any]]],
        symbols: Mapping[str, int],
        *,
        threads: int,
        own: Mapping[str, int] | None = None,
        before: Execution | None = None,
        check_room: Callable[[int], None] = lambda _: None,
        watching: Callable[[int], int] | None = None,
    ) -> None:
        """``kernels``: the address of each step's kernel; ``constants``: those of the arrays of the program.

        ``threads``: how many there may be.

        ``own``: the symbols that came up for this stage, if not all. ``before``: what the stage before was run with,
        whose memory this one goes on with. ``check_room``: raises what there is to say where
        so many bytes are too many. ``watching``: gives the address of a kernel that ends as soon as the run has to,
        for a step by its number; where there is none, nobody says that.
        """
        self._go_on_with(before, layout)
        section = layout.sections[self.stage]
        self.first, self.steps = section.first, section.last
        self.symbols, self.values = dict(symbols if own is None else own), dict(symbols)
        self.later: dict[LaterKey, Execution] = {}
        bound = section.bind(symbols)
        sizes = {number: tuple(evaluate(dim, symbols) for dim in shape) for number, (shape, _) in outputs.items()}
        self.shapes: list[tuple[int, ...]] | None = None
        self.given: Mapping[str, int] | None = None
        self.filled = [(sizes[number], dtype) for number, (_, dtype) in outputs.items()]
        self.outputs = {number: Output(*one) for number, one in zip(outputs, self.filled, strict=True)}
        self.repeat: Repeat = look_closer
        self.seen: dict[OutletId, Array] = {}
        self.looked_at: dict[int, Array] = {}
        fuel = float((bound.fuel * bound.times).sum()) + bound.fuel_of_loops
        self.is_short, self.never_stops = fuel < WORK_FOR_OTHERS, fuel < FULL
        parts = bound.parts(threads)
        self.threads = 1 if parts is None else threads
        self.bytes = bound.slots[-1] + bound.scratch_apart * self.threads
        self.bytes += sum(prod(shape) * dtype.itemsize for shape, dtype in self.filled)
        self.bytes_so_far = self.bytes if before is None else before.bytes_so_far + self.bytes
        check_room(self.bytes)
        self.arena.lay(list(section.slots), bound.slots)
        kernels = kernels[section.first : section.last]
        if watching is not None:
            long = np.flatnonzero(bound.fuel > FULL * np.maximum(bound.tasks, 1)).tolist()
            self.is_watched = bool(long)
            watched = {number: watching(section.first + number) for number in long}
            kernels = [watched.get(number, address) for number, address in enumerate(kernels)]
        places, numbers = section.in_constants
        bound.arguments[places] += constants[numbers]
        self._lay_out(layout, section, bound, kernels, 1 if parts is None else parts)

    def _go_on_with(self, before: Execution | None, layout: ArgumentLayout) -> None:
        """Take what all stages of a run share. ``before``: the stage before this one, if it is not the first."""
        self.stage = 0 if before is None else before.stage + 1
        self.arena = Arena(layout.stages, before and before.arena)
        self.passed: Array = np.zeros(layout.passed_count, np.int64) if before is None else before.passed
        self._refusal: Array = np.zeros(2, np.int64) if before is None else before._refusal
        self.course: Array = np.zeros(LINE_WORDS, np.int64) if before is None else before.course

    def _lay_out(
        self, layout: ArgumentLayout, section: Section, bound: Bound, kernels: Sequence[int], parts: Any
    ) -> None:
        """Make the tables. ``kernels``: those of this stage."""
        arguments, each = bound.arguments, bound.scratch_apart
        self._scratch = aligned(np.empty, [each * self.threads], np.uint8)
        arguments[section.in_arena[0]] += self.arena.begins[section.in_arena[1]]
        begin = address_of(arguments)
        arguments[section.in_arguments[0]] = begin + 8 * section.in_arguments[1]
        arguments[section.in_passed[0]] = address_of(self.passed) + 8 * section.in_passed[1]
        self._arguments, self._fresh = arguments, arguments.copy() if layout.loops else None
        pieces = _pieces(bound.fuel, bound.tasks, parts)
        addresses = begin + 8 * np.array(section.begins, np.int64)
        self._steps: Array = np.empty((len(kernels), len(STEP)), np.int64)
        for number, column in enumerate((kernels, addresses, bound.tasks, parts, *pieces)):
            self._steps[:, number] = column
        patches = [(begin + 8 * place, number, arguments[place]) for place, number in section.passed]
        self._patches = np.array(patches, np.int64).reshape(-1, 3)
        self.passed[-1] = self.status = address_of(self._refusal)
        self._status, self._course = memoryview(self._refusal.data), memoryview(self.course.data)
        steps = address_of(self._steps) - 8 * len(STEP) * section.first
        tables = (
            *(steps, address_of(self._patches), len(patches), address_of(self.passed), address_of(self._scratch), each),
            *(self.status, address_of(self.course)),
        )
        self._frame = np.array(tables, np.int64)
        own = (self._frame, self.arena, self._scratch, arguments, self._steps, self._patches)
        self.memory: tuple[Any, ...] = (*own, self._refusal, self.passed, self.course)
        self.frame = address_of(self._frame)
        self._frame_within = self._frame.copy()
        self._frame_within[FRAME.index("patch_count")] = 0
        self.frame_within = address_of(self._frame_within)

    def forget_later(self) -> None:
        """Give back the memory and the tables of later stages."""
        self.later.clear()
        self.later_count = self.later_bytes = 0

    def begin(self) -> None:
        """A turn begins: where one before was left in the middle is forgotten."""
        if self._course[STOPPED] or self._fresh is not None:
            self.begin_anew()

    def begin_anew(self) -> None:
        """Forget where loops are that were left in the middle."""
        self.course[:] = 0
        if self._fresh is not None:
            self._arguments[:] = self._fresh

    def end(self) -> None:
        """Have the run end as soon as it can, so that nothing that it writes counts. Called by another thread."""
        self._course[OVER] = 1

    def has_stopped(self) -> bool:
        """Whether the last call ended before all was done, so that somebody may look at the clock."""
        return bool(self._course[STOPPED])

    def refused(self) -> int | None:
        """The step that could not do its work in the last call, so that those after it did not run. Told once."""
        if not self._status[0]:
            return None
        self._status[0] = 0
        self.begin_anew()
        return self._status[1]


def _pieces(fuel: Array, tasks: Array, parts: Array | int) -> tuple[Array, Array]:
    """How many tasks of each step are done between two looks at the fuel, and how much of that they take.

    As many for each of the ``parts`` that threads share, whose looks are as far apart as that of one thread.
    """
    if fuel.max(initial=0) < FULL // 4:  # as of most, which are looked at once
        return -(-np.maximum(tasks, 1) // parts) * parts, fuel
    count = np.clip(fuel // (FULL // 4 * parts), 1, np.maximum(-(-tasks // parts), 1))
    each = np.ceil(np.maximum(tasks, 1) / (count * parts)) * parts
    return each.astype(np.int64), np.minimum(fuel / count, MAX_SIZE / 2).astype(np.int64)
