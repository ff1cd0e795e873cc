"""Several GPUs: each has its own memory, plans on them run side by side, and a forked process is told what is wrong."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tract_cuda import arrays
from tract_cuda.arrays import DeviceArray
from tract_cuda.driver import device as devices
from tract_cuda.driver.device import Device
from tract_cuda.driver.library import Driver, DriverError
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.runtime import CudaRuntime
from tract_cuda.testing.virtual import VirtualGpu

import tract_core as tract
from tract_core.errors import InputError, PluginError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Tanh

ROWS = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualGpu]:
    """Two devices, which the runtime finds."""
    found = VirtualGpu(seed=4, devices=2)
    driver = Driver(found)
    for module in ("tract_cuda.runtime", "tract_cuda.driver.device"):
        monkeypatch.setattr(f"{module}.native", lambda: driver)
    devices._opened.cache_clear()
    yield found
    devices._opened.cache_clear()


def tanh() -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,f32", model.symbols))
    model.set_outputs(model.wire_node("tanh", Tanh(), [x]))
    return model


def is_right(found: Any, rows: np.ndarray) -> bool:
    return bool(np.allclose(found, np.tanh(rows.astype(np.float64)), rtol=1e-6, atol=1e-7))


def test_the_runtime_takes_the_device_that_is_named(gpu: VirtualGpu) -> None:
    states: list[Any] = []
    for number in (1, 0):
        assert CudaRuntime(device=number).why_unusable() is None
        runnable = tract.runtime_for_name("cuda", device=number).prepare(tract.Model.from_typed(tanh()))
        before = gpu.used(1 - number)
        states.append(runnable.spawn_state())
        (found,) = states[-1].run([ROWS])
        assert is_right(found.view(), ROWS)
        assert {one.where for one in runnable.explain().placements} == {f"cuda:{number}"}
        assert gpu.used(number) > 0
        assert gpu.used(1 - number) == before


def test_a_device_that_is_not_there_is_named(gpu: VirtualGpu) -> None:
    assert CudaRuntime(device=2).why_unusable() == "there is no GPU 2: there are 2, counted from 0"
    with pytest.raises(PluginError, match="there is no GPU 2: there are 2, counted from 0"):
        tract.runtime_for_name("cuda(device=2)")
    with pytest.raises(DriverError, match=r"cuDeviceGet: CUDA_ERROR_INVALID_DEVICE \(101\)"):
        CudaRuntime(device=2).prepare(tanh())


def plans(gpu: VirtualGpu) -> list[CudaPlan]:
    driver, arch = Driver(gpu), arch_named("sm_90")
    assert arch is not None
    return [CudaPlan(tanh(), Device(driver, number), Target(arch, 4)) for number in (0, 1)]


def test_two_devices_at_once_from_two_threads(gpu: VirtualGpu) -> None:
    both = plans(gpu)

    def turns(number: int) -> list[bool]:
        state, found = both[number].spawn(), list[bool]()
        for count in (4, 1, 0, 3, 4):
            rows = ROWS[:count] + number
            found.append(is_right(state.run([rows])[0], rows))
        return found

    with ThreadPoolExecutor(4) as threads:
        assert all(all(one) for one in threads.map(turns, [0, 1, 0, 1]))


def test_states_of_two_devices_take_turns_in_one_thread(gpu: VirtualGpu) -> None:
    states = [plan.spawn() for plan in plans(gpu)]
    for count in (2, 4, 2, 3):
        for state in (*states, states[0]):
            assert is_right(state.run([ROWS[:count]])[0], ROWS[:count])


def there(device: Device, array: np.ndarray) -> DeviceArray:
    memory = device.allocate(array.nbytes)
    device.write(memory.address, array)
    return DeviceArray(device, memory.address, array.shape, array.dtype, memory)


class OfAnother:
    """An array with the CUDA array interface."""

    def __init__(self, array: DeviceArray, **changed: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__ | changed
        self.kept = array


def test_arrays_of_another_device_are_refused(gpu: VirtualGpu) -> None:
    first, second = plans(gpu)
    here, elsewhere = (there(plan.device, ROWS) for plan in (first, second))
    for one in (elsewhere, OfAnother(elsewhere)):
        with pytest.raises(InputError, match=r"an array is on cuda:1, the model on cuda:0") as caught:
            first.repeat([one])
        assert "copy it to cuda:0" in str(caught.value)
        with pytest.raises(InputError, match=r"an array is on cuda:1, the model on cuda:0"):
            first.repeat([here], [one])
    unknown = OfAnother(here, data=(64, False))
    with pytest.raises(InputError, match="an array is in memory that the driver does not know"):
        first.repeat([unknown])
    (found,) = second.repeat([OfAnother(elsewhere)]) or [None]
    assert is_right(found, ROWS)


def test_arrays_are_made_on_the_device_that_is_named(gpu: VirtualGpu) -> None:
    runnable = tract.runtime_for_name("cuda(device=1)").prepare(tract.Model.from_typed(tanh()))
    x, y = arrays.put(ROWS, device=1), arrays.empty(ROWS.shape, "f4", device=1)
    runnable.run([x], out=[y])
    assert is_right(np.asarray(y), ROWS)
    with pytest.raises(InputError, match="an array is on cuda:0, the model on cuda:1"):
        runnable.run([arrays.put(ROWS)], out=[y])


def test_an_address_counts_on_its_device_only(gpu: VirtualGpu) -> None:
    driver = Driver(gpu)
    first, second = (Device(driver, number) for number in (0, 1))
    memory = first.allocate(64)
    assert (first.owner(memory.address), second.owner(memory.address), first.owner(64)) == (0, 0, None)
    with pytest.raises(DriverError) as caught:
        second.write(memory.address, np.zeros(4, np.uint8))
    assert caught.value.code == 1
    stream = first.stream()
    second.enter()
    with pytest.raises(DriverError) as caught:
        driver.cuStreamSynchronize(stream.handle)
    assert caught.value.code == 400
    assert (gpu.used(0), gpu.used(1)) == (64, 0)


def test_what_is_freed_on_one_device_leaves_the_thread_on_the_other(gpu: VirtualGpu) -> None:
    driver = Driver(gpu)
    first, second = (Device(driver, number) for number in (0, 1))
    memory, stream, kept = second.allocate(64), first.stream(), first.allocate(64)
    with stream.capture() as capture:
        del memory  # as when the collector comes by
        stream.clear(kept.address, 64)
    capture.graph.launch(stream)
    stream.synchronize()
    found = np.ones(64, np.uint8)
    first.read(found, kept.address)
    assert not found.any()
    assert gpu.used(1) == 0


def test_a_device_that_is_lost_leaves_the_other_one(gpu: VirtualGpu) -> None:
    first, second = (plan.spawn() for plan in plans(gpu))
    assert is_right(first.run([ROWS])[0], ROWS)
    gpu.fail("cuStreamSynchronize", 719)
    for _ in range(2):
        with pytest.raises(DriverError, match="the context of this process is lost"):
            first.run([ROWS])
        assert is_right(second.run([ROWS])[0], ROWS)


def test_a_thread_without_a_context_is_refused(gpu: VirtualGpu) -> None:
    device = Device(Driver(gpu), 0)
    with ThreadPoolExecutor(1) as threads:
        refused = threads.submit(device.driver.cuMemAlloc, ctypes.byref(ctypes.c_uint64()), 4).exception()
        assert isinstance(refused, DriverError)
        assert refused.code == 201
        assert threads.submit(device.allocate, 4).result().address


FORKED = """
import os, sys
import numpy as np
import tract_core as tract
from tract_core.errors import TractError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Tanh

