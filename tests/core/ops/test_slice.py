"""What slicing refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, InputError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.slice import DynSlice, Slice
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Slice(1, 0, 1), ["2,f32"], r"axis 1 is outside a tensor of rank 1"),
        (Slice(0, -1, 1), ["2,f32"], r"-1 to 1 is no range of axis 0, of size 2, of 2,f32"),
        (Slice(0, 0, 3), ["2,f32"], r"0 to 3 is no range of axis 0, of size 2"),
        (Slice(0, 2, 1), ["S,f32"], r"2 to 1 is no range of axis 0, of size S"),
        (Slice(0, 0, symbol("S") + 1), ["S,f32"], r"is no range of axis 0, of size S"),
        (Slice(0, 0, 1), ["2,f32", "2,f32"], r"takes 1 inputs, 2 were given"),
        (DynSlice(0, 1), ["2,f32", "1,i64", "i64"], r"wants a tensor of rank 0 as start, found 1,i64"),
        (DynSlice(0, 1), ["2,f32", "i64", "f32"], r"wants integers as end, found f32"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (0, 4), (2, 1)])
def test_bounds_outside_are_refused_in_the_run(run_op: Callable[..., list[Array]], start: int, end: int) -> None:
    arrays = [np.zeros(3, dtype=np.float32), np.array(start), np.array(end)]
    with pytest.raises(RunError, match=f"{start} to {end} is no range of axis 0, which has size 3"):
        run_op(DynSlice(0, symbol("N")), arrays)


def test_symbolic_bound_that_is_outside_is_refused_in_the_run() -> None:
    model = TypedModel()
    x, y = (
        model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in (("x", "8,f32"), ("y", "S,f32"))
    )
    model.set_outputs([*model.wire_node("cut", Slice(0, 0, symbol("S")), [x]), y])
    plan = TypedSimplePlan(model)
    array = np.arange(8, dtype=np.float32)
    assert plan.run([array, array[:3]])[0].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"node 'cut' \(Slice\): size S must be at most 8; S is 9"):
        plan.run([array, np.zeros(9, dtype=np.float32)])
