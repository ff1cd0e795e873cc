"""The virtual GPU: it refuses what a driver refuses, and does nothing sooner than it has to."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tract_cuda.driver.device import Device, Memory, Pinned, Stream
from tract_cuda.driver.library import LOST, Driver, DriverError
from tract_cuda.ptx import Ptx
from tract_cuda.testing.virtual import VirtualGpu

from tract_core.errors import RunError

SIZE = 64
SUM = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [x];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p1, %r2, 16;
    @%p1 bra END;
    cvta.to.global.u64 %d1, %d1;
    mul.wide.u32 %d2, %r2, 4;
    add.u64 %d3, %d1, %d2;
    ld.global.u32 %r3, [%d3];
    add.u32 %r3, %r3, %r1;
    st.global.u32 [%d3], %r3;
END:
    ret;
}
"""


@pytest.fixture
def gpu() -> VirtualGpu:
    return VirtualGpu(seed=1, memory=1 << 16)


@pytest.fixture
def device(gpu: VirtualGpu) -> Device:
    return Device(Driver(gpu), 0)


def add(threads: int = 32, shared_bytes: int = 0) -> Ptx:
    """A kernel that adds a number to 16 others."""
    return Ptx(name="add", text=SUM, threads=threads, shared_bytes=shared_bytes)


def put(device: Device, value: int) -> Memory:
    memory = device.allocate(SIZE)
    device.write(memory.address, np.full(SIZE, value, np.uint8))
    return memory


def got(device: Device, memory: Memory) -> int:
    """The first byte, once all that is put into streams is done."""
    found = np.zeros(1, np.uint8)
    device.driver.cuMemcpyDtoH(found.ctypes.data, memory.address, 1)
    return int(found[0])


def code(run: Any, *arguments: Any) -> int:
    with pytest.raises(DriverError) as caught:
        run(*arguments)
    return caught.value.code


def test_memory_begins_with_garbage(device: Device) -> None:
    assert got(device, device.allocate(SIZE)) == 0xCD


def test_nothing_is_done_before_somebody_waits(device: Device) -> None:
    memory, stream, there = put(device, 1), device.stream(), device.pinned(SIZE)
    there.array(np.uint8, (SIZE,))[...] = 0
    stream.copy_to_host(there.address, memory.address, SIZE)
    assert there.array(np.uint8, (SIZE,))[0] == 0
    stream.synchronize()
    assert there.array(np.uint8, (SIZE,))[0] == 1


def ordered(seed: int, *, waits: bool) -> bool:
    """Whether a stream saw what another one wrote."""
    device = Device(Driver(VirtualGpu(seed)), 0)
    memory, there = put(device, 1), device.pinned(SIZE)
    first, second = device.stream(), device.stream()
    first.clear(memory.address, SIZE)
    event = first.event()
    if waits:
        device.driver.cuStreamWaitEvent(second.handle, event.handle, 0)
    second.copy_to_host(there.address, memory.address, SIZE)
    second.synchronize()
    return there.array(np.uint8, (SIZE,))[0] == 0


def test_streams_take_turns_unless_one_waits_for_the_other() -> None:
    assert {ordered(seed, waits=False) for seed in range(8)} == {False, True}
    assert all(ordered(seed, waits=True) for seed in range(8))


def test_memory_is_freed_behind_what_uses_it(gpu: VirtualGpu, device: Device) -> None:
    memory, stream, there = put(device, 7), device.stream(), device.pinned(SIZE)
    stream.copy_to_host(there.address, memory.address, SIZE)
    del memory
    assert gpu.used() == 0
    assert there.array(np.uint8, (SIZE,))[0] == 7


def test_more_memory_than_there_is(device: Device) -> None:
    assert code(device.allocate, (1 << 16) + 1) == 2


@pytest.mark.parametrize(("begin", "size"), [(0, SIZE + 1), (SIZE, 1), (-1, 2)])
def test_copies_stay_within_memory(device: Device, begin: int, size: int) -> None:
    memory, stream, there = put(device, 1), device.stream(), device.pinned(2 * SIZE)
    assert code(stream.copy_to_device, memory.address + begin, there.address, size) == 1
    assert code(stream.copy_to_host, there.address, memory.address + begin, size) == 1
    assert code(stream.clear, memory.address + begin, size) == 1


