from __future__ import annotations

import pytest

from tract_core.model.op import TypedOp
from tract_core.ops.axis import MoveAxis
from tract_core.ops.downsample import Downsample
from tract_core.ops.elementwise import Exp
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ([Exp(), Downsample(1, 1)], ["Exp"]),
        ([Exp(), Downsample(1, -1)], ["Downsample", "Exp"]),
        ([Exp(), Downsample(1, 3, 1)], ["Downsample", "Exp"]),
        ([Downsample(1, 2, 1), Downsample(1, 3)], ["Downsample"]),
        ([Downsample(1, 1, 1), Downsample(1, 3, 2)], ["Downsample"]),
        ([Downsample(1, 2, 1), Downsample(1, 3, 2)], ["Downsample", "Downsample"]),
        ([Downsample(1, 2), Downsample(1, -2)], ["Downsample", "Downsample"]),
        ([Softmax((0,)), Downsample(1, 2)], ["Downsample", "Softmax"]),
        ([Softmax((1,)), Downsample(1, 2)], ["Softmax", "Downsample"]),
        ([MoveAxis(0, 1), Downsample(0, 2)], ["Downsample", "MoveAxis"]),
        ([Slice(1, 3, 15), Downsample(1, 4, 1)], ["Downsample", "Slice"]),
        ([Slice(1, 4, 16), Downsample(1, 4)], ["Downsample", "Slice"]),
        ([Slice(0, 0, 1), Downsample(1, 2)], ["Slice", "Downsample"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [16, 17, 18])
def test_elements_are_dropped_early(row: list[TypedOp], wanted: list[str], size: int) -> None:
    model, (x,) = sources("B,S,f32")
    for count, op in enumerate(row):
        x = wire_one(model, f"op{count}", op, x)
    model.set_outputs([x])
    assert sorted(operators(checked_declutter(model, {"B": 2, "S": size}))) == sorted(wanted)


@pytest.mark.parametrize(("size", "wanted"), [(4, 2), (5, 1), (6, 1)])
def test_what_begins_behind_the_end_is_not_merged(size: int, wanted: int) -> None:
    """x[1::2][2::3] has no element for four of x, where x[5::6] does not begin."""
    model, (x,) = sources(f"{size},f32")
    model.set_outputs([wire_one(model, "y", Downsample(0, 3, 2), wire_one(model, "x1", Downsample(0, 2, 1), x))])
    assert operators(checked_declutter(model)) == ["Downsample"] * wanted


@pytest.mark.parametrize("size", range(4, 9))
def test_merging_refuses_no_size_that_was_fine(size: int) -> None:
    model, (x,) = sources("S,f32")
    model.set_outputs([wire_one(model, "y", Downsample(0, 3, 2), wire_one(model, "x1", Downsample(0, 2, 1), x))])
    checked_declutter(model, {"S": size})
