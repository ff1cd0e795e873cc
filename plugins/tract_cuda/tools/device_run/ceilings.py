"""What the device can do at most, by kernels of our own: figures that times of networks are held against.

Tensor cores are measured by ``mma.sync``. On sm_90a, ``wgmma`` reaches more; where products are computed by it, the
ceiling for them is above that which stands here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from tract_cuda.driver.device import Graph, Stream
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.ptx import ptx_for

from device_run.ceiling_kernels import CHAINS, LANES, MMAS, WRITTEN_OUT, Added, Copied, MultiplyAdds, TensorCores
from device_run.setting import Setting

_ROUNDS = 7
"""How often each is measured; the least time counts."""

_BLOCKS_OF_ONE = 4
"""Blocks of 256 threads on a multiprocessor: all are there at once where a thread has 64 registers."""

_FEW_LOOPS, _MANY_LOOPS = 256, 4096
"""Of tensor cores, whose sums stay numbers that f32 has, and of threads: about a millisecond on an H100."""


def run(setting: Setting) -> None:
    """A row for each ceiling."""
    meter = Meter(setting)
    setting.attempt("memory bandwidth", meter.bandwidth)
    setting.attempt("f32", meter.multiply_adds)
    for name in MMAS:
        setting.attempt(f"tensor cores, {name}", partial(meter.tensor_cores, name))
    setting.attempt("launch of a graph", meter.graph)
    setting.attempt("kernel in a graph", meter.kernel_in_a_graph)
    setting.attempt("launch of a kernel", meter.kernel)
    for what, pinned in (("pinned", True), ("of NumPy", False)):
        setting.attempt(f"to the device, memory {what}", partial(meter.copies, down=False, pinned=pinned))
        setting.attempt(f"from the device, memory {what}", partial(meter.copies, down=True, pinned=pinned))


class Meter:
    """A device, and a stream on it."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.device = setting, setting.device
        self.stream: Stream = self.device.stream()

    def bandwidth(self) -> dict[str, Any]:
        """Bytes read and written, of tensors that no cache holds."""
        size = 1 << (14 if self.setting.small else 30)
        given = np.arange(size // 4 % (1 << 20) or 1 << 20, dtype=np.float32)
        source, target = self.device.allocate(size), self.device.allocate(size)
        self.device.write(source.address, given[: size // 4])
        count = size // (4 * LANES)
        plan = Copied()
        graph = self._graph(plan, -(-count // plan.threads), [count, source.address, target.address])
        seconds = self._seconds(graph)
        found = np.empty(min(given.size, size // 4), np.float32)
        self.device.read(found, target.address)
        assert np.array_equal(found, given[: found.size]), "the copy is another one"
        return self._rate("GB/s", 2 * size / 1e9, seconds)

    def multiply_adds(self) -> dict[str, Any]:
        """Of f32, without tensor cores: each counts as two operations."""
        plan, blocks = MultiplyAdds(), self._blocks()
        loops = 1 if self.setting.small else _MANY_LOOPS
        rounds = loops * WRITTEN_OUT
        factor, results = self.device.allocate(4), self.device.allocate(4 * plan.threads * blocks)
        self.device.write(factor.address, np.array([0.5], np.float32))
        seconds = self._seconds(self._graph(plan, blocks, [loops, factor.address, results.address]))
        found = np.empty(plan.threads * blocks, np.float32)
        self.device.read(found, results.address)
        wanted = sum((0.5 + number - 1) * 0.5**rounds + 1 for number in range(CHAINS))
        assert np.allclose(found, wanted, rtol=1e-5), f"sums are {found[0]}, wanted {wanted}"
        return self._rate("TFLOP/s", 2e-12 * CHAINS * rounds * plan.threads * blocks, seconds)

    def tensor_cores(self, name: str) -> dict[str, Any]:
        """Of factors of one type, in f32 or i32 sums."""
        mma = MMAS[name]
        plan, blocks = TensorCores(mma), self._blocks()
        loops = 1 if self.setting.small else _FEW_LOOPS
        rounds = loops * WRITTEN_OUT
        words = {"f16": 0x3C003C00, "bf16": 0x3F803F80, "tf32": 0x3F800000, "int8": 0x01010101}  # ones
        factor, results = self.device.allocate(4), self.device.allocate(4 * plan.threads * blocks)
        self.device.write(factor.address, np.array([words[name]], np.int32))
        seconds = self._seconds(self._graph(plan, blocks, [loops, factor.address, results.address]))
        found = np.empty(plan.threads * blocks, np.float32)
        self.device.read(found, results.address)
        wanted = 4 * (CHAINS * rounds * mma.depth + sum(range(CHAINS)))
        assert (found == wanted).all(), f"sums are {found[0]}, wanted {wanted}"
        warps = plan.threads * blocks / 32
        return self._rate(
            "TOP/s" if mma.integer else "TFLOP/s", 2e-12 * 16 * 8 * mma.depth * CHAINS * rounds * warps, seconds
        )

    def graph(self) -> dict[str, Any]:
        """One kernel, by the clock of the host: alone, and with waiting for it."""
        graph = self._little(1)
        count = 3 if self.setting.small else 200
        alone = self._on_host(lambda: graph.launch(self.stream), count)
        waited = self._on_host(lambda: (graph.launch(self.stream), self.stream.synchronize()), count)
        return self._time(alone) | ({} if waited is None else {"us, waited for": waited * 1e6})

    def kernel_in_a_graph(self) -> dict[str, Any]:
        """How much a kernel adds that does next to nothing, by the clock of the device."""
        count = 4 if self.setting.small else 1000
        seconds = self._seconds(self._little(count))
        return self._time(None if seconds is None else seconds / count)

    def kernel(self) -> dict[str, Any]:
        """Outside of a graph, by ctypes."""
        memory = self._zeros(32)
        function, arguments = self.device.function(ptx_for(Added(), self.setting.target.arch)), [memory.address]
        given = [ctypes.c_uint64(one) for one in arguments]
        count = 3 if self.setting.small else 200
        return self._time(self._on_host(lambda: self.stream.launch(function, (1, 1, 1), given), count))

    def copies(self, *, down: bool, pinned: bool) -> dict[str, Any]:
        """Of a large array, with waiting for it."""
        size = 1 << (12 if self.setting.small else 28)
        memory = self.device.allocate(size)
        self.device.write(memory.address, np.zeros(size, np.uint8))
        held = self.device.pinned(size)
        array = held.array(np.uint8, (size,)) if pinned else np.empty(size, np.uint8)
        array[...] = 0

        def copy() -> None:
            if not pinned:
                (self.device.read(array, memory.address) if down else self.device.write(memory.address, array))
                return
            if down:
                self.stream.copy_to_host(held.address, memory.address, size)
            else:
                self.stream.copy_to_device(memory.address, held.address, size)
            self.stream.synchronize()

        return self._rate("GB/s", size / 1e9, self._on_host(copy, 1))

    # ---- how

    def _blocks(self) -> int:
        return 1 if self.setting.small else _BLOCKS_OF_ONE * self.setting.target.multiprocessors

    def _zeros(self, count: int) -> Any:
        memory = self.device.allocate(4 * count)
        self.device.write(memory.address, np.zeros(count, np.float32))
        return memory

    def _little(self, count: int) -> Graph:
        self._kept = self._zeros(32)  # as long as the graph is launched
        return self._graph(Added(), 1, [self._kept.address], count)

    def _graph(self, plan: KernelPlan, blocks: int, values: Sequence[int], count: int = 1) -> Graph:
        function = self.device.function(ptx_for(plan, self.setting.target.arch))
        kinds = [ctypes.c_int32 if one.element is None else ctypes.c_uint64 for one in plan.parameters]
        given = [kind(value) for kind, value in zip(kinds, values, strict=True)]
        with self.stream.capture() as capture:
            for _ in range(count):
                self.stream.launch(function, (blocks, 1, 1), given)
        return capture.graph

    def _seconds(self, graph: Graph) -> float | None:
        """By the clock of the device."""

        def once() -> float:
            begin = self.stream.event()
            graph.launch(self.stream)
            end = self.stream.event()
            self.stream.synchronize()
            return end.seconds_since(begin)

        once()  # the first one loads the code
        return self.setting.timed(lambda: min(once() for _ in range(1 if self.setting.small else _ROUNDS)))

    def _on_host(self, work: Callable[[], Any], count: int) -> float | None:
        """By the clock of the host: the median of some rounds, each of so many."""

        def once() -> float:
            begin = perf_counter()
            for _ in range(count):
                work()
            took = perf_counter() - begin
            self.stream.synchronize()
            return took / count

        once()
        return self.setting.timed(lambda: median(once() for _ in range(1 if self.setting.small else _ROUNDS)))

    def _rate(self, unit: str, amount: float, seconds: float | None) -> dict[str, Any]:
        return {"not measured": "virtual"} if seconds is None else {unit: amount / seconds}

    def _time(self, seconds: float | None) -> dict[str, Any]:
        return {"not measured": "virtual"} if seconds is None else {"us": seconds * 1e6}
