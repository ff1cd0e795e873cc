"""Graphs that become others where only numbers differ, and what a state keeps of them."""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tract_cuda import graphs
from tract_cuda.driver.device import Device, Graph, Memory, Stream
from tract_cuda.driver.library import Driver, DriverError
from tract_cuda.graphs import MOST_GRAPHS
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.testing.virtual import VirtualGpu

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import RmAxis
from tract_core.ops.binary import Add
from tract_core.ops.concat import TypedConcat
from tract_core.ops.random import Distribution, RandomLike
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput

TARGET = Target(arch_named("sm_80") or pytest.fail("there is none"), 4)
MADE, CHANGED = "cuGraphInstantiateWithFlags", "cuGraphExecUpdate_v2"
SIZE = 64


@pytest.fixture
def gpu() -> VirtualGpu:
    return VirtualGpu()


@pytest.fixture
def device(gpu: VirtualGpu) -> Device:
    return Device(Driver(gpu), 0)


def source(model: TypedModel, name: str, fact: str) -> OutletId:
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def growing() -> TypedModel:
    """A past to which each turn adds a row, and the sums of its columns."""
    model = TypedModel()
    past, x = source(model, "past", "P,8,f32"), source(model, "x", "1,8,f32")
    (then,) = model.wire_node("then", TypedConcat(0), [past, x])
    model.set_outputs([then, *model.wire_node("sums", Reduce((0,), Reducer.SUM), [then])])
    return model


def grow(state: Any, turns: int) -> None:
    past = np.zeros((0, 8), "f4")
    for turn in range(turns):
        x = np.full((1, 8), turn + 1, "f4")
        wanted = np.concatenate([past, x])
        past, sums = state.run([past, x])
        assert np.array_equal(past, wanted)
        assert np.array_equal(sums, wanted.sum(0, keepdims=True))


def test_a_past_that_grows_makes_no_more_graphs_than_are_kept(gpu: VirtualGpu, device: Device) -> None:
    state = CudaPlan(growing(), device, TARGET).spawn()
    grow(state, 50)
    calls = Counter(gpu.log)
    assert calls[MADE] <= MOST_GRAPHS
    assert calls[CHANGED] >= 50 - MOST_GRAPHS
    assert calls["cuMemAlloc_v2"] < 25  # the arena grows by more than a turn needs


def test_graphs_of_sizes_that_are_used_stay(gpu: VirtualGpu, device: Device) -> None:
    """Each is what it was made for, though others became those of other sizes."""
    state = CudaPlan(growing(), device, TARGET).spawn()
    rng = np.random.default_rng(0)
    for size in [40, *rng.integers(0, 40, 60)]:
        past, x = rng.standard_normal((size, 8)).astype("f4"), rng.standard_normal((1, 8)).astype("f4")
        then, sums = state.run([past, x])
        assert np.array_equal(then, np.concatenate([past, x]))
        np.testing.assert_allclose(sums, then.sum(0, keepdims=True), atol=1e-5)
    assert Counter(gpu.log)[MADE] <= MOST_GRAPHS


def test_a_graph_that_the_driver_does_not_change_is_made_anew(gpu: VirtualGpu, device: Device) -> None:
    """A loop has another number of launches for each length."""
    body, model = TypedModel(), TypedModel()
    x, state = source(body, "x", "1,3,f32"), source(body, "state", "3,f32")
    (grown,) = body.wire_node("grown", Add(), [state, *body.wire_node("row", RmAxis(0), [x])])
    body.set_outputs([grown, x])
    outputs = (OutputMapping(state=True, last=0), OutputMapping(full=FullOutput(1, 0)))
    loop = Scan(body, (ScannedInput(0), StateInput()), outputs, reset_every_turn=True)
    model.set_outputs(model.wire_node("loop", loop, [source(model, "x", "T,3,f32"), source(model, "s", "3,f32")]))
    running = CudaPlan(model, device, TARGET).spawn()
    lengths = [20, *range(20)]
    for length in lengths:
        x = np.arange(3 * length, dtype="f4").reshape(length, 3)
        total, same = running.run([x, np.ones(3, "f4")])
        assert np.array_equal(total, x.sum(0) + 1)
        assert np.array_equal(same, x)
    calls = Counter(gpu.log)
    assert calls[MADE] == len(lengths)
    assert calls[CHANGED] == len(lengths) - MOST_GRAPHS


