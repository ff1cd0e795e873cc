"""GPUs that are not there: CUDA's driver, as its callers see it, over the emulator.

Nothing that is put into a stream is done before somebody waits. Then streams take turns, in an order that a seed says,
and kernels run on the emulator. Memory holds garbage until it is written. Calls that a driver refuses are refused, and
so are copies in a stream from or to memory of the host that is not pinned, which a driver would do at once. Each
function can be told to fail. Of several devices, each has memory, streams and kernels of its own, which count only
where its context is the current one of the thread. In a child of the process that made it, nothing works.
``TRACT_CUDA_DRIVER=tract_cuda.testing.virtual:VirtualGpu`` has a process use it.
"""

# ruff: noqa: N802 (functions are called as the driver calls them)

from __future__ import annotations

import ctypes
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import RLock, local
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
_NOT_READY_YET: Final = 3
_NO_SUCH_DEVICE: Final = 101
_NO_CONTEXT: Final = 201
_INVALID_HANDLE: Final = 400
_LAUNCH_FAILED: Final = 719
_NOT_FOUND: Final = 500
_NOT_READY: Final = 600
_CAPTURING: Final = 900
_CAPTURE_LOST: Final = 901
_NOT_LIKE_IT: Final = 910
_UNKNOWN: Final = 999
_BAD_PTX: Final = 218
"""Numbers of errors, as the driver has them."""

_NAMES: Final = {
    _INVALID: "CUDA_ERROR_INVALID_VALUE",
    OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY",
    _NOT_READY_YET: "CUDA_ERROR_NOT_INITIALIZED",
    _NO_SUCH_DEVICE: "CUDA_ERROR_INVALID_DEVICE",
    _NO_CONTEXT: "CUDA_ERROR_INVALID_CONTEXT",
    _BAD_PTX: "CUDA_ERROR_INVALID_PTX",
    _INVALID_HANDLE: "CUDA_ERROR_INVALID_HANDLE",
    _LAUNCH_FAILED: "CUDA_ERROR_LAUNCH_FAILED",
    _NOT_FOUND: "CUDA_ERROR_NOT_FOUND",
    _NOT_READY: "CUDA_ERROR_NOT_READY",
    _CAPTURING: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    _CAPTURE_LOST: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
    _NOT_LIKE_IT: "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
}

ATTRIBUTES: Final = {16: 4, 75: 9, 76: 0, 97: 227 << 10}
"""Multiprocessors, compute capability, shared memory of a block: by the numbers of attributes."""

_DYNAMIC_SHARED: Final = 8
_PLAIN_SHARED: Final = 48 << 10

_ALWAYS: Final = frozenset(("cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuDeviceGetCount"))
"""Functions that work though the device is lost."""

_ANYWHERE: Final = ("cuDevice", "cuCtx", *_ALWAYS)
"""How functions begin that need no context."""

_IN_ANY_PROCESS: Final = frozenset(("cuGetErrorName", "cuGetErrorString"))

_OTHER_TOPOLOGY: Final = 2
_OTHER_NODE: Final = 3
"""What the driver says of graphs that cannot become others."""

_DEVICE_OF_POINTER: Final = 9
"""The attribute of a pointer that says on which device its memory is."""

Known = TypeVar("Known")

Work = Callable[[], int]
"""Does something, and returns the number of an error, or 0; that of not ready where it has to wait."""


@dataclass
class _Function:
    """A kernel. ``shared``: bytes of shared memory that a launch may ask for."""

    emulator: Emulator
    name: str
    shared: int = _PLAIN_SHARED


@frozen
class _Node:
    """Something that a graph does. ``kind``: what no update changes: which sort of work, on which memory."""

    kind: Any
    work: Work


@dataclass
class _Stream:
    """What waits to be done. ``captured``: what is captured, if anything is; ``broken``: it will be no graph."""

    queue: list[Work] = field(default_factory=list[Work])
    captured: list[_Node] | None = None
    broken: bool = False


@dataclass
class _Graph:
    """What is done where it is launched, in order."""

    nodes: list[_Node]


@dataclass
class _Event:
    """``done``: when it was reached, in seconds. ``waits``: how many times it is yet to be."""

    done: float | None = None
    waits: int = 0


