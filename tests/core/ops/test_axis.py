"""What axis operators refuse, and how permutations are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis, full_reshape, moves_for

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (AddAxis(2), ["2,f32"], r"AddAxis: axis 2 is outside a tensor of rank 2"),
        (RmAxis(0), ["2,f32"], r"RmAxis: axis 0 of 2,f32 has size 2, not 1"),
        (RmAxis(1), ["2,f32"], r"axis 1 is outside a tensor of rank 1"),
        (MoveAxis(0, 1), ["2,f32"], r"axis 1 is outside a tensor of rank 1"),
        (Reshape(0, (4,), (2, 3)), ["4,f32"], r"Reshape: \[4\] has 4 elements, \[2,3\] has 6; the input is 4,f32"),
        (Reshape(0, (4,), (2, 2)), ["5,f32"], r"Reshape: axes 0 to 1 of 5,f32 are not \[4\]"),
        (Reshape(1, (4,), (2, 2)), ["4,f32"], r"Reshape: axes 1 to 2 of 4,f32 are not \[4\]"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


@pytest.mark.parametrize("permutation", list(permutations(range(4))), ids=str)
def test_moves_make_a_permutation(permutation: tuple[int, ...]) -> None:
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    found = x
    for move in moves_for(permutation):
        found = np.moveaxis(found, move.source, move.target)
    assert np.array_equal(found, x.transpose(permutation))


def test_what_is_no_permutation_is_refused() -> None:
    with pytest.raises(FactError, match=r"\[0, 0\] is not a permutation of 2 axes"):
        moves_for([0, 0])


def test_full_reshape_leaves_the_ends_alone() -> None:
    assert full_reshape([2, 6, 5], [2, 2, 3, 5]) == Reshape(1, (6,), (2, 3))


def test_full_reshape_of_nothing_takes_all_axes() -> None:
    """The rest of the axes need not have as many elements as before."""
    assert full_reshape([2, 0, 3], [0, 3]) == Reshape(0, (2, 0, 3), (0, 3))
    assert full_reshape([2, 3], [2, 3]) is None
