from __future__ import annotations

import pytest

from tract_core.model.op import TypedOp
from tract_core.ops import elementwise as ops
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


@pytest.mark.parametrize(
    ("fact", "row", "wanted"),
    [
        ("B,3,f32", [ops.Exp(), ops.Neg(), ops.Neg()], ["Exp"]),
        ("B,3,bool", [ops.Not(), ops.Not(), ops.Not()], ["Not"]),
        ("B,3,f32", [ops.Neg(), ops.Exp(), ops.Neg()], ["Neg", "Exp", "Neg"]),
        ("B,3,f32", [ops.Abs(), ops.Abs()], ["Abs"]),
        ("B,3,f32", [ops.Floor(), ops.Round()], ["Floor"]),
        ("B,3,f32", [ops.Floor(), ops.Exp(), ops.Floor()], ["Floor", "Exp", "Floor"]),
        ("B,3,f32", [ops.Exp(), ops.Sqrt(), ops.Square()], ["Exp", "Sqrt", "Square"]),
        ("B,3,f32", [ops.Neg(), ops.Square()], ["Square"]),
        ("B,3,i32", [ops.Abs(), ops.Square()], ["Square"]),
        ("B,3,f32", [ops.Exp(), ops.Sqrt(), ops.Recip()], ["Exp", "Rsqrt"]),
        ("B,3,f16", [ops.Exp(), ops.Sqrt(), ops.Recip()], ["Exp", "Sqrt", "Recip"]),
        ("B,3,f32", [ops.Exp(), ops.Rsqrt(), ops.Recip()], ["Exp", "Rsqrt", "Recip"]),
    ],
    ids=str,
)
def test_rows_of_elementwise_operators(fact: str, row: list[TypedOp], wanted: list[str]) -> None:
    model, (x,) = sources(fact)
    for count, op in enumerate(row):
        x = wire_one(model, f"op{count}", op, x)
    model.set_outputs([x])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == wanted
    assert simple.outlet_name(simple.outputs[0]) == model.outlet_name(x)
