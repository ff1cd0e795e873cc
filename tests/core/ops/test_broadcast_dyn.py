"""What stretching refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.broadcast_dyn import DynBroadcast

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (DynBroadcast((2, 2)), ["2,f32", "S,i64"], r"2,f32 to a shape given as S,i64; \[2,2\] was announced"),
        (DynBroadcast((2, 2)), ["2,2,2,f32", "2,i64"], r"\[2,2\] was announced"),
        (DynBroadcast((2, 2)), ["2,f32", "2,f32"], r"wants integers as shape, found 2,f32"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_sizes_that_do_not_stretch_are_refused_in_the_run(run_op: Callable[..., list[Array]]) -> None:
    with pytest.raises(RunError, match="shape mismatch"):
        run_op(DynBroadcast((2, 3)), [np.zeros((2, 2), dtype=np.float32), np.array([2, 3])])
