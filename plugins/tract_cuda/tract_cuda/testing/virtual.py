"""A GPU that is not there: CUDA's driver, as its callers see it, over the emulator.

Nothing that is put into a stream is done before somebody waits. Then streams take turns, in an order that a seed says,
and kernels run on the emulator. Memory holds garbage until it is written. Calls that a driver refuses are refused, and
so are copies in a stream from or to memory of the host that is not pinned, which a driver would do at once. Each
function can be told to fail. ``TRACT_CUDA_DRIVER=tract_cuda.testing.virtual:VirtualGpu`` has a process use it.
"""

# ruff: noqa: N802 (functions are called as the driver calls them)

from __future__ import annotations

import ctypes
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from time import perf_counter
from typing import Any, Final, TypeVar

import numpy as np

from tract_core.frozen import frozen
from tract_cuda.driver.library import LOST, OLDEST, OUT_OF_MEMORY
from tract_cuda.driver.prototypes import PROTOTYPES
from tract_cuda.testing.emulator import EmulationError, Emulator, Range, UnknownPtx

_ALIGNMENT: Final = 256
_GARBAGE: Final = 0xCD
_INVALID: Final = 1
_INVALID_HANDLE: Final = 400
_LAUNCH_FAILED: Final = 719
_NOT_FOUND: Final = 500
_NOT_READY: Final = 600
_CAPTURING: Final = 900
_CAPTURE_LOST: Final = 901
_UNKNOWN: Final = 999
_BAD_PTX: Final = 218
"""Numbers of errors, as the driver has them."""

_NAMES: Final = {
    _INVALID: "CUDA_ERROR_INVALID_VALUE",
    OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY",
    _BAD_PTX: "CUDA_ERROR_INVALID_PTX",
    _INVALID_HANDLE: "CUDA_ERROR_INVALID_HANDLE",
    _LAUNCH_FAILED: "CUDA_ERROR_LAUNCH_FAILED",
    _NOT_FOUND: "CUDA_ERROR_NOT_FOUND",
    _NOT_READY: "CUDA_ERROR_NOT_READY",
    _CAPTURING: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    _CAPTURE_LOST: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
}

ATTRIBUTES: Final = {16: 4, 75: 9, 76: 0, 97: 227 << 10}
"""Multiprocessors, compute capability, shared memory of a block: by the numbers of attributes."""

_DYNAMIC_SHARED: Final = 8
_PLAIN_SHARED: Final = 48 << 10

_ALWAYS: Final = frozenset(("cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuDeviceGetCount"))
"""Functions that work though the device is lost."""

Known = TypeVar("Known")

Work = Callable[[], int]
"""Does something, and returns the number of an error, or 0; that of not ready where it has to wait."""


@dataclass
class _Function:
    """A kernel. ``shared``: bytes of shared memory that a launch may ask for."""

    emulator: Emulator
    name: str
    shared: int = _PLAIN_SHARED


@dataclass
class _Stream:
    """What waits to be done. ``captured``: what is captured, if anything is; ``broken``: it will be no graph."""

    queue: list[Work] = field(default_factory=list[Work])
    captured: list[Work] | None = None
    broken: bool = False


@dataclass
class _Graph:
    """What is done where it is launched."""

    works: list[Work]


