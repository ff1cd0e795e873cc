"""2,000 requests that were changed at random, always the same ones; ``make fuzz`` asks others, and many more."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "fuzz"))
import fuzz_serve
from driver import Finding

COUNT = 2000


@pytest.fixture(scope="module")
def asked() -> Iterator[Any]:
    made = fuzz_serve.Asked()
    yield made
    made.close()


def test_each_request_is_answered_or_refused(asked: Any) -> None:
    seeds = fuzz_serve.seeds()
    counts: Counter[str] = Counter()
    for number in range(COUNT):
        chance = random.Random(f"2000/{number}")
        counts[asked.examine(fuzz_serve.mutated(seeds, chance))] += 1
    assert counts["HTTP 200"] > COUNT // 10
    assert counts["HTTP 400"] > COUNT // 10
    assert counts["gRPC OK"] > COUNT // 20
    assert counts["gRPC INVALID_ARGUMENT"] > COUNT // 20


def test_requests_as_they_are_meant_are_answered(asked: Any) -> None:
    for content in fuzz_serve.seeds():
        found = asked.examine(content)
        assert found in ("HTTP 200", "gRPC OK"), (found, content[:300])


def test_a_failure_is_found(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a mistake in reading shapes."""
    from tract_serve.http import infer

    def broken(given: Any, where: str) -> Any:
        if len(given) == 2 and given[0] == 2:
            raise KeyError(given)
        return tuple(given)

    monkeypatch.setattr(infer, "shape_of", broken)
    with pytest.raises(Finding, match="500"):
        asked.examine(fuzz_serve.seeds()[0])
