from __future__ import annotations

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Exp
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

S = symbol("S")


def test_a_single_piece_is_no_concatenation() -> None:
    model, (x,) = sources("B,3,f32")
    model.set_outputs([wire_one(model, "out", Exp(), wire_one(model, "join", TypedConcat(1), x))])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp"]


def test_empty_pieces_are_dropped() -> None:
    model, (x, y) = sources("B,3,f32", "B,2,f32")
    nothing = wire_one(model, "nothing", Slice(1, 1, 1), y)
    model.set_outputs([wire_one(model, "out", TypedConcat(1), x, nothing, y)])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == ["TypedConcat"]
    assert len(simple.node_by_name("out").inputs) == 2


def test_nested_concatenations_are_flattened() -> None:
    model, (x, y) = sources("B,3,f32", "B,2,f32")
    inner = wire_one(model, "inner", TypedConcat(1), x, y)
    model.set_outputs([wire_one(model, "out", TypedConcat(1), inner, x)])
    assert operators(checked_declutter(model, {"B": 2})) == ["TypedConcat"]


def test_nested_concatenations_on_other_axes_stay() -> None:
    model, (x, y) = sources("B,3,f32", "B,2,f32")
    inner = wire_one(model, "inner", TypedConcat(1), x, y)
    model.set_outputs([wire_one(model, "out", TypedConcat(0), inner, inner)])
    assert operators(checked_declutter(model, {"B": 2})) == ["TypedConcat", "TypedConcat"]


def test_slices_put_together_again_are_one_slice() -> None:
    model, (x,) = sources("B,8,f32")
    a, b = (wire_one(model, f"s{i}", Slice(1, *ends), x) for i, ends in enumerate([(0, 3), (3, 8)]))
    model.set_outputs([wire_one(model, "out", Exp(), wire_one(model, "join", TypedConcat(1), a, b))])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp"]


def test_slices_in_another_order_stay() -> None:
    model, (x,) = sources("B,8,f32")
    a, b = (wire_one(model, f"s{i}", Slice(1, *ends), x) for i, ends in enumerate([(3, 8), (0, 3)]))
    model.set_outputs([wire_one(model, "join", TypedConcat(1), a, b)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Slice", "Slice", "TypedConcat"]


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        (0, 3, ["Exp"]),
        (3, 3 + S, ["Neg"]),
        (1, 2, ["Exp"]),
        (1, 3 + S, ["Exp", "Neg", "TypedConcat"]),
        (3 + S, 5 + S, []),
    ],
    ids=str,
)
def test_a_slice_takes_only_the_pieces_that_it_covers(start: object, end: object, wanted: list[str]) -> None:
    from tract_core.ops.elementwise import Neg

    model, (x, y, z) = sources("B,3,f32", "B,S,f32", "B,2,f32")
    pieces = [wire_one(model, "exp", Exp(), x), wire_one(model, "neg", Neg(), y), z]
    joined = wire_one(model, "join", TypedConcat(1), *pieces)
    model.set_outputs([wire_one(model, "out", Slice(1, start, end), joined)])  # type: ignore[arg-type]: sizes
    simple = checked_declutter(model, {"B": 2, "S": 4})
    assert [name for name in operators(simple) if name not in ("Slice", "Identity")] == wanted


def test_what_is_covered_of_unknown_sizes_depends() -> None:
    model, (x, y) = sources("B,S,f32", "B,4,f32")
    joined = wire_one(model, "join", TypedConcat(1), x, y)
    model.set_outputs([wire_one(model, "out", Slice(1, 0, 4), joined)])
    simple = checked_declutter(model, {"B": 2, "S": 3})
    assert operators(simple) == ["TypedConcat", "Slice"]
    given = [np.ones((1, 6), np.float32), np.zeros((1, 4), np.float32)]
    checked_declutter(model, inputs=given)
