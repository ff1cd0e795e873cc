"""One GPU: its memory, its streams, and the kernels that are loaded there."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final

import numpy as np

from tract_core.errors import RunError
from tract_core.plugins.keys import Array
from tract_cuda.driver.library import Driver, DriverError, native
from tract_cuda.ptx import Ptx

MULTIPROCESSORS: Final = 16
SHARED_BYTES: Final = 97
MAJOR: Final = 75
MINOR: Final = 76
"""What attributes of a device are called."""

_DYNAMIC_SHARED: Final = 8
"""The attribute of a function that says how much shared memory a launch may ask for."""

_LOCAL: Final = 3
"""The attribute of a function that says how much memory each thread has for what registers do not hold."""

_PLAIN_SHARED: Final = 48 << 10
"""Bytes of shared memory that any kernel may have without asking."""

_NON_BLOCKING: Final = 1
_RELAXED: Final = 2
"""How a stream is captured: memory may be freed meanwhile, and what other threads do does not matter."""

_UNTIMED: Final = 2
"""Of an event that nobody asks when it was."""

_EXTERNAL: Final = 1
"""How an event is recorded by a graph, rather than being an edge in it."""

_DEVICE_OF_POINTER: Final = 9
"""The attribute of a pointer that says on which device its memory is."""

_NOT_LIKE_IT: Final = 910
"""The error of a graph that cannot become another one: they differ in more than numbers."""

_RESULT_BYTES: Final = 24
"""Of what the driver says of such an attempt: how it went, and two nodes."""

_ERROR_LOG: Final = 5
_ERROR_LOG_BYTES: Final = 6
"""Options of the compiler in the driver."""

_LOG_BYTES: Final = 8192


class Device:
    """A GPU, by its number. May be used by many threads."""

    def __init__(self, driver: Driver, number: int) -> None:
        """Raises DriverError where there is none of that number."""
        self.driver, self.number, self.process = driver, number, os.getpid()
        self._handle = driver.number("cuDeviceGet", number)
        self._context = driver.handle("cuDevicePrimaryCtxRetain", self._handle)
        self._functions: dict[Ptx, Function] = {}
        self.enter()

    def enter(self) -> None:
        """Have this thread call the driver for this device.

        Raises RunError in a child of the process that opened it.
        """
        if os.getpid() != self.process:
            raise RunError(
                "the GPU was opened before this process was forked, and cannot be used here",
                hint="start processes with multiprocessing's method 'spawn', or open the GPU after the fork",
            )
        self.driver.cuCtxSetCurrent(self._context)

    @contextmanager
    def inside(self) -> Generator[None]:
        """The same for a while; then this thread is back where it was."""
        self.driver.cuCtxPushCurrent(self._context)
        try:
            yield
        finally:
            self.driver.cuCtxPopCurrent(ctypes.byref(ctypes.c_uint64()))

    def owner(self, address: int) -> int | None:
        """The number of the device whose memory is there, as the driver counts them; ``None`` where it knows none."""
        self.enter()
        try:
            return self.driver.number("cuPointerGetAttribute", _DEVICE_OF_POINTER, address)
        except DriverError:
            return None

    @property
    def name(self) -> str:
        """What placements call it."""
        return f"cuda:{self.number}"

    @property
    def model(self) -> str:
        """What the vendor calls it."""
        found = ctypes.create_string_buffer(256)
        self.driver.cuDeviceGetName(found, len(found), self._handle)
        return found.value.decode()

    def attribute(self, number: int) -> int:
        """An attribute, by the number that the driver has for it."""
        return self.driver.number("cuDeviceGetAttribute", number, self._handle)

    @property
    def capability(self) -> int:
        """The compute capability, times ten."""
        return capability_of(self.driver, self._handle)

    @property
    def memory_bytes(self) -> int:
        """How much memory it has."""
        return memory_of(self.driver, self._handle)

    # ---- memory

    def allocate(self, size: int) -> Memory:
        """Memory of the device. Raises DriverError where there is not enough."""
        self.enter()
        return Memory(self, size)

    def pinned(self, size: int) -> Pinned:
        """Memory of the host that the device reads and writes itself."""
        self.enter()
        return Pinned(self, size)

    def write(self, address: int, array: Array) -> None:
        """Copy an array without gaps to the device, now."""
        self.enter()
        self.driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes)

    def read(self, array: Array, address: int) -> None:
        """Fill an array without gaps from the device, now."""
        self.enter()
        self.driver.cuMemcpyDtoH(array.ctypes.data, address, array.nbytes)

    # ---- work

    def stream(self) -> Stream:
        """A new stream."""
        self.enter()
        return Stream(self)

    def function(self, ptx: Ptx) -> Function:
        """A kernel, loaded at most once. Raises DriverError with what the compiler in the driver says."""
        found = self._functions.get(ptx)
        if found is None:
            self.enter()
            found = self._functions[ptx] = Function(self, ptx)
        return found


class Memory:
    """Memory of a device, freed when nobody has this object any more. ``size``: in bytes."""

    def __init__(self, device: Device, size: int) -> None:
        self.size = size
        self.address = device.driver.handle("cuMemAlloc", size) if size else 0
        if size:
            weakref.finalize(self, _free, device, "cuMemFree", self.address)


class Pinned:
    """Memory of the host that does not move, freed when nobody has this object any more. ``size``: in bytes."""

    def __init__(self, device: Device, size: int) -> None:
        self.size = size
        self.address = device.driver.handle("cuMemHostAlloc", size, 0) if size else 0
        if size:
            weakref.finalize(self, _free, device, "cuMemFreeHost", self.address)

    def array(self, dtype: Any, shape: Sequence[int]) -> Array:
        """Its begin as an array, which is good as long as this object is there."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if not size:
            return np.empty(shape, dtype)
        held: Any = (ctypes.c_ubyte * size).from_address(self.address)
        found: Array = np.frombuffer(held, np.uint8).view(dtype).reshape(shape)
        return found


