"""Files of one operator, and what LiteRT's reference kernels compute with them: integers to the bit.

``tflite_cases/FAMILY.npz`` is made by ``making/make.py``, which says what is in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tract_core as tract

CASES = Path(__file__).parent / "tflite_cases"
FAMILIES = sorted(path.stem for path in CASES.glob("*.npz"))
ALL = bool(os.environ.get("TRACT_LONG"))

TOLERANCES: dict[str, float] = {}
"""By family, or by the name of a case: how far floats may be from theirs, as a part of the largest. Else `NEAR`."""

NEAR = 2e-6


@cache
def archive(family: str) -> dict[str, Any]:
    """What a family holds, case by case."""
    found: dict[str, Any] = {}
    with np.load(CASES / f"{family}.npz") as file:
        for name in file.files:
            case, _, part = name.partition("/")
            found.setdefault(case, {})[part] = file[name]
    return found


def names() -> Iterator[tuple[str, str]]:
    """Every case of every family."""
    for family in FAMILIES:
        yield from ((family, case) for case in archive(family))


def check(family: str, case: str, runtime: str) -> None:
    """A case on a runtime, run by run, with one state."""
    parts = archive(family)[case]
    inputs = [parts[f"in{slot}"] for slot in range(sum(name.startswith("in") for name in parts))]
    state = tract.runtime_for_name(runtime).prepare(tract.load_bytes(parts["model"].tobytes())).spawn_state()
    outputs = [name for name in parts if name.startswith("out")]
    for run in range(1 + max(int(name.partition("/")[2] or 0) for name in outputs)):
        for slot, found in enumerate(state.run(inputs)):
            compare(np.asarray(found), parts[f"out{slot}/{run}" if run else f"out{slot}"], (family, case))


def compare(found: Any, wanted: Any, names: tuple[str, str]) -> None:
    """Integers are the same; floats lie near one another, and what is no number is where it is."""
    assert found.shape == wanted.shape
    if wanted.dtype.kind == "S":
        assert [str(one).encode() for one in found.reshape(-1)] == wanted.reshape(-1).tolist()
        return
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
        return
    tolerance = TOLERANCES.get(names[1], TOLERANCES.get(names[0], NEAR))
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.where(finite, 0, found), np.where(finite, 0, wanted))
    largest = np.abs(wanted[finite]).max(initial=1e-3)
    np.testing.assert_allclose(
        np.where(finite, found, 0), np.where(finite, wanted, 0), rtol=0, atol=tolerance * largest
    )


@pytest.mark.parametrize(("family", "case"), list(names()))
def test_reference(family: str, case: str) -> None:
    check(family, case, "reference")


@pytest.mark.parametrize(("family", "case"), [one for index, one in enumerate(names()) if ALL or index % 3 == 0])
def test_cpu(family: str, case: str) -> None:
    check(family, case, "cpu")
