"""What filling refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.fill import DynFill

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (DynFill(Constant(np.array(1)), (2,)), ["2,i64"], r"wants 1 integers as shape, found 2,i64"),
        (DynFill(Constant(np.array([1])), (2,)), ["1,i64"], r"the value is Constant\(\[1\]\), wanted one of rank 0"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_negative_size_is_refused_in_the_run(run_op: Callable[..., list[Array]]) -> None:
    with pytest.raises(RunError, match="negative dimensions are not allowed"):
        run_op(DynFill(Constant(np.array(1)), (2,)), [np.array([-1])])
