from __future__ import annotations

import pytest

from tract_core.dims import symbol
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, Reshape, RmAxis
from tract_core.ops.elementwise import Exp
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

B = symbol("B")

_HEADS = Reshape(0, (B, 2, 4), (8 * B,)), MoveAxis(1, 2)
"""A reshape behind it meets the first one, as the move does not part what it changes."""


@pytest.mark.parametrize(
    ("fact", "row", "wanted"),
    [
        ("B,3,f32", [AddAxis(1), RmAxis(1)], []),
        ("B,3,f32", [AddAxis(0), MoveAxis(0, 2), RmAxis(2)], []),
        ("B,3,4,f32", [MoveAxis(0, 2), MoveAxis(2, 0)], []),
        ("B,3,4,f32", [MoveAxis(0, 2), MoveAxis(0, 2)], ["MoveAxis"]),
        ("B,3,4,f32", [MoveAxis(1, 1)], []),
        ("B,1,3,f32", [MoveAxis(0, 2), RmAxis(0)], ["MoveAxis", "RmAxis"]),
        ("B,1,3,f32", [RmAxis(1), AddAxis(1)], []),
        ("B,1,3,f32", [RmAxis(1), AddAxis(0)], ["MoveAxis"]),
        ("B,1,3,1,f32", [RmAxis(1), RmAxis(2), AddAxis(2), AddAxis(1)], []),
        ("B,6,f32", [Reshape(1, (6,), (2, 3)), Reshape(1, (2, 3), (3, 2))], ["Reshape"]),
        ("B,6,f32", [Reshape(1, (6,), (2, 3)), Reshape(1, (2, 3), (6,))], []),
        ("B,6,f32", [Reshape(0, (B, 6), (B, 6))], []),
        ("B,6,f32", [Reshape(0, (B, 6), (B, 1, 6))], ["AddAxis"]),
        ("B,1,6,f32", [Reshape(0, (B, 1, 6), (B, 6))], ["RmAxis"]),
        ("B,6,f32", [Reshape(1, (6,), (2, 3)), AddAxis(3), Reshape(1, (2, 3, 1), (1, 6))], ["AddAxis"]),
        ("B,2,3,f32", [Reshape(0, (B, 2), (2 * B,)), MoveAxis(0, 1)], ["Reshape", "MoveAxis"]),
        ("B,2,4,3,5,f32", [*_HEADS, Reshape(0, (8 * B,), (B, 8))], ["Reshape", "MoveAxis"]),
        ("B,2,4,3,5,f32", [*_HEADS, Reshape(0, (8 * B,), (B, 2, 4))], ["MoveAxis"]),
        (
            "6,B,4,f32",
            [Reshape(0, (6,), (2, 3)), MoveAxis(2, 0), Reshape(1, (2, 3), (3, 2))],
            ["Reshape", "MoveAxis"],
        ),
        (
            "6,B,4,f32",
            [Reshape(0, (6,), (2, 3)), MoveAxis(1, 3), Reshape(0, (2, B), (2 * B,))],
            ["Reshape", "MoveAxis", "Reshape"],
        ),
    ],
    ids=str,
)
def test_rows_of_axis_operators(fact: str, row: list[AxisOp], wanted: list[str]) -> None:
    model, (x,) = sources(fact)
    y = wire_one(model, "exp", Exp(), x)
    for count, op in enumerate(row):
        y = wire_one(model, f"op{count}", op, y)
    model.set_outputs([y])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == ["Exp", *wanted]
    assert simple.outlet_name(simple.outputs[0]) == model.outlet_name(y)


def test_a_row_that_is_read_in_the_middle_does_not_grow() -> None:
    model, (x,) = sources("B,3,4,5,f32")
    first = wire_one(model, "a", MoveAxis(0, 3), x)
    second = wire_one(model, "b", Reshape(2, (5, B), (5 * B,)), first)
    model.set_outputs([first, second, wire_one(model, "c", MoveAxis(0, 3), first)])
    assert operators(checked_declutter(model, {"B": 2})) == ["MoveAxis", "Reshape", "MoveAxis"]


def test_a_move_by_one_place_has_one_form() -> None:
    forms: list[object] = []
    for move in (MoveAxis(1, 2), MoveAxis(2, 1)):
        model, (x,) = sources("B,3,4,f32")
        model.set_outputs([wire_one(model, "out", move, x)])
        simple = checked_declutter(model, {"B": 2})
        forms.append(simple.node_by_name("out").op)
    assert forms == [MoveAxis(1, 2), MoveAxis(1, 2)]
