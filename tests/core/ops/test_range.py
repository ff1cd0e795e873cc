"""What ranges refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.range import Range

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Range(3), ["i64", "i64"], r"takes 3 inputs, 2 were given"),
        (Range(3), ["i64", "i64", "i32"], r"wants inputs of one element type, found i64, i64, i32"),
        (Range(3), ["i64", "1,i64", "i64"], r"wants a tensor of rank 0 as end, found 1,i64"),
        (Range(3), ["bool", "bool", "bool"], r"does not take bool"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_step_of_zero_is_refused_in_the_run(run_op: Callable[..., list[Array]]) -> None:
    with pytest.raises(RunError, match="the step is 0"):
        run_op(Range(symbol("N")), [np.array(0), np.array(3), np.array(0)])


@pytest.mark.parametrize("numbers", [(0, 10, 3), (10, 0, -4), (3, 3, 1)])
def test_agrees_with_onnx_runtime(
    run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]], numbers: tuple[int, ...]
) -> None:
    for kind in (np.int64, np.float32):
        arrays = [np.array(number, dtype=kind) for number in numbers]
        (wanted,) = run_onnx("Range", arrays)
        (found,) = run_op(Range(symbol("N")), arrays)
        assert np.array_equal(found, wanted)
