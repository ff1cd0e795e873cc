from __future__ import annotations

from tract_core.ops.elementwise import Exp
from tract_core.ops.pad import Pad, PadEdge
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


def test_padding_by_nothing_is_removed() -> None:
    model, (x,) = sources("B,3,f32")
    y = wire_one(model, "pad", Pad(((0, 0), (0, 0)), PadEdge()), x)
    model.set_outputs([wire_one(model, "out", Exp(), y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp"]


def test_padding_stays() -> None:
    model, (x,) = sources("B,3,f32")
    model.set_outputs([wire_one(model, "pad", Pad(((0, 0), (0, 1)), PadEdge()), x)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Pad"]
