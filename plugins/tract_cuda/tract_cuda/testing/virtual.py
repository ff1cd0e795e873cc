"""A GPU that is not there: CUDA's driver, as its callers see it, over the emulator.

Nothing that is put into a stream is done before somebody waits. Then streams take turns, in an order that a seed says,
and kernels run on the emulator. Memory holds garbage until it is written. Calls that a driver refuses are refused; each
function can be told to fail. ``TRACT_CUDA_DRIVER=tract_cuda.testing.virtual:VirtualGpu`` has a process use it.
"""

# ruff: noqa: N802 (functions are called as the driver calls them)

from __future__ import annotations

import ctypes
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import RLock
from time import perf_counter
from typing import Any, Final

import numpy as np

from tract_cuda.driver.library import OLDEST, OUT_OF_MEMORY
from tract_cuda.driver.prototypes import PROTOTYPES
from tract_cuda.testing.emulator import EmulationError, Emulator, Range

_ALIGNMENT: Final = 256
_GARBAGE: Final = 0xCD
_INVALID: Final = 1
_INVALID_HANDLE: Final = 400
_LAUNCH_FAILED: Final = 719
_CAPTURING: Final = 900
_BAD_PTX: Final = 218
"""Numbers of errors, as the driver has them."""

_NAMES: Final = {
    _INVALID: "CUDA_ERROR_INVALID_VALUE",
    OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY",
    _BAD_PTX: "CUDA_ERROR_INVALID_PTX",
    _INVALID_HANDLE: "CUDA_ERROR_INVALID_HANDLE",
    _LAUNCH_FAILED: "CUDA_ERROR_LAUNCH_FAILED",
    _CAPTURING: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
}

ATTRIBUTES: Final = {16: 4, 75: 9, 76: 0, 97: 227 << 10}
"""Multiprocessors, compute capability, shared memory of a block: by the numbers of attributes."""

_DYNAMIC_SHARED: Final = 8
_PLAIN_SHARED: Final = 48 << 10

Work = Callable[[], int]
"""Does something, and returns the number of an error, or 0."""


@dataclass
class _Function:
    """A kernel. ``shared``: bytes of shared memory that a launch may ask for."""

    emulator: Emulator
    name: str
    shared: int = _PLAIN_SHARED


@dataclass
class _Stream:
    """What waits to be done. ``captured``: what is being captured, if anything is."""

    queue: list[Work] = field(default_factory=list[Work])
    captured: list[Work] | None = None


@dataclass
class _Event:
    """``done``: when it was reached, in seconds; ``None`` before."""

    done: float | None = None


