"""What goes wrong on a device: one clear error, the next run right or refused, and nothing left behind."""

from __future__ import annotations

import gc
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tract_cuda.driver.device import Device
from tract_cuda.driver.library import Driver, DriverError
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.testing.virtual import VirtualGpu

from tract_core.data import DatumType
from tract_core.errors import RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.gather import Gather

OUT_OF_MEMORY, LOST = 2, 719
WEIGHTS = np.linspace(-1, 1, 32 * 24, dtype=np.float32).reshape(32, 24)


@pytest.fixture
def gpu() -> VirtualGpu:
    return VirtualGpu(seed=3, memory=1 << 24)


@pytest.fixture
def device(gpu: VirtualGpu) -> Iterator[Device]:
    yield Device(Driver(gpu), 0)
    gc.collect()


def network() -> TypedModel:
    """tanh(x w), for any number of rows."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,32,f32", model.symbols))
    weights = model.add_const("w", WEIGHTS)
    (y,) = model.wire_node("product", EinSum(AxesMapping(("bk", "kn"), ("bn",)), DatumType.F32), [x, weights])
    model.set_outputs(model.wire_node("tanh", Tanh(), [y]))
    return model


def plan_of(model: TypedModel, device: Device) -> CudaPlan:
    arch = arch_named("sm_90")
    assert arch is not None
    return CudaPlan(model, device, Target(arch, 4))


def inputs(rows: int) -> list[Any]:
    return [np.linspace(-2, 2, rows * 32, dtype=np.float32).reshape(rows, 32)]


def is_right(plan: CudaPlan, state: Any, rows: int) -> bool:
    (found,) = state.run(inputs(rows))
    wanted = np.tanh(inputs(rows)[0].astype(np.float64) @ WEIGHTS.astype(np.float64))
    return bool(np.allclose(found, wanted, rtol=1e-5, atol=1e-5))


def test_a_run_is_one_launch_of_a_graph(gpu: VirtualGpu, device: Device) -> None:
    plan = plan_of(network(), device)
    state = plan.spawn()
    assert is_right(plan, state, 5)
    gpu.log.clear()
    assert is_right(plan, state, 5)
    assert [name for name in gpu.log if name != "cuCtxSetCurrent"] == ["cuGraphLaunch", "cuStreamSynchronize"]


def test_other_sizes_get_graphs_of_their_own(gpu: VirtualGpu, device: Device) -> None:
    plan = plan_of(network(), device)
    state = plan.spawn()
    assert all(is_right(plan, state, rows) for rows in (1, 7, 0, 7, 33, 1, 7))
    gpu.log.clear()
    assert all(is_right(plan, state, rows) for rows in (7, 33))
    assert "cuStreamBeginCapture_v2" not in gpu.log


def test_states_share_weights_and_free_what_is_theirs(gpu: VirtualGpu, device: Device) -> None:
    plan = plan_of(network(), device)
    held = gpu.used()
    assert held >= WEIGHTS.nbytes
    states = [plan.spawn() for _ in range(3)]
    assert all(is_right(plan, state, rows) for rows, state in enumerate(states, start=4))
    assert gpu.used() < held + 3 * WEIGHTS.nbytes
    del states
    gc.collect()
    assert gpu.used() == held
    del plan
    gc.collect()
    assert gpu.used() == 0


def test_a_model_that_does_not_fit_is_refused(gpu: VirtualGpu, device: Device) -> None:
    gpu.fail("cuMemAlloc_v2", OUT_OF_MEMORY)
    with pytest.raises(DriverError, match=r"cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY \(2\)") as caught:
        plan_of(network(), device)
    assert "nvidia-smi" in str(caught.value)
    gc.collect()
    assert gpu.used() == 0
    plan = plan_of(network(), device)
    assert is_right(plan, plan.spawn(), 3)


@pytest.mark.parametrize("name", ["cuMemAlloc_v2", "cuMemHostAlloc", "cuStreamCreate", "cuGraphInstantiateWithFlags"])
def test_a_run_without_memory_is_refused_and_the_next_one_is_right(gpu: VirtualGpu, device: Device, name: str) -> None:
    plan = plan_of(network(), device)
    state, held = plan.spawn(), gpu.used()
    gpu.fail(name, OUT_OF_MEMORY)
    with pytest.raises(RunError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        state.run(inputs(6))
    assert is_right(plan, state, 6)
    del state
    gc.collect()
    assert gpu.used() == held


@pytest.mark.parametrize("name", ["cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuStreamEndCapture"])
def test_an_error_in_the_middle_of_a_capture_ends_it(gpu: VirtualGpu, device: Device, name: str) -> None:
    plan = plan_of(network(), device)
    state = plan.spawn()
    gpu.fail(name, 1)
    with pytest.raises(RunError, match=rf"{name}: CUDA_ERROR_INVALID_VALUE"):
        state.run(inputs(2))
    assert is_right(plan, state, 2)


def test_a_lost_device_is_told_each_time(gpu: VirtualGpu, device: Device) -> None:
    plan = plan_of(network(), device)
    state = plan.spawn()
    assert is_right(plan, state, 2)
    gpu.fail("cuStreamSynchronize", LOST)
    for one in (state, state, plan.spawn()):
        with pytest.raises(RunError, match="the context of this process is lost: a new process is needed"):
            one.run(inputs(2))
    with pytest.raises(RunError, match="the context of this process is lost"):
        plan_of(network(), device)


FREES = re.compile("Free|Destroy|Current")
"""Functions that are called where objects go: nobody is there to be told, and what cannot be freed stays."""


def calls_of_a_turn() -> list[tuple[str, int]]:
    """Every call that a model makes, from its plan to the second turn: the function, and which of its calls."""
    gpu = VirtualGpu(seed=3)
    device = Device(Driver(gpu), 0)
    gpu.log.clear()
    assert all(turns(device, network()))
    counts = {name: count for name, count in Counter(gpu.log).items() if not FREES.search(name)}
    return [(name, number + 1) for name, count in counts.items() for number in range(count)]


def turns(device: Device, model: TypedModel) -> list[bool]:
    plan = plan_of(model, device)
    state = plan.spawn()
    return [is_right(plan, state, rows) for rows in (3, 6)]


def test_whichever_call_fails_nothing_is_left_behind() -> None:
    for name, number in calls_of_a_turn():
        gpu = VirtualGpu(seed=3)
        device = Device(Driver(gpu), 0)
        gpu.fail(name, OUT_OF_MEMORY, call=number)
        with pytest.raises(RunError, match=rf"{name}: CUDA_ERROR_"):
            turns(device, network())
        assert all(turns(device, network())), f"behind call {number} of {name}"
        gc.collect()
        assert gpu.alive().keys() <= {"emulator", "function"}, f"behind call {number} of {name}: {gpu.alive()}"


def test_programs_share_the_memory_of_a_device(gpu: VirtualGpu, device: Device) -> None:
    other = Device(Driver(gpu), 0)
    held = other.allocate(gpu.memory - 2 * WEIGHTS.nbytes)
    plan = plan_of(network(), device)
    with pytest.raises(DriverError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        plan.spawn().run(inputs(100))
    del held
    assert is_right(plan, plan.spawn(), 100)


def test_an_index_beyond_the_end_is_told_by_the_node_executor(device: Device) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("4,3,f32", model.symbols))
    picked = model.add_source("picked", parse_typed_fact("2,i64", model.symbols))
    model.set_outputs(model.wire_node("rows", Gather(0), [x, picked]))
    state = plan_of(model, device).spawn()
    given = np.arange(12, dtype=np.float32).reshape(4, 3)
    (found,) = state.run([given, np.array([-1, 2])])
    assert found.tolist() == given[[-1, 2]].tolist()
    with pytest.raises(RunError, match="node 'rows'"):
        state.run([given, np.array([0, 4])])
    (found,) = state.run([given, np.array([3, 0])])
    assert found.tolist() == given[[3, 0]].tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes are forked")
def test_a_child_of_a_process_with_a_gpu_is_told(device: Device) -> None:
    plan = plan_of(network(), device)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            plan.spawn().run(inputs(2))
        except RunError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert "was opened before this process was forked" in os.read(reading, 10000).decode()
    assert is_right(plan, plan.spawn(), 2)
