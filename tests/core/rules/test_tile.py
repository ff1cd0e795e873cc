from __future__ import annotations

import pytest

from tract_core.dims import Dim, symbol
from tract_core.ops.elementwise import Exp
from tract_core.ops.tile import Tile
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ((1, 1, 1), []),
        ((1, 4, 1), ["MultiBroadcastTo"]),
        ((1, symbol("B"), 1), ["MultiBroadcastTo"]),
        ((1, 2, 2), ["Tile"]),
    ],
    ids=str,
)
def test_repeating_single_elements_is_stretching(counts: tuple[Dim, ...], wanted: list[str]) -> None:
    model, (x,) = sources("B,1,3,f32")
    y = wire_one(model, "exp", Exp(), x)
    model.set_outputs([wire_one(model, "out", Tile(counts), y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp", *wanted]
