from __future__ import annotations

import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops import softmax
from tract_core.ops.softmax import LogSoftmax, Softmax


@pytest.mark.parametrize(
    ("op", "fact", "message"),
    [
        (Softmax((2,)), "2,3,f32", "Softmax: axis 2 is outside a tensor of rank 2"),
        (LogSoftmax((0,)), "2,3,i32", "LogSoftmax wants floating-point numbers, found 2,3,i32"),
        (Softmax(()), "2,3,f32", r"Softmax wants at least one axis, each once, not \[\]; the input is 2,3,f32"),
        (Softmax((1, 0, 1)), "2,3,f32", r"each once, not \[1, 0, 1\]; the input is 2,3,f32"),
    ],
)
def test_refusals_say_what_was_found(op: Softmax, fact: str, message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact)])


def test_the_normalised_axis_does_not_pass() -> None:
    op, x = Softmax((1,)), parse_typed_fact("B,S,3,f32")
    mapping = softmax.axes(op, [x], op.output_facts([x]))
    assert [mapping.track(("in", 0, axis), ("out", 0)) for axis in range(3)] == [0, None, 2]


def test_cost() -> None:
    op, x = Softmax((1,)), parse_typed_fact("B,5,f32")
    found = softmax.cost(op, [x], op.output_facts([x]))
    assert {kind: str(count) for kind, count in found.items()} == {"FMA(F32)": "10*B", "DIV(F32)": "10*B"}
