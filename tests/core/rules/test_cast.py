from __future__ import annotations

import pytest

from tract_core.data import DatumType, QuantizedType
from tract_core.model.graph import OutletId
from tract_core.ops.cast import AsQuantized, Cast
from tract_core.ops.elementwise import Exp
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

T = DatumType


@pytest.mark.parametrize(
    ("fact", "casts", "wanted"),
    [
        ("B,3,f32", [T.F32], []),
        ("B,3,f16", [T.F32, T.F16], []),
        ("B,3,u8", [T.I32, T.F32], ["Cast"]),
        ("B,3,i32", [T.I64, T.I32], []),
        ("B,3,f32", [T.F16, T.F32], ["Cast", "Cast"]),
        ("B,3,i32", [T.U32, T.I64], ["Cast", "Cast"]),
        ("B,3,f32", [T.I32, T.F32], ["Cast", "Cast"]),
        ("B,3,f32", [T.F64, T.STRING], ["Cast", "Cast"]),
    ],
    ids=str,
)
def test_casts_that_lose_nothing_are_merged(fact: str, casts: list[DatumType], wanted: list[str]) -> None:
    model, (x,) = sources(fact)
    y: OutletId = x
    for count, kind in enumerate(casts):
        y = wire_one(model, f"cast{count}", Cast(kind), y)
    if y.node and model.outlet_fact(y).datum_type.is_float():
        wanted = [*wanted, "Exp"]
        y = wire_one(model, "out", Exp(), y)
    else:
        wanted = wanted or ["Identity"]
    model.set_outputs([y])
    assert operators(checked_declutter(model, {"B": 2})) == wanted


def test_the_integers_of_what_is_quantised_are_had_without_computing() -> None:
    kind = QuantizedType(DatumType.U8, 3, 0.5)
    model, (x,) = sources("N,u8")
    quantized = wire_one(model, "q", AsQuantized(kind), x)
    model.set_outputs([wire_one(model, "stored", Cast(DatumType.U8), quantized), quantized])
    simple = checked_declutter(model, {"N": 3})
    assert operators(simple) == ["Identity", "AsQuantized"]  # an output that is an input has a name of its own
