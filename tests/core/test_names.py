"""Names of nodes: the first that is free, however often names come and go."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from tract_core.model.names import Names


def first_free(taken: dict[str, int], name: str) -> str:
    """As the documentation has it."""
    numbered = [name, *(f"{name}.{number}" for number in range(1, len(taken) + 2))]
    return next(one for one in numbered if one not in taken)


@given(st.lists(st.tuples(st.sampled_from(["a", "a.1", "a.1.1", "b", "a.²", "a.01"]), st.integers(0, 5)), max_size=40))
def test_the_first_that_is_free(steps: list[tuple[str, int]]) -> None:
    names, taken = Names(), dict[str, int]()
    for number, (wanted, removed) in enumerate(steps):
        assert names.free(wanted) == first_free(taken, wanted)
        free = names.free(wanted)
        names.give(free, number)
        taken[free] = number
        if removed < len(taken) and removed % 2:
            gone = list(taken)[removed]
            names.take(gone, taken.pop(gone))
    assert dict(names) == taken


def test_a_name_is_taken_from_its_own_node_only() -> None:
    names = Names([("a", 1)])
    names.take("a", 2)
    assert names["a"] == 1
    copy = names.copy()
    copy.take("a", 1)
    assert "a" in names
    assert "a" not in copy


def test_many_nodes_of_one_name() -> None:
    names = Names()
    start = time.process_time()
    for number in range(50_000):
        names.give(names.free("x"), number)
    assert time.process_time() - start < 5
    assert names["x.49999"] == 49_999