def test_each_segment_has_graphs_of_its_own(gpu: VirtualGpu, device: Device) -> None:
    model = growing()
    noise = RandomLike(Distribution.UNIFORM, 5.0, 5.0, model.outlet_fact(model.outputs[1]).datum_type, None)
    five = model.wire_node("noise", noise, [model.outputs[1]])
    model.set_outputs([model.outputs[0], *model.wire_node("more", Add(), [model.outputs[1], *five])])
    state = CudaPlan(model, device, TARGET).spawn()
    for size in range(40):
        past = np.ones((size, 8), "f4")
        _, sums = state.run([past, past[:1] if size else np.ones((1, 8), "f4")])
        assert np.array_equal(sums, np.full((1, 8), size + 6, "f4"))
    assert Counter(gpu.log)[MADE] <= 2 * MOST_GRAPHS


# ---- what the virtual GPU does as the driver


def captured(stream: Stream, target: Memory, sizes: list[int], copies: int = 0, again: Graph | None = None) -> Graph:
    with stream.capture(again) as capture:
        for size in sizes:
            stream.clear(target.address, size)
        for _ in range(copies):
            stream.copy_on_device(target.address, target.address + 32, 32)
    return capture.graph


def test_an_update_changes_numbers(device: Device) -> None:
    memory, stream = device.allocate(SIZE), device.stream()
    graph = captured(stream, memory, [4])
    assert captured(stream, memory, [16], again=graph) is graph
    device.write(memory.address, np.ones(SIZE, np.uint8))
    graph.launch(stream)
    stream.synchronize()
    found = np.empty(SIZE, np.uint8)
    device.read(found, memory.address)
    assert found.tolist() == [0] * 16 + [1] * (SIZE - 16)


@pytest.mark.parametrize(("sizes", "copies", "result"), [([4, 4], 0, 2), ([], 0, 2), ([], 1, 3)])
def test_an_update_changes_nothing_else(
    gpu: VirtualGpu, device: Device, sizes: list[int], copies: int, result: int
) -> None:
    memory, stream, place = device.allocate(SIZE), device.stream(), ctypes.c_uint64()
    graph = captured(stream, memory, [4])
    stream.device.enter()
    device.driver.cuStreamBeginCapture(stream.handle, 2)
    for size in sizes:
        stream.clear(memory.address, size)
    for _ in range(copies):
        stream.copy_on_device(memory.address, memory.address + 32, 32)
    device.driver.cuStreamEndCapture(stream.handle, ctypes.byref(place))
    said = (ctypes.c_int * 6)()
    with pytest.raises(DriverError, match=r"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE \(910\)"):
        device.driver.cuGraphExecUpdate(graph.handle, place.value, said)
    assert said[0] == result
    device.driver.cuGraphDestroy(place.value)
    other = captured(stream, memory, sizes, copies, again=graph)
    assert other is not graph
    del graph, other
    assert gpu.alive()["graph"] == 0


def test_other_errors_of_an_update_are_told_and_leave_no_graph(gpu: VirtualGpu, device: Device) -> None:
    memory, stream = device.allocate(SIZE), device.stream()
    graph = captured(stream, memory, [4])
    gpu.fail(CHANGED, 999)
    with pytest.raises(DriverError, match=r"cuGraphExecUpdate_v2: .* \(999\)"):
        captured(stream, memory, [8], again=graph)
    assert gpu.alive()["graph"] == 1


def test_what_waits_in_a_stream_is_done_as_it_was(device: Device) -> None:
    memory, stream = device.allocate(SIZE), device.stream()
    device.write(memory.address, np.ones(SIZE, np.uint8))
    graph = captured(stream, memory, [4])
    graph.launch(stream)
    captured(stream, memory, [16], again=graph)
    stream.synchronize()
    found = np.empty(SIZE, np.uint8)
    device.read(found, memory.address)
    assert found.sum() == SIZE - 4


def test_loops_of_many_launches_are_kept_for_fewer_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_KEPT", 30)
    kept = graphs.ReadySegments()
    for number in range(5):
        kept.put(0, number, graphs.Ready(graphs.Uncaptured(lambda: None), (), (), {}, None, 10))
    assert [number for number in range(5) if kept.find(0, number) is not None] == [2, 3, 4]
    kept.put(0, 5, graphs.Ready(graphs.Uncaptured(lambda: None), (), (), {}, None, 1000))
    assert [number for number in range(6) if kept.find(0, number) is not None] == [5]
