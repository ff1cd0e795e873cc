"""What the tests of what compilers share have in common."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tract_llvm.isa import Isa, of_this_machine
from tract_llvm.testing.elements import ElementRunner

sys.path.insert(0, str(Path(__file__).parent))  # modules that tests share


@pytest.fixture(autouse=True)
def _hostile_files_are_bounded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked ``hostile`` have 1 GiB of memory and 10 s; one that does not come back ends the test run."""
    from tract_core.testing.hostile import held_to_limits

    with held_to_limits(request):
        yield


_BEST_OF_EACH_WIDTH = {isa.vector_bytes: isa for isa in of_this_machine()}


@pytest.fixture(params=_BEST_OF_EACH_WIDTH.values(), ids=lambda isa: isa.name)
def isa(request: pytest.FixtureRequest) -> Isa:
    """The instruction sets that this machine has; of those that differ for products of integers only, the best one."""
    return request.param


@pytest.fixture
def elements(isa: Isa) -> ElementRunner:
    return ElementRunner(isa)
