"""What all tests of the compiler for GPUs share."""

from __future__ import annotations

import os

import pytest
from tract_cuda.testing.static_facts import ptxas

os.environ["TRACT_CHECK_PROGRAMS"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what wants NVIDIA's assembler where there is none."""
    if ptxas() is not None:
        return
    for item in items:
        if item.get_closest_marker("nvcc"):
            item.add_marker(pytest.mark.skip(reason="wants ptxas, as in the wheel nvidia-cuda-nvcc"))