model = TypedModel()
x = model.add_source("x", parse_typed_fact("3,f32", model.symbols))
model.set_outputs(model.wire_node("tanh", Tanh(), [x]))
model = tract.Model.from_typed(model)
rows = np.ones(3, np.float32)

def told(name, function):
    try:
        print(name, type(function()).__name__, flush=True)
    except TractError as error:
        print(name, error.problem, "/", error.hint, flush=True)

if sys.argv[1] == "after":
    runtime = tract.runtime_for_name("cuda")
    runnable = runtime.prepare(model.clone())
    state = runnable.spawn_state()
    state.run([rows])
child = os.fork()
if child == 0:
    if sys.argv[1] == "after":
        told("state", lambda: state.run([rows]))
        told("runnable", lambda: runnable.run([rows]))
        told("prepare", lambda: runtime.prepare(model.clone()))
        del state, runnable
    told("runtime", lambda: tract.runtime_for_name("cuda").prepare(model.clone()).run([rows]))
    os._exit(0)
os.waitpid(child, 0)
if sys.argv[1] == "after":
    told("parent", lambda: state.run([rows]))
"""


def forked(when: str) -> list[str]:
    known = os.environ | {"TRACT_CUDA_DRIVER": "tract_cuda.testing.virtual:VirtualGpu"}
    done = subprocess.run([sys.executable, "-c", FORKED, when], env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_of_the_process_that_opened_the_device_is_refused() -> None:
    *lines, runtime, parent = forked("after")
    assert len(lines) == 3
    for line, name in zip(lines, ("state", "runnable", "prepare"), strict=True):
        assert line.startswith(f"{name} the GPU was opened before this process was forked, and cannot be used here")
        assert "start processes with multiprocessing's method 'spawn'" in line
    assert "CUDA_ERROR_NOT_INITIALIZED" in runtime
    assert "before this process was forked" in runtime
    assert parent == "parent list"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_opens_the_device_itself() -> None:
    assert forked("before") == ["runtime list"]
