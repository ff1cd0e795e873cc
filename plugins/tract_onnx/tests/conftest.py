"""What the tests of the ONNX frontend rely on: their helpers are beside them, and every rewrite is checked."""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _hostile_files_are_bounded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked ``hostile`` have 1 GiB of memory and 10 s; one that does not come back ends the test run."""
    if request.node.get_closest_marker("hostile") is None:
        yield
        return
    from tract_core.testing.hostile import bounded

    faulthandler.dump_traceback_later(120, exit=True)
    try:
        with bounded():
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def _patches_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CHECK_PATCHES", "1")


@pytest.fixture(autouse=True)
def _numbers_do_not_depend_on_the_order_of_tests(request: pytest.FixtureRequest) -> None:
    """Every test of a module draws its first random number from the same state."""
    draw = getattr(request.module, "RANDOM", None)
    if isinstance(draw, np.random.Generator):
        draw.bit_generator.state = np.random.default_rng(1).bit_generator.state
