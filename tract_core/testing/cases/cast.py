"""Cases of the operators that convert between element types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.data import DatumType, DType, QuantizedType
from tract_core.ops.cast import AsQuantized, Cast
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]

_INF, _NAN = float("inf"), float("nan")


def _case(fact: str, to: DType, values: Sequence[Any], wanted: Sequence[Any], note: str = "") -> Case:
    """The result written down."""
    kind = np.dtype(object) if to is DatumType.STRING else np.array(wanted).dtype
    name = f"Cast-{fact.rpartition(',')[2]}-{to.short}{note}"
    return Case(name, Cast(to), [Arg(fact, values)], lambda _: np.array(wanted, dtype=kind), {"N": len(values)})


def _widening(fact: str, to: DatumType) -> Case:
    """Every value of the narrow type is one of the wide type."""
    return Case(f"Cast-{fact}-{to.short}", Cast(to), [fact], lambda x: x, {"B": 2, "S": 3})


def _stored(kind: QuantizedType, values: Sequence[int]) -> Case:
    """The integers stay what they are."""
    return Case(
        f"AsQuantized-{kind.short}",
        AsQuantized(kind),
        [Arg(f"N,{kind.storage.short}", values)],
        lambda x: x,
        {"N": len(values)},
    )


_CASES = [
    _case("N,f32", DatumType.I32, [1.9, -1.9, 0.5, -0.5, 100], [1, -1, 0, 0, 100]),
    _case("N,f64", DatumType.I64, [2.0**40 + 0.5, -(2.0**40) - 0.5], [2**40, -(2**40)]),
    _case("N,f32", DatumType.U8, [0, 255, 7.9], [0, 255, 7]),
    _case("N,f32", DatumType.U8, [300, -5, _INF, -_INF, _NAN], [255, 0, 255, 0, 0], "-saturates"),
    _case("N,f16", DatumType.I8, [300, -300, _NAN], [127, -128, 0], "-saturates"),
    _case("N,f64", DatumType.I64, [1e20, -1e20], [2**63 - 1, -(2**63)], "-saturates"),
    _case("N,f32", DatumType.BOOL, [0, -0.0, 0.1, -3, float("nan")], [False, False, True, True, True]),
    _case("N,i64", DatumType.BOOL, [0, 5, -1], [False, True, True]),
    _case("N,bool", DatumType.F32, [True, False], [1.0, 0.0]),
    _case("N,bool", DatumType.I64, [True, False], [1, 0]),
    _case("N,i32", DatumType.U8, [1, 200, 256, -1], [1, 200, 0, 255], "-wraps"),
    _case("N,i64", DatumType.I32, [2**31, -5], [-(2**31), -5], "-wraps"),
    _case("N,f32", DatumType.F16, [1 + 2**-11, 1 + 3 * 2**-11, 65504, 1e6], [1.0, 1 + 2**-9, 65504, float("inf")]),
    _case("N,f32", DatumType.BF16, [1 + 2**-8, 1 + 3 * 2**-8, 3e38], [1.0, 1 + 2**-6, 3e38]),
    _case("N,f32", DatumType.F8E4M3FN, [1, 1.0625, 1.1875, -448], [1.0, 1, 1.25, -448]),
    _case("N,f32", DatumType.F8E5M2, [1, 1.125, 1.375, -57344], [1.0, 1, 1.5, -57344]),
    _case("N,i32", DatumType.I4, [-8, 7, 0], [-8, 7, 0]),
    _case("N,i32", DatumType.U4, [15, 7, 0], [15, 7, 0]),
    _case("N,i4", DatumType.I32, [-8, 7, 0], [-8, 7, 0]),
    _case("N,f32", DatumType.I4, [-9, 8, 15.9, -1.5, _INF, _NAN], [7, -8, -1, -1, -1, 0], "-wraps"),
    _case("N,i4", DatumType.F8E5M2, [-8, 7, 0], [-8, 7, 0]),
    _case("N,f8e4m3fn", DatumType.U8, [-1, 0.5, 448, _NAN], [0, 0, 255, 0], "-saturates"),
    _case("N,f4e2m1fn", DatumType.F64, [0.5, -6, 3], [0.5, -6, 3]),
    _case("N,f32", DatumType.STRING, [1.5, -2, 0.1, 100.6], ["1.5", "-2.0", "0.1", "100.6"]),
    _case("N,i64", DatumType.STRING, [15, -2], ["15", "-2"]),
    _case("N,string", DatumType.F32, ["1.5", "-2", "1e3"], [1.5, -2, 1000]),
    _case("N,string", DatumType.I32, ["15", "-2"], [15, -2]),
    _case("N,f32", DatumType.COMPLEX_F32, [1.5, -2], [1.5 + 0j, -2 + 0j]),
    _case(
        "N,f32",
        QuantizedType(DatumType.U8, 128, 0.5),
        [0, 1, -1, 0.25, 0.75, 1e3, -1e3],
        [128, 130, 126, 128, 130, 255, 0],
    ),
    _case("N,f32", QuantizedType(DatumType.I8, -3, 0.25), [_NAN, _INF, -_INF], [-3, 127, -128], "-no numbers"),
    _case("N,f32", QuantizedType(DatumType.I8, -3, 0.25), [0, 1, -1, 1e3, -1e3], [-3, 1, -7, 127, -128]),
    _case("N,f32", QuantizedType(DatumType.I32, 0, 0.125), [1, -2, 1e6], [8, -16, 8_000_000]),
    _widening("B,S,f16", DatumType.F32),
    _widening("B,S,bf16", DatumType.F32),
    _widening("B,S,f32", DatumType.F64),
    _widening("B,S,i8", DatumType.I64),
    _widening("B,S,i32", DatumType.F64),
    _widening("B,S,f32", DatumType.F32),
    _stored(QuantizedType(DatumType.U8, 3, 0.5), [0, 3, 255]),
    _stored(QuantizedType(DatumType.I8, -1, 0.25), [-128, 0, 127]),
    _stored(QuantizedType(DatumType.I32, 7, 0.1), [-(2**31), 2**24 + 1, 2**31 - 1]),
]

ROWS.add(CASES, "cast", _CASES)