class VirtualGpu:
    """A library of the driver's functions, as attributes. ``log``: the names of all functions called so far."""

    def __init__(self, seed: int = 0, memory: int = 1 << 30, devices: int = 1) -> None:
        """``memory``: bytes that each device has."""
        self.log: list[str] = []
        self.memory = memory
        self.said = ""
        """What the emulator said last."""
        self._random, self._lock = random.Random(seed), RLock()
        self._process, self._thread = os.getpid(), local()
        self._memory_of: list[dict[int, Any]] = [{} for _ in range(devices)]
        self._pinned: dict[int, Any] = {}
        self._objects: dict[int, Any] = {}
        self._device_of: dict[int, int] = {}
        self._lost_of, self._made = [0] * devices, 0
        self._working, self._dying = False, list[tuple[dict[int, Any], int]]()
        self._fails: dict[str, tuple[int, int]] = {}
        self._calls: Counter[str] = Counter()
        for name, arguments in PROTOTYPES.items():
            # Callers keep the interpreter, so that threads do not wait for each other at each call.
            setattr(self, name, ctypes.PYFUNCTYPE(ctypes.c_int, *arguments)(self._counted(name)))

    def fail(self, name: str, code: int, *, call: int = 1) -> None:
        """Have a function fail, at the ``call``th time from now on."""
        self._fails[name] = self._calls[name] + call, code

    def used(self, device: int | None = None) -> int:
        """Bytes of a device that are allocated, or of all of them."""
        memories = self._memory_of if device is None else [self._memory_of[device]]
        return sum(held.nbytes - _ALIGNMENT for memory in memories for held in memory.values())

    def alive(self) -> Counter[str]:
        """How many streams, events, graphs, modules, functions, and pieces of memory there are."""
        made = Counter(type(one).__name__.strip("_").lower() for one in self._objects.values())
        made.update(allocated=sum(map(len, self._memory_of)), pinned=len(self._pinned))
        return +made

    @property
    def _contexts(self) -> list[int]:
        """The numbers of the devices whose contexts this thread has, the current one last."""
        found: list[int] = self._thread.__dict__.setdefault("contexts", [])
        return found

    @property
    def _here(self) -> int:
        """The number of the device whose context is the current one."""
        return self._contexts[-1]

    @property
    def _allocated(self) -> dict[int, Any]:
        """The memory of that device."""
        return self._memory_of[self._here]

    def _counted(self, name: str) -> Callable[..., int]:
        does: Callable[..., int] = getattr(self, f"_{name.split('_v', 1)[0]}")

        def call(*arguments: Any) -> int:
            with self._lock:
                self.log.append(name)
                self._calls[name] += 1
                if self._fails.get(name, (0, 0))[0] == self._calls[name]:
                    return self._failed(name, self._fails[name][1])
                return self._why_not(name) or self._answered(does, arguments)

        return call

    def _why_not(self, name: str) -> int:
        """The number of the error with which all functions answer now, or 0."""
        if os.getpid() != self._process and name not in _IN_ANY_PROCESS:
            return _NOT_READY_YET
        if name in _ALWAYS or not self._contexts:
            return 0 if name.startswith(_ANYWHERE) else _NO_CONTEXT
        return 0 if name.startswith("cuCtx") else self._lost_of[self._here]

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
        if code in LOST and self._contexts:
            self._lost_of[self._here] = code
        for one in self._objects.values():
            if isinstance(one, _Stream) and one.captured is not None:
                one.broken, one.captured = True, None if name == "cuStreamEndCapture" else one.captured
        return code

    def _new(self, place: int, one: Any) -> int:
        self._made += 1
        self._objects[self._made], self._device_of[self._made] = one, self._here
        return _put(place, self._made)

    def _known(self, handle: int, kind: type[Known]) -> Known:
        """What a handle stands for. Raises KeyError where it is none of that kind, or of another device."""
        found = self._objects.get(handle)
        if not isinstance(found, kind) or self._device_of[handle] != self._here:
            raise KeyError(handle)
        return found

    def _destroyed(self, handle: int, kind: type[Any]) -> int:
        self._known(handle, kind)
        del self._objects[handle], self._device_of[handle]
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
        return _put(place, len(self._memory_of), ctypes.c_int)

    def _cuDeviceGet(self, place: int, number: int) -> int:
        return _put(place, number, ctypes.c_int) if 0 <= number < len(self._memory_of) else _NO_SUCH_DEVICE

    def _cuDeviceGetName(self, place: int, size: int, device: int) -> int:
        ctypes.memmove(place, b"virtual\0", 8)
        return 0

    def _cuDeviceGetAttribute(self, place: int, which: int, device: int) -> int:
        return _put(place, ATTRIBUTES[which], ctypes.c_int)

    def _cuDeviceTotalMem(self, place: int, device: int) -> int:
        return _put(place, self.memory)

    def _cuDevicePrimaryCtxRetain(self, place: int, device: int) -> int:
        return _put(place, 1 + device)

    def _cuDevicePrimaryCtxRelease(self, device: int) -> int:
        return 0

    def _cuCtxSetCurrent(self, context: int) -> int:
        if not 0 < context <= len(self._memory_of):
            return _NO_CONTEXT
        self._contexts[-1:] = [context - 1]
        return 0

    def _cuCtxPushCurrent(self, context: int) -> int:
        if not 0 < context <= len(self._memory_of):
            return _NO_CONTEXT
        self._contexts.append(context - 1)
        return 0

    def _cuCtxPopCurrent(self, place: int) -> int:
        return _put(place, 1 + self._contexts.pop()) if self._contexts else _NO_CONTEXT

    def _cuPointerGetAttribute(self, place: int, which: int, address: int) -> int:
        if which != _DEVICE_OF_POINTER:
            return _INVALID
        owners = [number for number, memory in enumerate(self._memory_of) if _inside(memory, address, 0)]
        return _put(place, owners[0], ctypes.c_int) if owners else _INVALID

    # ---- memory

    def _cuMemGetInfo(self, free: int, whole: int) -> int:
        return _put(free, self.memory - self.used(self._here)) or _put(whole, self.memory)

    def _cuMemAlloc(self, place: int, size: int) -> int:
        if not size:
            return _INVALID
        if self.used(self._here) + size > self.memory:
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
        """Where it may write and read is decided now: it is done in whatever context somebody waits in."""
        if not places.hold(target, source, size):
            return _INVALID
        ends = tuple(map(id, (places.targets, places.sources)))
        return self._enqueue(stream, lambda: self._copied(target, source, size, places), ("copy", *ends))

    def _cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._copy(stream, target, source, size, _Places(self._allocated, self._pinned))

    def _cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._copy(stream, target, source, size, _Places(self._pinned, self._allocated))

    def _cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> int:
        return self._copy(stream, target, source, size, _Places(self._allocated, self._allocated))

    def _cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> int:
        memory = self._allocated
        if not _inside(memory, target, size):
            return _INVALID

        def work() -> int:
            if not _inside(memory, target, size):
                return _INVALID
            ctypes.memset(target, value, size)
            return 0

        return self._enqueue(stream, work, "set")

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
        launch = partial(one.emulator.launch, one.name, grid, block, shared, arguments)
        return self._enqueue(stream, partial(self._run, launch, self._here), ("launch", self._here))

    def _run(self, launch: Callable[..., None], device: int) -> int:
        """Launch a kernel, which sees the memory of its device."""
        memory = [Range(begin, held.nbytes - _ALIGNMENT) for begin, held in self._memory_of[device].items()]
        try:
            launch(memory=memory, order=self._random.choice((0, 1, 5, 9)))
        except EmulationError as error:
            self.said, self._lost_of[device] = str(error), _LAUNCH_FAILED
        return self._lost_of[device]

    # ---- streams, events, graphs

    def _enqueue(self, stream: int, work: Work, kind: Any) -> int:
        found = self._known(stream, _Stream)
        if found.captured is None:
            found.queue.append(work)
        else:
            found.captured.append(_Node(kind, work))
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
        while not self._lost_of[self._here]:
            here = (n for n, device in self._device_of.items() if device == self._here)
            waiting = {n: one for n in here if isinstance(one := self._objects[n], _Stream) and one.queue}
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
        return self._lost_of[self._here]

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
        return self._enqueue(stream, lambda: _NOT_READY if found.waits else 0, "wait")

    def _cuGraphInstantiateWithFlags(self, place: int, graph: int, flags: int) -> int:
        return self._new(place, _Graph(list(self._known(graph, _Graph).nodes)))

    def _cuGraphExecUpdate(self, graph: int, other: int, said: int) -> int:
        """What is in streams already is done as it was."""
        before, after = self._known(graph, _Graph), self._known(other, _Graph)
        if len(before.nodes) != len(after.nodes):
            return _put(said, _OTHER_TOPOLOGY, ctypes.c_int) or _NOT_LIKE_IT
        if [one.kind for one in before.nodes] != [one.kind for one in after.nodes]:
            return _put(said, _OTHER_NODE, ctypes.c_int) or _NOT_LIKE_IT
        before.nodes = list(after.nodes)
        return _put(said, 0, ctypes.c_int)

    def _cuGraphLaunch(self, graph: int, stream: int) -> int:
        for node in self._known(graph, _Graph).nodes:
            self._enqueue(stream, node.work, node.kind)
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
        return self._enqueue(stream, work, ("record", event))

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