def _free(device: Device, function: str, address: int) -> None:
    """Free something, at any time: in the middle of what this thread does on another device, which it goes on with."""
    if os.getpid() == device.process:
        with suppress(RunError), device.inside():  # a context that is lost has freed everything
            getattr(device.driver, function)(address)


class Function:
    """A kernel that is loaded. ``threads``: of a block; ``shared_bytes``: that a launch gives each."""

    def __init__(self, device: Device, ptx: Ptx) -> None:
        driver, log = device.driver, ctypes.create_string_buffer(_LOG_BYTES)
        self._driver = driver
        self.name, self.threads, self.shared_bytes = ptx.name, ptx.threads, ptx.shared_bytes
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        try:
            self._module = driver.handle("cuModuleLoadDataEx", ptx.text.encode(), 2, options, values)
        except RunError as error:
            said = log.value.decode(errors="replace").strip()
            raise RunError(f"kernel {ptx.name} cannot be loaded: {error.problem}: {said}", hint=error.hint) from error
        self.handle = driver.handle("cuModuleGetFunction", self._module, ptx.name.encode())
        if self.shared_bytes > _PLAIN_SHARED:
            driver.cuFuncSetAttribute(self.handle, _DYNAMIC_SHARED, self.shared_bytes)

    @property
    def local_bytes(self) -> int:
        """Of memory that each thread has for what has no room in registers, once the driver has compiled it."""
        return self._driver.number("cuFuncGetAttribute", _LOCAL, self.handle)


