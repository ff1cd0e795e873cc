"""What padding refuses, and how it compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.pad import DynPad, Pad, PadConstant, PadEdge, PadReflect, PadWrap

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Pad(((0, 1),), PadEdge()), ["2,2,f32"], r"1 pairs of pads for 2,2,f32, of rank 2"),
        (Pad(((0, -1),), PadEdge()), ["2,f32"], r"negative pads in \(0, -1\)"),
        (
            Pad(((0, 1),), PadConstant(Constant(np.array(0)))),
            ["2,f32"],
            r"the value is Constant\(0\), wanted one element of the type of 2,f32",
        ),
        (
            Pad(((0, 1),), PadConstant(Constant(np.zeros(1, np.float32)))),
            ["2,f32"],
            r"wanted one element of the type of 2,f32",
        ),
        (DynPad(PadEdge(), (4,)), ["2,f32", "3,i64"], r"wants 2 integers as pads, found 3,i64"),
        (DynPad(PadEdge(), (4,)), ["2,f32", "2,f32"], r"wants integers as pads, found 2,f32"),
        (DynPad(PadEdge(), (4, 4)), ["2,f32", "2,i64"], r"2 sizes were announced for 2,f32, of rank 1"),
        (DynPad(PadEdge(), (4,)), ["2,f32", "2,i64", "i64"], r"wants inputs of one element type"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_cutting_more_than_there_is_is_refused(run_op: Callable[..., list[Array]]) -> None:
    with pytest.raises(RunError, match="pads -2 and -2 cut more than axis 0 has, which is 3"):
        run_op(DynPad(PadEdge(), (symbol("N"),)), [np.zeros(3, dtype=np.float32), np.array([-2, -2])])


@pytest.mark.parametrize(("name", "mode"), [("reflect", PadReflect()), ("edge", PadEdge()), ("wrap", PadWrap())])
def test_agrees_with_onnx_runtime(
    run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]], name: str, mode: Any
) -> None:
    x = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
    pads = np.array([2, 0, 1, 3])
    (wanted,) = run_onnx("Pad", [x, pads], opset=19, mode=name)
    (found,) = run_op(Pad(((2, 1), (0, 3)), mode), [x])
    assert np.array_equal(found, wanted)