class VirtualGpu:
    """A library of the driver's functions, as attributes. ``log``: the names of all functions called so far."""

    def __init__(self, seed: int = 0, memory: int = 1 << 30) -> None:
        """``memory``: bytes that the device has."""
        self.log: list[str] = []
        self.memory = memory
        self.said = ""
        """What the emulator said last."""
        self._random, self._lock = random.Random(seed), RLock()
        self._allocated: dict[int, Any] = {}
        self._pinned: dict[int, Any] = {}
        self._objects: dict[int, Any] = {}
        self._lost = self._made = 0
        self._fails: dict[str, tuple[int, int]] = {}
        self._calls: Counter[str] = Counter()
        for name, arguments in PROTOTYPES.items():
            # Callers keep the interpreter, so that threads do not wait for each other at each call.
            setattr(self, name, ctypes.PYFUNCTYPE(ctypes.c_int, *arguments)(self._counted(name)))

    def fail(self, name: str, code: int, *, call: int = 1) -> None:
        """Have a function fail, at the ``call``th time from now on."""
        self._fails[name] = self._calls[name] + call, code

    def used(self) -> int:
        """Bytes of the device that are allocated."""
        return sum(held.nbytes - _ALIGNMENT for held in self._allocated.values())

    def _counted(self, name: str) -> Callable[..., int]:
        does: Callable[..., int] = getattr(self, f"_{name.split('_v', 1)[0]}")

        def call(*arguments: Any) -> int:
            with self._lock:
                self.log.append(name)
                self._calls[name] += 1
                if self._fails.get(name, (0, 0))[0] == self._calls[name]:
                    return self._fails[name][1]
                return does(*arguments)

        return call

    def _new(self, place: int, one: Any) -> int:
        self._made += 1
        self._objects[self._made] = one
        return _put(place, self._made)

    # ---- the device

    def _cuInit(self, flags: int) -> int:
        return 0

    def _cuDriverGetVersion(self, place: int) -> int:
        return _put(place, OLDEST, ctypes.c_int)

    def _cuGetErrorName(self, code: int, place: int) -> int:
        return _put(place, ctypes.addressof(_text(_NAMES.get(code, "CUDA_ERROR_UNKNOWN"))))

    def _cuGetErrorString(self, code: int, place: int) -> int:
        return _put(place, ctypes.addressof(_text(self.said or "the virtual GPU refused")))

    def _cuDeviceGetCount(self, place: int) -> int:
        return _put(place, 1, ctypes.c_int)

    def _cuDeviceGet(self, place: int, number: int) -> int:
        return _put(place, number, ctypes.c_int) if number == 0 else _INVALID

    def _cuDeviceGetName(self, place: int, size: int, device: int) -> int:
        ctypes.memmove(place, b"virtual\0", 8)
        return 0

    def _cuDeviceGetAttribute(self, place: int, which: int, device: int) -> int:
        return _put(place, ATTRIBUTES[which], ctypes.c_int)

    def _cuDeviceTotalMem(self, place: int, device: int) -> int:
        return _put(place, self.memory)

    def _cuDevicePrimaryCtxRetain(self, place: int, device: int) -> int:
        return _put(place, 1)

    def _cuDevicePrimaryCtxRelease(self, device: int) -> int:
        return 0

    def _cuCtxSetCurrent(self, context: int) -> int:
        return self._lost

    # ---- memory

    def _cuMemGetInfo(self, free: int, whole: int) -> int:
        return _put(free, self.memory - self.used()) or _put(whole, self.memory)

    def _cuMemAlloc(self, place: int, size: int) -> int:
        if not size:
            return _INVALID
        if self.used() + size > self.memory:
            return OUT_OF_MEMORY
        return _put(place, _held(self._allocated, size))

    def _cuMemFree(self, address: int) -> int:
        return 0 if self._allocated.pop(address, None) is not None else _INVALID

    def _cuMemHostAlloc(self, place: int, size: int, flags: int) -> int:
        return _put(place, _held(self._pinned, size))

    def _cuMemFreeHost(self, address: int) -> int:
        return 0 if self._pinned.pop(address, None) is not None else _INVALID

    def _inside(self, address: int, size: int) -> bool:
        """Whether the device has that memory."""
        return any(
            begin <= address and address + size <= begin + held.nbytes - _ALIGNMENT
            for begin, held in self._allocated.items()
        )

    def _cuMemcpyHtoD(self, target: int, source: int, size: int) -> int:
        return self._copied(target, source, size, target)

    def _cuMemcpyDtoH(self, target: int, source: int, size: int) -> int:
        return self._copied(target, source, size, source)

    def _copied(self, target: int, source: int, size: int, device: int) -> int:
        if not self._inside(device, size):
            return _INVALID
        ctypes.memmove(target, source, size)
        return 0

    def _cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._enqueue(stream, lambda: self._copied(target, source, size, target))

    def _cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._enqueue(stream, lambda: self._copied(target, source, size, source))

    def _cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._enqueue(stream, lambda: self._copied(target, source, size, source))

    def _cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> int:
        def work() -> int:
            if not self._inside(target, size):
                return _INVALID
            ctypes.memset(target, value, size)
            return 0

        return self._enqueue(stream, work)

    # ---- kernels

    def _cuModuleLoadDataEx(self, place: int, image: int, count: int, options: int, values: int) -> int:
        try:
            return self._new(place, Emulator(ctypes.string_at(image).decode()))
        except EmulationError as error:
            self.said = str(error)
            return _BAD_PTX

    def _cuModuleUnload(self, module: int) -> int:
        return 0

    def _cuModuleGetFunction(self, place: int, module: int, name: bytes) -> int:
        emulator, text = self._objects[module], name.decode()
        try:
            emulator.kernel(text)
        except EmulationError as error:
            self.said = str(error)
            return _INVALID
        return self._new(place, _Function(emulator, text))

    def _cuFuncSetAttribute(self, function: int, which: int, value: int) -> int:
        if which == _DYNAMIC_SHARED:
            self._objects[function].shared = value
        return 0 if value <= ATTRIBUTES[97] else _INVALID

    def _cuFuncGetAttribute(self, place: int, which: int, function: int) -> int:
        return _put(place, 0, ctypes.c_int)

    def _cuLaunchKernel(self, function: int, *given: Any) -> int:
        grid, block, (shared, stream, places, _) = given[:3], given[3:6], given[6:]
        one: _Function = self._objects[function]
        if shared > one.shared:
            return _INVALID
        parameters = one.emulator.kernel(one.name).entry.parameters
        pointers = ctypes.cast(places, ctypes.POINTER(ctypes.c_void_p))
        arguments = [ctypes.string_at(pointers[n], each.bytes) for n, each in enumerate(parameters)]
        return self._enqueue(stream, lambda: self._run(one, grid, block, shared, arguments))

    def _run(
        self, one: _Function, grid: Sequence[int], block: Sequence[int], shared: int, arguments: list[bytes]
    ) -> int:
        memory = [Range(begin, held.nbytes - _ALIGNMENT) for begin, held in self._allocated.items()]
        order = self._random.choice((0, 1, 5, 9))
        try:
            one.emulator.launch(one.name, grid, block, shared, arguments, memory=memory, order=order)
        except EmulationError as error:
            self.said, self._lost = str(error), _LAUNCH_FAILED
        return self._lost

    # ---- streams, events, graphs

    def _enqueue(self, stream: int, work: Work) -> int:
        found = self._objects.get(stream)
        if not isinstance(found, _Stream):
            return _INVALID_HANDLE
        (found.queue if found.captured is None else found.captured).append(work)
        return self._lost

    def _cuStreamCreate(self, place: int, flags: int) -> int:
        return self._new(place, _Stream())

    def _cuStreamDestroy(self, stream: int) -> int:
        return 0 if self._objects.pop(stream, None) is not None else _INVALID_HANDLE

    def _cuStreamSynchronize(self, stream: int) -> int:
        wanted = self._objects[stream]
        if wanted.captured is not None:
            return _CAPTURING
        while wanted.queue and not self._lost:
            waiting = [one for one in self._objects.values() if isinstance(one, _Stream) and one.queue]
            code = self._random.choice(waiting).queue.pop(0)()
            if code:
                return code
        return self._lost

    def _cuStreamBeginCapture(self, stream: int, mode: int) -> int:
        self._objects[stream].captured = []
        return 0

    def _cuStreamEndCapture(self, stream: int, place: int) -> int:
        found = self._objects[stream]
        captured, found.captured = found.captured, None
        return _INVALID_HANDLE if captured is None else self._new(place, captured)

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> int:
        return self._enqueue(stream, lambda: 0 if self._objects[event].done is not None else _INVALID)

    def _cuGraphInstantiateWithFlags(self, place: int, graph: int, flags: int) -> int:
        return self._new(place, list(self._objects[graph]))

    def _cuGraphLaunch(self, graph: int, stream: int) -> int:
        for work in self._objects[graph]:
            self._enqueue(stream, work)
        return self._lost

    def _cuGraphExecDestroy(self, graph: int) -> int:
        return 0 if self._objects.pop(graph, None) is not None else _INVALID_HANDLE

    def _cuGraphDestroy(self, graph: int) -> int:
        return 0 if self._objects.pop(graph, None) is not None else _INVALID_HANDLE

    def _cuEventCreate(self, place: int, flags: int) -> int:
        return self._new(place, _Event())

    def _cuEventDestroy(self, event: int) -> int:
        return 0 if self._objects.pop(event, None) is not None else _INVALID_HANDLE

    def _cuEventRecordWithFlags(self, event: int, stream: int, flags: int) -> int:
        def work() -> int:
            self._objects[event].done = perf_counter()
            return 0

        return self._enqueue(stream, work)

    def _cuEventSynchronize(self, event: int) -> int:
        return 0 if self._objects[event].done is not None else _INVALID

    def _cuEventElapsedTime(self, place: int, first: int, second: int) -> int:
        took = 1e3 * (self._objects[second].done - self._objects[first].done)
        return _put(place, took, ctypes.c_float)


def _put(place: int, value: Any, kind: Any = ctypes.c_uint64) -> int:
    """Write a result where a pointer says. Returns 0, as a call that went well."""
    kind.from_address(place).value = value
    return 0


def _held(memory: dict[int, Any], size: int) -> int:
    """New memory, full of garbage. Returns its address."""
    held = np.full(size + _ALIGNMENT, _GARBAGE, np.uint8)
    begin = -(-held.ctypes.data // _ALIGNMENT) * _ALIGNMENT
    memory[begin] = held
    return begin


_TEXTS: Final[dict[str, Any]] = {}


def _text(text: str) -> Any:
    """A text of C that stays where it is."""
    return _TEXTS.setdefault(text, ctypes.create_string_buffer(text.encode()))
