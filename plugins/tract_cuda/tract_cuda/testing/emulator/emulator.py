"""Kernels of PTX, executed on the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tract_llvm.llvm import LOCK

from tract_cuda.testing.emulator.errors import EmulationError
from tract_cuda.testing.emulator.launch import EmulatedLaunch, Grid, Job, Range, packed
from tract_cuda.testing.emulator.machine.build import compiled, machine
from tract_cuda.testing.emulator.parse import Entry, Module, Variable, parsed
from tract_cuda.testing.emulator.report import error_of
from tract_cuda.testing.emulator.translate import DeclaredMemory, laid_out, translated

_SPEED: Final = 0
_KEPT: Final = 256
"""So many kernels stay compiled, for other modules of the same text."""
MOST_SHARED: Final = 227 << 10
"""Bytes of shared memory that a block has at most."""


class Emulator:
    """A module of PTX. Kernels are compiled when they are launched first."""

    def __init__(self, text: str) -> None:
        """Raises UnknownPtx where the text is not known."""
        self.module: Module = parsed(text)
        self._globals: dict[str, NDArray[np.uint8]] = {
            one.name: _held(one) for one in self.module.variables if one.space in ("global", "const")
        }
        self._kernels: dict[str, _Kernel] = {}

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        arguments: Sequence[bytes | int | float],
        *,
        memory: Sequence[Range],
        order: int = 0,
        seed: int = 0,
        resident: int = 0,
        strict: bool = True,
    ) -> None:
        """Run a kernel to its end.

        ``shared_bytes``: of the shared memory whose size a launch says. ``arguments``: one per parameter; addresses are
        those of the host. ``memory``: all that kernels may use. ``order``: 0 for threads and blocks from the first to
        the last, 1 from the last to the first, others are seeds of random orders. ``seed``: of how approximations are
        off. ``resident``: blocks that are there at once; 0 for some. ``strict``: whether shared memory is watched.

        Raises EmulationError where the kernel did what it may not, and UnknownPtx.
        """
        kernel = self.kernel(name)
        sizes, threads = _three(grid), _three(block)
        kernel.check(sizes, threads, shared_bytes, len(arguments))
        own = [Range(held.ctypes.data, held.nbytes) for held in self._globals.values() if held.nbytes]
        job = Job(
            kernel.address, sizes, threads, kernel.memory.dynamic + shared_bytes, kernel.memory.local,
            kernel.packed(arguments), [*memory, *own], order, seed, resident, strict,
        )  # fmt: skip
        found = EmulatedLaunch(job).run()
        if found is not None:
            raise error_of(found, name, self.module.lines, order)

    def kernel(self, name: str) -> _Kernel:
        """A kernel by its name. Raises EmulationError where there is none."""
        found = self._kernels.get(name)
        if found is None:
            entry = self.module.entries.get(name)
            if entry is None:
                raise EmulationError(f"there is no kernel '{name}', but {', '.join(self.module.entries) or 'none'}")
            places = {one: held.ctypes.data for one, held in self._globals.items()}
            found = self._kernels[name] = _Kernel(entry, laid_out(self.module, entry, places))
        return found


@lru_cache(_KEPT)
def _engine(text: str) -> Any:
    """The engine that holds a kernel. It stays while others are not too many."""
    with LOCK:
        return compiled(text, _SPEED)


class _Kernel:
    """One kernel: its code, once it was asked for."""

    def __init__(self, entry: Entry, memory: DeclaredMemory) -> None:
        self.entry, self.memory = entry, memory

    @cached_property
    def _held(self) -> Any:
        machine()  # whose functions the code calls
        return _engine(translated(self.entry, self.memory))

    @property
    def address(self) -> int:
        """Of the code."""
        return int(self._held.get_function_address("kernel"))

    def packed(self, arguments: Sequence[bytes | int | float]) -> bytes:
        """All parameters, as they lie in memory."""
        found = b""
        for one, value in zip(self.entry.parameters, arguments, strict=True):
            found = found.ljust(one.offset, b"\0") + packed(value, one.bytes)
        return found

    def check(self, grid: Grid, block: Grid, shared_bytes: int, arguments: int) -> None:
        """Raises EmulationError where no device takes such a launch."""
        entry, count = self.entry, block[0] * block[1] * block[2]
        problems = {
            f"{arguments} arguments for {len(entry.parameters)} parameters": arguments != len(entry.parameters),
            f"blocks of {count} threads": not 0 < count <= 1024 or block[2] > 64,
            f"blocks of {count} threads, where the kernel wants {entry.exact_threads}": entry.exact_threads
            not in (0, count),
            f"blocks of {count} threads, where the kernel bears {entry.most_threads}": 0 < entry.most_threads < count,
            f"a grid of {grid}": not (0 < grid[0] < 2**31 and 0 < grid[1] < 65536 and 0 < grid[2] < 65536),
            f"{shared_bytes} bytes of shared memory": self.memory.dynamic + shared_bytes > MOST_SHARED,
        }
        for problem, there in problems.items():
            if there:
                raise EmulationError(f"no device launches {problem}", where=f"kernel '{entry.name}'")


def _held(one: Variable) -> NDArray[np.uint8]:
    size = one.bytes or 0
    raw = np.zeros(size + 256, np.uint8)
    begin = -raw.ctypes.data % 256
    held = raw[begin : begin + size]
    if one.content is not None:
        held[:] = np.frombuffer(one.content, np.uint8)
    return held


def _three(sizes: Sequence[int]) -> Grid:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
