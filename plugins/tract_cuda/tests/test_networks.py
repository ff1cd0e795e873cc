"""Whole networks on the virtual GPU: they agree with the reference, and a turn is one launch and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))  # its networks

from tract_cuda.driver.device import Device
from tract_cuda.driver.library import Driver
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.state import CudaState
from tract_cuda.testing.virtual import VirtualGpu
from workloads import WORKLOADS, Workload

import tract_core as tract
from networks import transformers, vision
from networks.builder import Network

MULTIPROCESSORS = 132
RECURRENT = {"LSTM", "bidirectional GRU"}
"""Networks with states that stay from turn to turn, which may be on the host; all others are all on the device."""

TOLERANCES = {"f32": 1e-5, "bf16": 0.05}
"""How far numbers may be off, relative to the largest one: sums are made in another order."""

MOST_CALLS = 100
"""Functions of Python that a turn of a network of few inputs calls, at most."""
CALLS_OF_A_TENSOR = 5
"""For one input or output more."""

ONE_GRAPH = ["cuGraphLaunch", "cuStreamSynchronize"]
OURS = tuple(f"{os.sep}{name}{os.sep}" for name in ("tract_core", "tract_cuda", "tract_llvm"))
EMULATED = f"{os.sep}testing{os.sep}"


def model_of(network: Network, precision: str = "f32") -> Any:
    """As a model of ours, its floats of a type."""
    model = tract.onnx().load_bytes(network.model.SerializeToString()).into_model()
    if precision != "f32":
        model.transform(tract.FloatPrecision("f32", precision))
    return model


def given_for(network: Network, model: Any) -> list[np.ndarray]:
    """The inputs of a network, in order."""
    typed = model.typed
    return [network.inputs[typed.nodes[outlet.node].name] for outlet in typed.inputs]


def wanted(model: Any, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the reference gives."""
    runnable = tract.runtime_for_name("reference").prepare(model.clone())
    return [np.asarray(one.view()) for one in runnable.run(list(given))]


class There:
    """A network on a virtual GPU of its own."""

    def __init__(self, model: Any) -> None:
        arch = arch_named("sm_80")
        assert arch is not None
        self.gpu = VirtualGpu()
        self.plan = CudaPlan(model.typed, Device(Driver(self.gpu), 0), Target(arch, MULTIPROCESSORS))
        self.state: CudaState = self.plan.spawn()

    def turn(self, given: Sequence[np.ndarray]) -> list[str]:
        """What one turn calls of the driver, beside what says which context is meant."""
        self.gpu.log.clear()
        self.state.run(list(given))
        return [name for name in self.gpu.log if name != "cuCtxSetCurrent"]

    def calls(self, given: Sequence[np.ndarray]) -> int:
        """How many functions of Python one turn calls, beside those of the virtual GPU."""
        count, inside = 0, 0

        def seen(frame: FrameType, event: str, _: Any) -> None:
            nonlocal count, inside
            emulated = EMULATED in frame.f_code.co_filename
            if event == "call":
                inside += emulated
                count += not inside and any(one in frame.f_code.co_filename for one in OURS)
            elif event == "return":
                inside -= emulated

        sys.setprofile(seen)
        try:
            self.state.run(list(given))
        finally:
            sys.setprofile(None)
        return count


def near(found: Sequence[np.ndarray], right: Sequence[np.ndarray], tolerance: float) -> None:
    """No number is farther off than that, relative to the largest one of its output."""
    for one, other in zip(found, right, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        wide = other.astype("f8")
        np.testing.assert_allclose(one.astype("f8"), wide, rtol=0, atol=tolerance * np.abs(wide).max(initial=0))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
def test_networks_agree_with_the_reference(workload: Workload) -> None:
    network = workload.build(**workload.small)
    model = model_of(network, workload.precision)
    given = given_for(network, model)
    there = There(model)
    tolerance = TOLERANCES[workload.precision] if workload.exact else workload.tolerance
    near(there.state.run(list(given)), wanted(model, given), tolerance)
    assert workload.name in RECURRENT or not there.plan.hosted()


TINY: Mapping[str, Any] = {
    "ResNet-50": (partial(vision.resnet50, size=32), "stages", (1, 2)),
    "BERT": (partial(transformers.bert, tokens=16, width=128, vocabulary=50), "depth", (1, 3)),
    "decoder step": (partial(transformers.llama_step, past=9, heads=4, kv_heads=2, vocabulary=50), "depth", (1, 3)),
}
"""What builds a network, by which argument it gets deeper, and how deep it is."""


@pytest.mark.parametrize("name", TINY)
def test_a_turn_is_one_launch_whatever_the_depth(name: str) -> None:
    """No allocation, no copy by a call, and no Python for nodes: more of it only for inputs and outputs."""
    build, argument, depths = TINY[name]
    calls, tensors = list[int](), list[int]()
    for depth in depths:
        network = build(**{argument: depth})
        model = model_of(network)
        given = given_for(network, model)
        there = There(model)
        assert there.turn(given) != ONE_GRAPH, "the first turn captures the graph"
        used = there.gpu.used()
        assert [there.turn(given) for _ in range(2)] == [ONE_GRAPH] * 2
        assert there.gpu.used() == used
        calls.append(there.calls(given))
        tensors.append(len(model.typed.inputs) + len(model.typed.outputs))
    assert calls[0] < MOST_CALLS
    assert calls[1] - calls[0] <= CALLS_OF_A_TENSOR * (tensors[1] - tensors[0])
