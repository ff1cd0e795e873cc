"""What the tests of the TensorFlow frontends rely on: their helpers are beside them; hostile files are bounded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _hostile_files_are_bounded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked ``hostile`` have 1 GiB of memory and 10 s; one that does not come back ends the test run."""
    from tract_core.testing.hostile import held_to_limits

    with held_to_limits(request):
        yield
