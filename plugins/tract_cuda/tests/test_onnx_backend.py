"""ONNX's own cases on the virtual GPU: thousands, so only where they are asked for, by ``make test-cuda-long``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tract_onnx" / "tests"))  # the suite

from onnx_backend_suite import MODES, TOLERANCES, all_cases, refusal
from tract_cuda.driver import library

MODE: Final = "decluttered"

GAPS: Final[Mapping[str, str]] = {}
"""The cases that fail on this runtime alone, and why. One that passes does not belong here."""

CASES = all_cases() if os.environ.get("TRACT_CUDA_ALL") else {}


@pytest.fixture(autouse=True)
def _a_virtual_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]: pytest uses it
    library.native.cache_clear()
    monkeypatch.setenv(library.VARIABLE, "tract_cuda.testing.virtual:VirtualGpu")
    yield
    library.native.cache_clear()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_backend(name: str, request: pytest.FixtureRequest) -> None:
    if name in GAPS:
        request.applymarker(pytest.mark.xfail(reason=GAPS[name], strict=True))
    wanted, options = refusal(name, MODE), {"runtime": "cuda", **MODES[MODE], **TOLERANCES.get(name, {})}
    if wanted is None:
        CASES[name](None, **options)
        return
    error, part = wanted
    with pytest.raises(error, match=part):
        CASES[name](None, **options)


@pytest.mark.skipif(not CASES, reason="set TRACT_CUDA_ALL to run ONNX's cases")
def test_the_whole_suite_is_there() -> None:
    assert len(CASES) >= 2000
    assert GAPS.keys() <= CASES.keys()