def test_copies_in_streams_want_pinned_memory(device: Device) -> None:
    memory, stream, array = put(device, 1), device.stream(), np.zeros(SIZE, np.uint8)
    assert code(stream.copy_to_device, memory.address, array.ctypes.data, SIZE) == 1


def launched(device: Device, stream: Stream, memory: Memory, ptx: Ptx, grid: tuple[int, int, int] = (1, 1, 1)) -> None:
    stream.launch(device.function(ptx), grid, [ctypes.c_uint64(memory.address), ctypes.c_int32(3)])


def test_a_kernel_runs_as_often_as_its_graph_is_launched(device: Device) -> None:
    memory, stream = put(device, 0), device.stream()
    with stream.capture() as capture:
        launched(device, stream, memory, add())
    assert got(device, memory) == 0
    for _ in range(3):
        capture.graph.launch(stream)
    assert got(device, memory) == 9


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 1 << 16, 1), (1 << 31, 1, 1)])
def test_grids_that_no_device_takes(device: Device, grid: tuple[int, int, int]) -> None:
    memory, stream = put(device, 0), device.stream()
    assert code(launched, device, stream, memory, add(), grid) == 1
    launched(device, stream, memory, add())
    assert got(device, memory) == 3


def test_blocks_that_no_device_takes(device: Device) -> None:
    assert code(launched, device, device.stream(), put(device, 0), add(threads=1025)) == 1


def test_shared_memory_has_to_be_asked_for(device: Device) -> None:
    function = device.function(add())
    function.shared_bytes = 49 << 10
    assert code(device.stream().launch, function, (1, 1, 1), [ctypes.c_uint64(0), ctypes.c_int32(0)]) == 1
    launched(device, device.stream(), put(device, 0), add(shared_bytes=49 << 10))


def test_kernels_that_are_not_there(device: Device) -> None:
    assert code(device.function, Ptx(name="multiply", text=SUM, threads=1, shared_bytes=0)) == 500
    with pytest.raises(RunError, match=r"kernel add cannot be loaded: .*CUDA_ERROR_INVALID_PTX \(218\)"):
        device.function(Ptx(name="add", text="hello", threads=1, shared_bytes=0))


def test_instructions_that_the_emulator_does_not_know(gpu: VirtualGpu, device: Device) -> None:
    stream, text = device.stream(), SUM.replace("add.u32", "sub.q7")
    launched(device, stream, put(device, 0), Ptx(name="add", text=text, threads=32, shared_bytes=0))
    assert code(stream.synchronize) == 999
    assert "sub.q7" in gpu.said


def test_a_kernel_that_leaves_its_memory_loses_the_device(gpu: VirtualGpu, device: Device) -> None:
    memory, stream = device.allocate(SIZE - 4), device.stream()
    launched(device, stream, memory, add())
    assert code(stream.synchronize) in LOST
    assert "kernel 'add'" in gpu.said
    assert code(device.allocate, 1) in LOST
    assert code(stream.synchronize) in LOST


def test_who_waits_in_a_capture_loses_it(device: Device) -> None:
    stream = device.stream()
    with pytest.raises(DriverError) as caught, stream.capture():
        stream.synchronize()
    assert caught.value.code == 900
    driver, place = device.driver, ctypes.c_uint64()
    driver.cuStreamBeginCapture(stream.handle, 2)
    assert code(driver.cuStreamBeginCapture, stream.handle, 2) == 1
    assert code(driver.cuStreamSynchronize, stream.handle) == 900
    assert code(driver.cuStreamEndCapture, stream.handle, ctypes.byref(place)) == 901
    stream.synchronize()


@pytest.mark.parametrize(
    ("name", "more"),
    [("cuStreamSynchronize", ()), ("cuGraphDestroy", ()), ("cuEventSynchronize", ()), ("cuGraphLaunch", (1,))],
)
def test_handles_that_nobody_knows(device: Device, name: str, more: tuple[int, ...]) -> None:
    assert code(getattr(device.driver, name), 12345, *more) == 400


def test_what_is_alive_is_counted(gpu: VirtualGpu, device: Device) -> None:
    kept: list[Any] = [device.stream(), device.allocate(SIZE), device.pinned(SIZE), device.pinned(SIZE)]
    assert gpu.alive() == {"stream": 1, "allocated": 1, "pinned": 2}
    assert isinstance(kept[2], Pinned)
    kept.clear()
    assert not gpu.alive()