class Stream:
    """Work that is done in order."""

    def __init__(self, device: Device) -> None:
        self.device, self._driver = device, device.driver
        self.handle = self._driver.handle("cuStreamCreate", _NON_BLOCKING)
        weakref.finalize(self, _free, device, "cuStreamDestroy", self.handle)

    def launch(self, function: Function, grid: Sequence[int], values: Sequence[Any]) -> None:
        """Launch a kernel. ``values``: of its parameters, as numbers of ctypes."""
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self._driver.cuLaunchKernel(
            function.handle, *grid, function.threads, 1, 1, function.shared_bytes, self.handle, pointers, None
        )

    def copy_to_device(self, address: int, source: int, size: int) -> None:
        """Copy pinned memory to the device."""
        self._driver.cuMemcpyHtoDAsync(address, source, size, self.handle)

    def copy_to_host(self, target: int, address: int, size: int) -> None:
        """Copy memory of the device to pinned memory."""
        self._driver.cuMemcpyDtoHAsync(target, address, size, self.handle)

    def copy_on_device(self, target: int, source: int, size: int) -> None:
        """Copy memory of the device to other memory of it."""
        self._driver.cuMemcpyDtoDAsync(target, source, size, self.handle)

    def wait_for(self, handle: int) -> None:
        """Do nothing more before another stream, by its handle, has done what is in it now."""
        self.device.enter()
        event = self._driver.handle("cuEventCreate", _UNTIMED)
        self._driver.cuEventRecordWithFlags(event, handle, 0)
        self._driver.cuStreamWaitEvent(self.handle, event, 0)
        self._driver.cuEventDestroy(event)  # once it was reached

    def clear(self, address: int, size: int) -> None:
        """Set memory of the device to zeros."""
        self._driver.cuMemsetD8Async(address, 0, size, self.handle)

    def synchronize(self) -> None:
        """Wait until all is done. Raises DriverError where anything went wrong meanwhile."""
        self.device.enter()
        self._driver.cuStreamSynchronize(self.handle)

    @contextmanager
    def capture(self, again: Graph | None = None) -> Generator[Capture]:
        """What is put into the stream here is not done, but becomes a graph.

        ``again``: one that nobody needs any more, nor is being done: it becomes the new one if it can, which takes less
        time than making one.
        """
        self.device.enter()
        self._driver.cuStreamBeginCapture(self.handle, _RELAXED)
        found = Capture()
        try:
            yield found
        except BaseException:
            self._ended(quiet=True)
            raise
        handle = self._ended()
        if again is not None and again.becomes(handle):
            self._driver.cuGraphDestroy(handle)
            found.made = again
        else:
            found.made = Graph(self.device, handle)

    def _ended(self, *, quiet: bool = False) -> int:
        found = ctypes.c_uint64()
        try:
            self._driver.cuStreamEndCapture(self.handle, ctypes.byref(found))
        except RunError:
            if not quiet:
                raise
        return found.value

    def event(self, *, captured: bool = False) -> Event:
        """A mark in what is done, which tells when that was. ``captured``: in a graph, each time that is launched."""
        return Event(self, captured=captured)


class Capture:
    """What becomes a graph. ``made``: once it is one."""

    made: Graph | None = None

    @property
    def graph(self) -> Graph:
        """The graph, once all is captured."""
        assert self.made is not None, "it is still captured"
        return self.made


class Graph:
    """Work that is launched as a whole."""

    def __init__(self, device: Device, handle: int) -> None:
        driver = device.driver
        try:
            self.handle = driver.handle("cuGraphInstantiateWithFlags", handle, 0)
        finally:
            driver.cuGraphDestroy(handle)
        self._driver = driver
        weakref.finalize(self, _free, device, "cuGraphExecDestroy", self.handle)

    def becomes(self, handle: int) -> bool:
        """Do what a captured graph does from now on, where that differs in numbers alone. Returns whether it does."""
        said = ctypes.create_string_buffer(_RESULT_BYTES)
        try:
            self._driver.cuGraphExecUpdate(self.handle, handle, said)
        except DriverError as error:
            if error.code != _NOT_LIKE_IT:
                self._driver.cuGraphDestroy(handle)
                raise
            return False
        return True

    def launch(self, stream: Stream) -> None:
        """Have all of it done, behind what is in the stream."""
        stream.device.enter()
        self._driver.cuGraphLaunch(self.handle, stream.handle)


class Event:
    """A mark in a stream, or in a graph, made where it was asked for."""

    def __init__(self, stream: Stream, *, captured: bool) -> None:
        self._driver = stream.device.driver
        self.handle = self._driver.handle("cuEventCreate", 0)
        weakref.finalize(self, _free, stream.device, "cuEventDestroy", self.handle)
        self._driver.cuEventRecordWithFlags(self.handle, stream.handle, _EXTERNAL if captured else 0)

    def seconds_since(self, other: Event) -> float:
        """How long after another one, once both are done."""
        found = ctypes.c_float()
        self._driver.cuEventSynchronize(self.handle)
        self._driver.cuEventElapsedTime(ctypes.byref(found), other.handle, self.handle)
        return found.value / 1e3


def capability_of(driver: Driver, handle: int) -> int:
    """The compute capability of a device, times ten. The device is not opened."""
    major, minor = (driver.number("cuDeviceGetAttribute", one, handle) for one in (MAJOR, MINOR))
    return 10 * major + minor


def memory_of(driver: Driver, handle: int) -> int:
    """How many bytes of memory a device has. The device is not opened."""
    return driver.handle("cuDeviceTotalMem", handle)


def device_of(number: int) -> Device:
    """The GPU of a number, opened once in a process.

    Raises DriverError where there is no driver, or no such GPU, RunError in a child of the process that opened it.
    """
    found = _opened(number)
    found.enter()
    return found


@cache
def _opened(number: int) -> Device:
    return Device(native(), number)
