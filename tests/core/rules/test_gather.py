from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.ops.elementwise import Exp
from tract_core.ops.gather import Gather, GatherNd
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


@pytest.mark.parametrize(
    ("indices", "wanted"),
    [
        (2, ["Exp", "Slice", "RmAxis"]),
        (-1, ["Exp", "Slice", "RmAxis"]),
        ([0], ["Exp", "Slice"]),
        ([1, 2, 3], ["Exp", "Slice"]),
        ([-3, -2], ["Exp", "Slice"]),
        ([-1, 0], ["Exp", "Gather"]),
        ([1, 3], ["Exp", "Gather"]),
        ([[1, 2]], ["Exp", "Gather"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("fact", ["B,5,f32", "B,S,f32"])
def test_neighbours_are_a_slice(fact: str, indices: Any, wanted: list[str]) -> None:
    model, (x,) = sources(fact)
    y = wire_one(model, "exp", Exp(), x)
    model.set_outputs([wire_one(model, "out", Gather(1), y, model.add_const("i", np.array(indices)))])
    found = operators(checked_declutter(model, {"B": 2, "S": 6}))
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize(("indices", "gone"), [([1, 0], True), ([-1], True), ([[1, 0]], False)], ids=str)
def test_a_single_place_is_slices(indices: Any, gone: bool) -> None:
    model, (x,) = sources("B,5,S,f32")
    place = model.add_const("i", np.array(indices))
    model.set_outputs([wire_one(model, "out", GatherNd(0), x, place)])
    assert ("GatherNd" not in operators(checked_declutter(model, {"B": 2, "S": 3}))) == gone
