"""A program for certain sizes: where tensors lie on the device, and what kernels are launched with."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from tract_llvm.program.storages import Address, Kind, Storage

from tract_core.compile.arena_plan import ArenaPlan
from tract_core.dims import evaluate, symbols_of
from tract_core.errors import LimitExceeded
from tract_core.frozen import frozen
from tract_cuda.compile import ALIGNMENT
from tract_cuda.program import NOT_YET, Argument, CudaProgram, EventualSize, Launch, Repeat, Step, Work, launches_in

_FAR: Final = (1 << 31) - (1 << 16)
"""The first position that is too far for i32: loops count on behind their end, by as much as a block does at once."""

_MOST_ALONG_X: Final = (1 << 31) - 1
_MOST_ALONG_YZ: Final = (1 << 16) - 1
"""How many blocks a grid has at most along its axes."""


def stage_bytes(arena: ArenaPlan, stage: int, symbols: Mapping[str, int]) -> tuple[int, dict[int, int]]:
    """How many bytes the slots of one stage take, and where in them each storage of theirs begins, by its number."""
    slots = [number for number, one in enumerate(arena.stages) if one == stage]
    largest = [max(evaluate(size, symbols) for size in arena.slots[slot]) for slot in slots]
    *begins, end = accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in largest), initial=0)
    base = dict(zip(slots, begins, strict=True))
    places = {
        number: base[slot] + evaluate(arena.offset_of[number], symbols)
        for number, slot in enumerate(arena.slot_of)
        if slot in base
    }
    return end, places


@frozen
class BoundLaunch:
    """A ``step`` with its numbers.

    ``wide``: whether positions are i64; ``grid``: how many blocks; ``values``: of its parameters, in order;
    ``pointers``: which of these are addresses.
    """

    step: Launch
    wide: bool
    grid: tuple[int, int, int]
    values: tuple[int, ...]
    pointers: tuple[bool, ...]

    def arguments(self) -> list[Any]:
        """The values as numbers of ctypes, as the kernel takes them."""
        size = ctypes.c_int64 if self.wide else ctypes.c_int32
        pairs = zip(self.values, self.pointers, strict=True)
        return [ctypes.c_uint64(value) if pointer else size(value) for value, pointer in pairs]


def bind_launch(
    step: Launch, program: CudaProgram, addresses: Mapping[Storage, int], symbols: Mapping[str, int]
) -> BoundLaunch | None:
    """The launch for these sizes; ``None`` where there is nothing to do.

    Raises LimitExceeded where it has more blocks than a device takes.
    """
    grid = (evaluate(step.grid[0], symbols), evaluate(step.grid[1], symbols), evaluate(step.grid[2], symbols))
    if min(grid) <= 0:
        return None
    if grid[0] > _MOST_ALONG_X or max(grid[1:]) > _MOST_ALONG_YZ:
        raise LimitExceeded(f"kernel {step.kernel.name} would have {'x'.join(map(str, grid))} blocks")
    pointers = tuple(isinstance(one, Address) for one in step.arguments)
    values = tuple(_value(one, addresses, symbols) for one in step.arguments)
    numbers = [value for value, pointer in zip(values, pointers, strict=True) if not pointer]
    return BoundLaunch(step, _is_wide(step, program, numbers, symbols), grid, values, pointers)


def bound_launches(
    step: Work, program: CudaProgram, addresses: Mapping[Storage, int], symbols: Mapping[str, int]
) -> Iterator[BoundLaunch]:
    """The launches of a step for these sizes, in order, those of a loop once each time. Raises as `bind_launch`."""
    if isinstance(step, Launch):
        bound = bind_launch(step, program, addresses, symbols)
        yield from () if bound is None else (bound,)
        return
    stay: dict[int, list[BoundLaunch]] = {}
    for iteration in range(evaluate(step.count, symbols)):
        here = {**symbols, step.index: iteration}
        for place, one in enumerate(step.steps):
            if place in stay:
                yield from stay[place]
            elif moves(one, step.index):
                yield from bound_launches(one, program, addresses, here)
            else:
                stay[place] = list(bound_launches(one, program, addresses, symbols))
                yield from stay[place]


def moves(step: Work, index: str) -> bool:
    """Whether a step of a loop is not the same each time. ``index``: the symbol that tells which time it is."""
    return any(index in symbols_of(dim) for launch in launches_in([step]) for dim in launch.dims())


def count_of(steps: Iterable[Step], symbols: Mapping[str, int]) -> int:
    """How many launches steps are at most, for these sizes."""
    found = 0
    for step in steps:
        if isinstance(step, Repeat):
            found += max(evaluate(step.count, symbols), 0) * count_of(step.steps, {**symbols, step.index: 0})
        elif isinstance(step, Launch):
            found += 1
    return found


def _value(argument: Argument, addresses: Mapping[Storage, int], symbols: Mapping[str, int]) -> int:
    if isinstance(argument, Address):
        return addresses[argument.storage] + evaluate(argument.offset, symbols)
    if isinstance(argument, EventualSize):
        known = symbols_of(argument.size) <= symbols.keys()
        return evaluate(argument.size, symbols) if known else NOT_YET
    return evaluate(argument, symbols)


def _is_wide(step: Launch, program: CudaProgram, numbers: Sequence[int], symbols: Mapping[str, int]) -> bool:
    """Whether any position may be beyond what an i32 holds: in elements, or of threads."""
    storages = {one.storage for one in step.arguments if isinstance(one, Address)}
    largest = max((_bytes(one, program, symbols) for one in storages), default=0)
    threads = evaluate(step.grid[0], symbols) * step.kernel.threads
    return max(largest, threads, *map(abs, numbers), 0) >= _FAR


def _bytes(storage: Storage, program: CudaProgram, symbols: Mapping[str, int]) -> int:
    if storage.kind is Kind.ARENA:
        return evaluate(program.arena[storage.number], symbols)
    if storage.kind is Kind.KEPT:
        return evaluate(program.kept_bytes(storage.number), symbols)
    return program.constants[storage.number].nbytes if storage.kind is Kind.CONSTANT else 0
