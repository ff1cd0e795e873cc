"""What the tests of the ONNX frontend rely on: their helpers are beside them, and every rewrite is checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _hostile_files_are_bounded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked ``hostile`` have 1 GiB of memory and 10 s; one that does not come back ends the test run."""
    from tract_core.testing.hostile import held_to_limits

    with held_to_limits(request):
        yield


@pytest.fixture(autouse=True)
def _patches_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CHECK_PATCHES", "1")


@pytest.fixture(autouse=True)
def _numbers_do_not_depend_on_the_order_of_tests(request: pytest.FixtureRequest) -> None:
    """Every test of a module draws its first random number from the same state."""
    draw = getattr(request.module, "RANDOM", None)
    if isinstance(draw, np.random.Generator):
        draw.bit_generator.state = np.random.default_rng(1).bit_generator.state