@dataclass
class _Event:
    """``done``: when it was reached, in seconds. ``waits``: how many times it is yet to be."""

    done: float | None = None
    waits: int = 0


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
        self._working, self._dying = False, list[tuple[dict[int, Any], int]]()
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

    def alive(self) -> Counter[str]:
        """How many streams, events, graphs, modules, functions, and pieces of memory there are."""
        made = Counter(type(one).__name__.strip("_").lower() for one in self._objects.values())
        made.update(allocated=len(self._allocated), pinned=len(self._pinned))
        return +made

    def _counted(self, name: str) -> Callable[..., int]:
        does: Callable[..., int] = getattr(self, f"_{name.split('_v', 1)[0]}")

        def call(*arguments: Any) -> int:
            with self._lock:
                self.log.append(name)
                self._calls[name] += 1
                if self._fails.get(name, (0, 0))[0] == self._calls[name]:
                    return self._failed(name, self._fails[name][1])
                if self._lost and name not in _ALWAYS:
                    return self._lost
                return self._answered(does, arguments)

        return call

    def _answered(self, does: Callable[..., int], arguments: Sequence[Any]) -> int:
        """What a function returns. Nothing that Python raises gets through a call of C."""
        try:
            return does(*arguments)
        except KeyError:
            return _INVALID_HANDLE
        except Exception as error:
            self.said = f"{type(error).__name__}: {error}"
            return _UNKNOWN

    def _failed(self, name: str, code: int) -> int:
        """What a function returns that was told to fail. Captures are lost; one that fails to end is over."""
        self._lost = self._lost or (code if code in LOST else 0)
        for one in self._objects.values():
            if isinstance(one, _Stream) and one.captured is not None:
                one.broken, one.captured = True, None if name == "cuStreamEndCapture" else one.captured
        return code

    def _new(self, place: int, one: Any) -> int:
        self._made += 1
        self._objects[self._made] = one
        return _put(place, self._made)

    def _known(self, handle: int, kind: type[Known]) -> Known:
        """What a handle stands for. Raises KeyError where it is none of that kind."""
        found = self._objects.get(handle)
        if not isinstance(found, kind):
            raise KeyError(handle)
        return found

    def _destroyed(self, handle: int, kind: type[Any]) -> int:
        self._known(handle, kind)
        del self._objects[handle]
        return 0

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
        return 0

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
        return self._freed(self._allocated, address)

    def _cuMemHostAlloc(self, place: int, size: int, flags: int) -> int:
        return _put(place, _held(self._pinned, size)) if size else _INVALID

    def _cuMemFreeHost(self, address: int) -> int:
        return self._freed(self._pinned, address)

    def _freed(self, memory: dict[int, Any], address: int) -> int:
        """Who frees memory waits for all that is going on."""
        if address not in memory:
            return _INVALID
        if self._working:
            self._dying.append((memory, address))
            return 0
        code = self._done(None)
        del memory[address]
        return code

    def _cuMemcpyHtoD(self, target: int, source: int, size: int) -> int:
        return self._done(None) or self._copied(target, source, size, _Places(self._allocated, None))

    def _cuMemcpyDtoH(self, target: int, source: int, size: int) -> int:
        return self._done(None) or self._copied(target, source, size, _Places(None, self._allocated))

    def _copied(self, target: int, source: int, size: int, places: _Places) -> int:
        if not places.hold(target, source, size):
            return _INVALID
        ctypes.memmove(target, source, size)
        return 0

    def _copy(self, stream: int, target: int, source: int, size: int, places: _Places) -> int:
        if not places.hold(target, source, size):
            return _INVALID
        return self._enqueue(stream, lambda: self._copied(target, source, size, places))

    def _cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._copy(stream, target, source, size, _Places(self._allocated, self._pinned))

    def _cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._copy(stream, target, source, size, _Places(self._pinned, self._allocated))

    def _cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._copy(stream, target, source, size, _Places(self._allocated, self._allocated))

    def _cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> int:
        if not _inside(self._allocated, target, size):
            return _INVALID

        def work() -> int:
            if not _inside(self._allocated, target, size):
                return _INVALID
            ctypes.memset(target, value, size)
            return 0

        return self._enqueue(stream, work)

    # ---- kernels

    def _cuModuleLoadDataEx(self, place: int, image: int, count: int, options: int, values: int) -> int:
        try:
            emulator = Emulator(ctypes.string_at(image).decode())
        except UnknownPtx as error:
            self.said = str(error)
            return _BAD_PTX
        return self._new(place, emulator) if emulator.module.entries else _BAD_PTX

    def _cuModuleUnload(self, module: int) -> int:
        return self._destroyed(module, Emulator)

    def _cuModuleGetFunction(self, place: int, module: int, name: bytes) -> int:
        emulator, text = self._known(module, Emulator), name.decode()
        try:
            emulator.kernel(text)
        except EmulationError as error:
            self.said = str(error)
            return _NOT_FOUND
        return self._new(place, _Function(emulator, text))

    def _cuFuncSetAttribute(self, function: int, which: int, value: int) -> int:
        if which != _DYNAMIC_SHARED or not 0 <= value <= ATTRIBUTES[97]:
            return _INVALID
        self._known(function, _Function).shared = value
        return 0

    def _cuFuncGetAttribute(self, place: int, which: int, function: int) -> int:
        return _put(place, 0, ctypes.c_int)

    def _cuLaunchKernel(self, function: int, *given: Any) -> int:
        grid, block, (shared, stream, places, _) = given[:3], given[3:6], given[6:]
        one = self._known(function, _Function)
        kernel = one.emulator.kernel(one.name)
        parameters = kernel.entry.parameters
        try:
            kernel.check(grid, block, shared, len(parameters))
        except EmulationError as error:
            self.said = str(error)
            return _INVALID
        if kernel.memory.dynamic + shared > one.shared:
            return _INVALID
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
        found = self._known(stream, _Stream)
        (found.queue if found.captured is None else found.captured).append(work)
        return 0

    def _done(self, wanted: _Stream | None) -> int:
        """Do what waits in streams until one is empty, or all are. Returns the number of an error, or 0."""
        if self._working:  # objects that nobody has any more may be freed at any time, as in the middle of a kernel
            return 0
        self._working = True
        try:
            return self._turns(wanted)
        finally:
            self._working = False
            while self._dying:
                memory, address = self._dying.pop()
                memory.pop(address, None)

    def _turns(self, wanted: _Stream | None) -> int:
        blocked: set[int] = set()
        while not self._lost:
            waiting = {n: one for n, one in self._objects.items() if isinstance(one, _Stream) and one.queue}
            if not (waiting if wanted is None else wanted.queue):
                return 0
            ready = sorted(waiting.keys() - blocked)
            if not ready:
                return _UNKNOWN  # all wait for each other
            chosen = self._random.choice(ready)
            code = waiting[chosen].queue[0]()
            if code == _NOT_READY:
                blocked.add(chosen)
                continue
            blocked.clear()
            waiting[chosen].queue.pop(0)
            if code:
                return code
        return self._lost

    def _cuStreamCreate(self, place: int, flags: int) -> int:
        return self._new(place, _Stream())

    def _cuStreamDestroy(self, stream: int) -> int:
        return self._done(self._known(stream, _Stream)) or self._destroyed(stream, _Stream)

    def _cuStreamSynchronize(self, stream: int) -> int:
        wanted = self._known(stream, _Stream)
        if wanted.captured is not None:
            wanted.broken = True
            return _CAPTURING
        return self._done(wanted)

    def _cuStreamBeginCapture(self, stream: int, mode: int) -> int:
        found = self._known(stream, _Stream)
        if found.captured is not None:
            return _INVALID
        found.captured, found.broken = [], False
        return 0

    def _cuStreamEndCapture(self, stream: int, place: int) -> int:
        found = self._known(stream, _Stream)
        captured, found.captured = found.captured, None
        if captured is None:
            return _INVALID
        return _CAPTURE_LOST if found.broken else self._new(place, _Graph(captured))

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> int:
        found = self._known(event, _Event)
        return self._enqueue(stream, lambda: _NOT_READY if found.waits else 0)

    def _cuGraphInstantiateWithFlags(self, place: int, graph: int, flags: int) -> int:
        return self._new(place, _Graph(list(self._known(graph, _Graph).works)))

    def _cuGraphLaunch(self, graph: int, stream: int) -> int:
        for work in self._known(graph, _Graph).works:
            self._enqueue(stream, work)
        return 0

    def _cuGraphExecDestroy(self, graph: int) -> int:
        return self._destroyed(graph, _Graph)

    def _cuGraphDestroy(self, graph: int) -> int:
        return self._destroyed(graph, _Graph)

    def _cuEventCreate(self, place: int, flags: int) -> int:
        return self._new(place, _Event())

    def _cuEventDestroy(self, event: int) -> int:
        return self._destroyed(event, _Event)

    def _cuEventRecordWithFlags(self, event: int, stream: int, flags: int) -> int:
        found, captured = self._known(event, _Event), self._known(stream, _Stream).captured is not None

        def work() -> int:
            found.done = perf_counter()
            found.waits = max(0, found.waits - 1)
            return 0

        found.waits += not captured
        return self._enqueue(stream, work)

    def _cuEventSynchronize(self, event: int) -> int:
        found = self._known(event, _Event)
        return self._done(None) if found.waits else 0

    def _cuEventElapsedTime(self, place: int, first: int, second: int) -> int:
        begin, end = self._known(first, _Event).done, self._known(second, _Event).done
        return _INVALID_HANDLE if begin is None or end is None else _put(place, 1e3 * (end - begin), ctypes.c_float)


@frozen
class _Places:
    """Where a copy may write to, and read from; ``None`` for any memory of the host."""

    targets: Mapping[int, Any] | None
    sources: Mapping[int, Any] | None

    def hold(self, target: int, source: int, size: int) -> bool:
        """Whether both ends are there."""
        pairs = ((self.targets, target), (self.sources, source))
        return all(memory is None or _inside(memory, address, size) for memory, address in pairs)


def _inside(memory: Mapping[int, Any], address: int, size: int) -> bool:
    """Whether a piece of memory holds that many bytes from there on."""
    return any(
        begin <= address and address + size <= begin + held.nbytes - _ALIGNMENT for begin, held in memory.items()
    )


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
