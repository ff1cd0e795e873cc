"""What running sums refuse, and how they compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.cumsum import CumLogSumExp, CumSum

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (CumSum(1), ["2,f32"], r"axis 1 is outside a tensor of rank 1"),
        (CumSum(0), ["2,bool"], r"wants numbers, found 2,bool"),
        (CumLogSumExp(0), ["2,i64"], r"CumLogSumExp wants floating-point numbers, found 2,i64"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
def test_agrees_with_onnx_runtime(
    run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]], exclusive: bool, reverse: bool
) -> None:
    x = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
    (wanted,) = run_onnx("CumSum", [x, np.array(1)], exclusive=int(exclusive), reverse=int(reverse))
    (found,) = run_op(CumSum(1, exclusive, reverse), [x])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
