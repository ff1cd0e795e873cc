"""What this machine can do at most: measured by native functions that do nothing else.

Operations: multiply-adds of registers, as many at once as the processor has under way, two operations for each element.
Memory: bytes that are read, or read and written, in vectors, of so many bytes again and again, so that they come from a
certain level of the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import CFUNCTYPE, c_int64
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tract_llvm.isa import Isa
from tract_llvm.language.function import Function
from tract_llvm.language.types import F32, F64, INDEX, POINTER, U8, ElementType
from tract_llvm.objects.library import Code, Library, library_of
from tract_llvm.objects.origins import key_of_code

from tract_core.runtime.work import Ceilings
from tract_cpu.aligned import ALIGNMENT, aligned
from tract_cpu.caches import sizes_of_caches
from tract_cpu.native.objects import address_of

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

CHAINS: Final = 12
"""Sums that do not wait for each other: more than any processor has under way, and fewer than there are registers."""

ATTEMPTS: Final = 4
"""How often everything is measured: the best counts."""

Rounds = Callable[[int], None]
"""Does something as often as it is told."""

TYPES: Final[Mapping[str, ElementType]] = {"f32": F32, "f64": F64}

_MEMORY: Final = 256 << 20
"""Bytes; more than caches hold."""


class Meter:
    """Measures with one instruction set. ``seconds``: how long each measure takes, about."""

    def __init__(self, isa: Isa, seconds: float = 0.1, library: Library | None = None) -> None:
        self.isa = isa
        self.seconds = seconds
        self._library = library or library_of(isa)

    def flops(self, element: str, threads: int) -> float:
        """Operations a second: multiplications and additions."""
        kind = TYPES[element]
        lanes = self.isa.lanes(kind.bits)
        run = self._function(f"peak {element}", [INDEX, POINTER], lambda f: _write_peak(f, kind, lanes))
        sinks = [_filled(2 * ALIGNMENT) for _ in range(threads)]
        return self._rate(2 * lanes * CHAINS, [_rounds_of(run, sink) for sink in sinks])

    def bytes_read(self, size: int, threads: int) -> float:
        """Bytes a second, where each thread reads ``size`` bytes of its own again and again."""
        run = self._function("read", [INDEX, POINTER, INDEX, POINTER], _write_read)
        step = self.isa.vector_bytes * CHAINS
        whole = max(size // step, 1) * step
        own = [(_filled(whole), _filled(2 * ALIGNMENT)) for _ in range(threads)]
        return self._rate(whole, [_rounds_of(run, memory, whole, sink) for memory, sink in own])

    def bytes_copied(self, size: int, threads: int) -> float:
        """The same, where half of the memory is copied into the other half; bytes read and bytes written count."""
        run = self._function("copy", [INDEX, POINTER, INDEX, POINTER], _write_copy)
        step = self.isa.vector_bytes * CHAINS
        half = max(size // 2 // step, 1) * step
        own = [(_filled(half), _filled(half)) for _ in range(threads)]
        return self._rate(2 * half, [_rounds_of(run, source, half, target) for source, target in own])

    def seconds_of_a_call(self) -> float:
        """What it takes to call a native function that does nothing, from Python."""
        run = self._function("nothing", [], lambda _: None)

        def call(rounds: int) -> None:
            for _ in range(rounds):
                run()

        return 1 / self._rate(1, [call])

    def ceilings(self, threads: int) -> Ceilings:
        """The two that a profile is compared with."""
        return Ceilings(self.flops("f32", threads), self.bytes_read(_MEMORY, threads))

    def _function(self, name: str, arguments: list[Any], write: Callable[[Function], None]) -> Callable[..., None]:
        symbol = f"measure_{name.replace(' ', '_')}"

        def emit(module: Any) -> None:
            f = Function(module, symbol, self.isa, arguments)
            write(f)
            f.finish()

        key = key_of_code(type(self), f"measure {name}", self.isa)
        kind: Any = CFUNCTYPE(None, *[c_int64] * len(arguments))
        return kind(self._library.address(Code(key, symbol, emit)))

    def _rate(self, work: int, calls: Sequence[Rounds]) -> float:
        """Work a second at best, of threads that each call one of these; ``work``: that of a round of one thread."""
        rounds = 1
        while _quickest(calls[:1], rounds) < self.seconds / 8:
            rounds *= 4
        return work * rounds * len(calls) / _quickest(calls, rounds)


def _rounds_of(run: Callable[..., None], *arguments: Array | int) -> Rounds:
    """``run(rounds, ...)``, with the addresses of arrays, which are kept."""
    passed = [one if isinstance(one, int) else address_of(one) for one in arguments]

    def call(rounds: int, _kept: object = arguments) -> None:
        run(rounds, *passed)

    return call


def _quickest(calls: Sequence[Rounds], rounds: int) -> float:
    """How long it takes at least until all are done, each in a thread of its own."""
    found: list[float] = []
    with ThreadPoolExecutor(len(calls)) as threads:
        for _ in range(ATTEMPTS):
            start = perf_counter()
            for running in [threads.submit(call, rounds) for call in calls]:
                running.result()
            found.append(perf_counter() - start)
    return min(found)


def _write_peak(f: Function, element: ElementType, lanes: int) -> None:
    """Sums of products in registers, ``rounds`` times; in the end they go to memory, so that they are done."""
    factor = f.constant(1.0 - 2.0**-20, element, lanes)
    sums = [f.variable(f.constant(float(number), element, lanes)) for number in range(CHAINS)]
    with f.loop("round", f.argument(0)):
        for one in sums:
            one.value = one.value.times_plus(factor, factor)
    total = sums[0].value
    for one in sums[1:]:
        total = total + one.value
    f.buffer(1, element).put(0, total)


def _write_read(f: Function) -> None:
    """All of the memory, ``rounds`` times, combined so that nothing can be left out."""
    lanes = f.isa.vector_bytes
    memory, sink = f.buffer(1, U8), f.buffer(3, U8)
    sums = [f.variable(f.constant(0, U8, lanes)) for _ in range(CHAINS)]
    with f.loop("round", f.argument(0)), f.loop("place", f.argument(2), step=lanes * CHAINS) as place:
        for number, one in enumerate(sums):
            one.value = one.value + memory.vector(place + number * lanes, lanes)
    total = sums[0].value
    for one in sums[1:]:
        total = total + one.value
    sink.put(0, total)


def _write_copy(f: Function) -> None:
    """All of the memory to another place, ``rounds`` times."""
    lanes = f.isa.vector_bytes
    memory, target = f.buffer(1, U8), f.buffer(3, U8)
    with f.loop("round", f.argument(0)), f.loop("place", f.argument(2), step=lanes * CHAINS) as place:
        for number in range(CHAINS):
            target.put(place + number * lanes, memory.vector(place + number * lanes, lanes))


def levels() -> dict[str, int]:
    """Bytes to measure each level of the memory with: half of a cache, and much more than all of them."""
    return {**{name: size // 2 for name, size in sizes_of_caches().items() if size // 2 < _MEMORY}, "memory": _MEMORY}


def _filled(size: int) -> Array:
    return aligned(np.ones, [size], np.uint8)
