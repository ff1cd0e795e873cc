"""What one-hot refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.one_hot import DynOneHot, OneHot

Array = np.ndarray[Any, Any]

_OFF, _ON = Constant(np.array(0, dtype=np.float32)), Constant(np.array(1, dtype=np.float32))


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (OneHot(0, 3, _OFF, _ON), ["2,f32"], r"wants integers as indices, found 2,f32"),
        (OneHot(2, 3, _OFF, _ON), ["2,i64"], r"axis 2 is outside a tensor of rank 2"),
        (OneHot(0, 3, _OFF, Constant(np.array(1))), ["2,i64"], r"wanted two of rank 0 and of one type"),
        (OneHot(0, 3, _OFF, Constant(np.ones(1, np.float32))), ["2,i64"], r"wanted two of rank 0 and of one type"),
        (DynOneHot(0, 3, _OFF, _ON), ["2,i64", "1,i64"], r"wants a tensor of rank 0 as size, found 1,i64"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_negative_size_is_refused_in_the_run(run_op: Callable[..., list[Array]]) -> None:
    with pytest.raises(RunError, match="the size of the new axis is -1, wanted one that is not negative"):
        run_op(DynOneHot(0, symbol("N"), _OFF, _ON), [np.array([1]), np.array(-1)])


def test_agrees_with_onnx_runtime(run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]]) -> None:
    indices = np.array([[0, 3, -1], [-4, 5, -6]])
    (wanted,) = run_onnx("OneHot", [indices, np.array(4), np.array([0, 1], dtype=np.float32)], axis=1)
    (found,) = run_op(OneHot(1, 4, _OFF, _ON), [indices])
    assert np.array_equal(found, wanted)
