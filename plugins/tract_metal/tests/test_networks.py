"""The networks of the bench at reduced sizes, and the trained one of the examples, beside the node executor."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from on_mlx import CPU, wanted
from tract_metal.plan import MetalPlan

import tract_core as tract

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "bench"))

from workloads import WORKLOADS  # noqa: E402 (the bench is no package)

HOSTED = {
    "ResNet-50 int8": {"EinSum", "Conv", "QuantizeLinear", "DequantizeLinear", "SumPool"},
    "BERT-base int8": {"EinSum"},
}
"""Operators of a network that are left to the host."""


@pytest.mark.parametrize("workload", [one for one in WORKLOADS if one.precision == "f32"], ids=lambda one: one.name)
def test_networks_of_the_bench(workload) -> None:
    network = workload.build(**workload.small)
    model = tract.onnx().load_bytes(network.model.SerializeToString()).into_model().typed
    model.declutter()
    plan = MetalPlan(model, CPU)
    left = {type(model.nodes[node].op).__name__ for node in plan.hosted}
    assert left <= HOSTED.get(workload.name, set())
    inputs = list(network.inputs.values())
    tolerance = 1e-5 if workload.exact else workload.tolerance
    for found, right in zip(plan.run(inputs), wanted(model, inputs), strict=True):
        assert np.abs(found - right).max() <= tolerance * max(np.abs(right).max(), 1e-6)


def test_the_trained_digits() -> None:
    model = tract.onnx().load(ROOT / "examples" / "digits" / "digits.onnx").into_model().typed
    model.declutter()
    plan = MetalPlan(model, CPU)
    assert not plan.hosted
    shape = [int(size) if isinstance(size, int) else 3 for size in model.outlet_fact(model.inputs[0]).shape]
    image = np.random.default_rng(0).random(shape).astype("f4")
    (found,), (right,) = plan.run([image]), wanted(model, [image])
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)
