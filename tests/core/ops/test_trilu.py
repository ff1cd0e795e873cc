"""What triangles refuse, and how they compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.trilu import Trilu

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Trilu(True), ["2,f32", "i64"], r"wants matrices, found 2,f32"),
        (Trilu(True), ["2,2,f32", "f32"], r"wants integers as k, found f32"),
        (Trilu(True), ["2,2,f32", "1,i64"], r"wants a tensor of rank 0 as k, found 1,i64"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


@pytest.mark.parametrize("upper", [True, False])
def test_agrees_with_onnx_runtime(
    run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]], upper: bool
) -> None:
    x = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
    for k in (-5, -1, 0, 2, 5):
        (wanted,) = run_onnx("Trilu", [x, np.array(k)], upper=int(upper))
        assert np.array_equal(run_op(Trilu(upper), [x, np.array(k)])[0], wanted)
