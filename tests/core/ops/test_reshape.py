"""What reshaping refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.reshape import DynReshape

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (DynReshape((2, 2)), ["4,f32", "3,i64"], r"wants 2 integers as shape, found 3,i64"),
        (DynReshape((2, 2)), ["4,f32", "2,f32"], r"wants integers as shape, found 2,f32"),
        (DynReshape((2, 2)), ["5,f32", "2,i64"], r"5,f32 has 5 elements, \[2,2\] was announced"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_shape_of_another_volume_is_refused_in_the_run(run_op: Callable[..., list[Array]]) -> None:
    with pytest.raises(RunError, match=r"\[4\] cannot be arranged as \[3, 2\]"):
        run_op(DynReshape((2, 2)), [np.zeros(4, dtype=np.float32), np.array([3, 2])])


def test_announced_shape_is_checked(run_op: Callable[..., list[Array]]) -> None:
    with pytest.raises(RunError, match=r"the output has shape \(4, 1\), 2,2,f32 was announced"):
        run_op(DynReshape((2, 2)), [np.zeros(4, dtype=np.float32), np.array([4, 1])])


def test_the_size_left_over_of_nothing(run_op: Callable[..., list[Array]]) -> None:
    (found,) = run_op(DynReshape((symbol("A"), symbol("B"))), [np.zeros((0, 3), np.float32), np.array([0, -1])])
    assert found.shape == (0, 3)
