"""Networks of the bench, at sizes at which they run in moments."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))

from workloads import WORKLOADS, Workload

from networks.builder import Network
from tract_core.model.typed import TypedModel

__all__ = ["WORKLOADS", "Workload", "small", "small_network"]


def small(workload: Workload) -> Network:
    """A network. Those in eight bits are written by ONNX Runtime, which does not run on all processors."""
    try:
        return workload.build(**workload.small)
    except ModuleNotFoundError as why:
        if why.name != "onnxruntime":
            raise
        pytest.skip("it is quantised by ONNX Runtime, which is not installed")


def small_network(workload: Workload) -> tuple[TypedModel, list[np.ndarray]]:
    """The model, its floats in the type that is wanted, and its inputs, in order."""
    return workload.loaded(small(workload))
