"""Trained files that packages ship, as they are, against LiteRT: ``make test-shipped-tflite``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import fetch_tflite
import numpy as np
import pytest

import tract_core as tract

pytestmark = pytest.mark.shipped

NEAR: Final = 1e-4
"""How far outputs may be from LiteRT's, as a part of the largest: weights are halves, sums are in another order."""

FARTHER: Final = {"pose_landmark_heavy": 5e-4, "pose_landmark_lite": 5e-4}
"""Deep networks, one of whose outputs differs by 1e-4 between LiteRT's own kernels as well."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    paths = fetch_tflite.models()
    metafunc.parametrize("path", [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in paths])


def test_file(path: Path, tmp_path: Path, record_property: Any) -> None:
    with np.load(fetch_tflite.expected(path)) as file:
        parts = dict(file)
    inputs = [parts[f"in{slot}"] for slot in range(sum(name.startswith("in") for name in parts))]
    wanted = [parts[f"out{slot}"] for slot in range(len(parts) - len(inputs))]
    start = time.perf_counter()
    model = tract.load(path)
    seconds = time.perf_counter() - start
    nodes = sum(1 for _ in model.typed.live_nodes())
    model.declutter().save(tmp_path / "model.nnef.tar")
    results = [outputs(tract.load(path), inputs), outputs(tract.load(tmp_path / "model.nnef.tar"), inputs)]
    compared = wanted or results[0]
    far = [max(map(distance, found, compared)) for found in results]
    said = [f"{one:.0e}" for one in far] if wanted else ["no kernels", f"{far[1]:.0e}"]
    size = f"{path.stat().st_size / 1e6:.1f}"
    record_property("lite", (f"{path.parent.name}/{path.name}", size, str(nodes), f"{seconds:.2f}", *said))
    assert all(one.shape == two.shape and np.isfinite(one).all() for one, two in zip(results[0], compared, strict=True))
    assert max(far) <= FARTHER.get(path.stem, NEAR)


def outputs(model: Any, inputs: Sequence[Any]) -> list[Any]:
    return [np.asarray(one) for one in model.into_runnable("cpu").run(inputs)]


def distance(found: Any, wanted: Any) -> float:
    """As a part of the largest."""
    return float(np.abs(found - wanted).max(initial=0) / max(float(np.abs(wanted).max(initial=0)), 1e-6))
