"""Networks of the bench, at sizes at which they run in moments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))

from workloads import WORKLOADS, Workload

import tract_core as tract
from networks.builder import Network
from tract_core.model.typed import TypedModel

__all__ = ["WORKLOADS", "Workload", "small", "small_network"]


def small(workload: Workload) -> Network:
    """A network. Those in eight bits are written by ONNX Runtime, which does not run on all processors."""
    try:
        return workload.build(**workload.small)
    except ImportError as why:
        pytest.skip(f"it cannot be written here: {why}")


def small_network(workload: Workload) -> tuple[TypedModel, list[np.ndarray]]:
    """The model, its floats in the type that is wanted, and its inputs, in order."""
    network = small(workload)
    model = tract.onnx().load_bytes(network.model.SerializeToString()).into_model()
    if workload.precision != "f32":
        model.transform(tract.FloatPrecision("f32", workload.precision))
    typed: Any = model.typed
    return typed, [network.inputs[typed.outlet_name(outlet)] for outlet in typed.inputs]
