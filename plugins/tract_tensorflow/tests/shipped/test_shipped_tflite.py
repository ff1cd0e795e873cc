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

FARTHER: Final = {"nmp": 2e-3, "pose_landmark_full": 2e-3, "pose_landmark_heavy": 5e-4, "pose_landmark_lite": 5e-4}
"""Networks one of whose outputs differs by 1e-4 to 6e-4 between LiteRT's own kernels as well: logits of noise in the
thousands, and logarithms of spectra."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    paths = fetch_tflite.models()
    metafunc.parametrize("path", [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in paths])


def test_file(path: Path, tmp_path: Path, record_property: Any) -> None:
    with np.load(fetch_tflite.expected(path)) as file:
        parts = dict(file)
    inputs, wanted = turns(parts, "in"), turns(parts, "out")
    start = time.perf_counter()
    model = tract.load(path)
    seconds = time.perf_counter() - start
    nodes = sum(1 for _ in model.typed.live_nodes())
    model.declutter().save(tmp_path / "model.nnef.tar")
    results = [outputs(tract.load(path), inputs), outputs(tract.load(tmp_path / "model.nnef.tar"), inputs)]
    compared = [one for turn in wanted for one in turn] or results[0]
    far = [max(map(distance, found, compared)) for found in results]
    said = [f"{one:.0e}" for one in far] if wanted else ["no kernels", f"{far[1]:.0e}"]
    size = f"{path.stat().st_size / 1e6:.1f}"
    record_property("lite", (f"{path.parent.name}/{path.name}", size, str(nodes), f"{seconds:.2f}", *said))
    assert all(one.shape == two.shape and np.isfinite(one).all() for one, two in zip(results[0], compared, strict=True))
    is_exact = any(one.dtype.kind in "iu" for one in compared)
    assert max(far) <= (0 if is_exact else FARTHER.get(path.stem, NEAR))


def turns(parts: dict[str, Any], kind: str) -> list[list[Any]]:
    """The inputs, or the outputs, of each turn."""
    found: dict[str, list[Any]] = {}
    for name, array in parts.items():
        if name.startswith(kind):
            found.setdefault(name.partition(".")[0], []).append(array)
    return list(found.values())


def outputs(model: Any, inputs: Sequence[Sequence[Any]]) -> list[Any]:
    """Those of all turns, one behind the other, of one state."""
    state = model.into_runnable("cpu").spawn_state()
    return [np.asarray(one) for turn in inputs for one in state.run(turn)]


def distance(found: Any, wanted: Any) -> float:
    """As a part of the largest."""
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    return float(np.abs(found - wanted).max(initial=0) / max(float(np.abs(wanted).max(initial=0)), 1e-6))
