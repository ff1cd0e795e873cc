"""What ranges refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.dims import evaluate, parse_dim, symbol
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.cast import Cast
from tract_core.ops.range import Range
from tract_core.ops.wiring import wire_one
from tract_core.ops.wiring_dyn import wire_range
from tract_core.runtime.plan import TypedSimplePlan

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


@pytest.mark.parametrize(
    ("first", "end", "step", "length"),
    [(0, "S", 1, "S"), (1, "S+1", 1, "S"), (0, "2*S", 2, "S"), (2, "S", 1, "max(0,S-2)"), (0.5, "S", 1, None)],
)
@pytest.mark.parametrize("kind", [DatumType.F32, DatumType.F64])
def test_a_range_of_floats_up_to_a_size_is_as_long_as_one_of_integers(
    kind: DatumType, first: float, end: str, step: float, length: str | None
) -> None:
    model = TypedModel()
    model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    start, by = (model.add_const(name, np.array(value, kind.numpy)) for name, value in (("a", first), ("c", step)))
    stop = wire_one(model, "b", Cast(kind), model.add_const("size", parse_dim(end)))
    found = wire_range(model, "range", start, stop, by)
    size = model.outlet_fact(found).shape[0]
    assert str(size) == length if length is not None else "length" in str(size)
    model.set_outputs([found])
    (numbers,) = TypedSimplePlan(model).run([np.zeros(5, np.float32)])
    wanted = np.arange(first, evaluate(parse_dim(end), {"S": 5}), step)
    np.testing.assert_array_equal(numbers, wanted.astype(kind.numpy))


@pytest.mark.parametrize("numbers", [(0, 10, 3), (10, 0, -4), (3, 3, 1)])
def test_agrees_with_onnx_runtime(
    run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]], numbers: tuple[int, ...]
) -> None:
    for kind in (np.int64, np.float32):
        arrays = [np.array(number, dtype=kind) for number in numbers]
        (wanted,) = run_onnx("Range", arrays)
        (found,) = run_op(Range(symbol("N")), arrays)
        assert np.array_equal(found, wanted)
