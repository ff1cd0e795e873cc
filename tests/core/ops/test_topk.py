"""What top-k refuses, and how it compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.topk import Topk

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Topk(1, True, 1), ["2,f32", "i64"], r"axis 1 is outside a tensor of rank 1"),
        (Topk(0, True, 3), ["2,f32", "i64"], r"3 elements of axis 0 of 2,f32, which has 2"),
        (Topk(0, True, 1), ["2,f32", "1,i64"], r"wants a tensor of rank 0 as k, found 1,i64"),
        (Topk(0, True, 1), ["2,f32", "f32"], r"wants integers as k, found f32"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


@pytest.mark.parametrize("k", [5, -1])
def test_more_than_there_are_is_refused_in_the_run(run_op: Callable[..., list[Array]], k: int) -> None:
    with pytest.raises(RunError, match=f"{k} elements of axis 0 were asked for, it has 4"):
        run_op(Topk(0, True, symbol("K")), [np.zeros(4, dtype=np.float32), np.array(k)])


@pytest.mark.parametrize("largest", [True, False])
def test_agrees_with_onnx_runtime(
    run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]], largest: bool
) -> None:
    x = np.random.default_rng(1).integers(0, 4, (3, 6)).astype(np.float32)
    wanted = run_onnx("TopK", [x, np.array([4])], outputs=2, axis=1, largest=int(largest))
    found = run_op(Topk(1, largest, symbol("K")), [x, np.array(4)])
    assert np.array_equal(found[0], wanted[0])
    assert np.array_equal(found[1], wanted[1])


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float8_e5m2"])
def test_what_is_not_a_number_counts_as_the_largest(run_op: Callable[..., list[Array]], kind: str) -> None:
    x = np.array([1, np.nan, 3, -np.inf, np.nan, 3], np.float32).astype(np.dtype(kind))
    assert run_op(Topk(0, True, 6), [x, np.array(6)])[1].tolist() == [1, 4, 2, 5, 0, 3]
    assert run_op(Topk(0, False, 6), [x, np.array(6)])[1].tolist() == [3, 0, 2, 5, 1, 4]
