"""Cases of quantisation."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.ops.quantize import (
    DequantizeLinear,
    LookupTable,
    OffsetI8asU8,
    OffsetU8asI8,
    QScale,
    QuantizeLinear,
    Scale,
    Ties,
)
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_SIZES = {"B": 2, "S": 5}

_RANGES = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767), "u4": (0, 15), "i4": (-8, 7)}


def _at(parameter: Any, index: tuple[int, ...], axis: int, block: int) -> Any:
    """The value of a parameter for one element of the tensor."""
    if parameter.ndim == 0:
        return parameter[()]
    if parameter.ndim == 1 and not block:
        return parameter[index[axis]]
    return parameter[(*index[:axis], index[axis] // block, *index[axis + 1 :])]


def _quantized(kind: str, axis: int = 0, block: int = 0) -> Callable[..., Any]:
    """Element by element, in Python's numbers, which round halves to even."""
    low, high = _RANGES[kind]

    def expected(x: Any, scale: Any, zero: Any) -> Any:
        result = np.zeros(x.shape, np.int64)
        for index in np.ndindex(*x.shape):
            steps = round(float(np.float32(x[index]) / np.float32(_at(scale, index, axis, block))))
            result[index] = min(max(steps + int(_at(zero, index, axis, block)), low), high)
        return result.astype(DatumType.parse(kind).numpy)

    return expected


def _dequantized(axis: int = 0, block: int = 0) -> Callable[..., Any]:
    def expected(x: Any, scale: Any, zero: Any) -> Any:
        result = np.zeros(x.shape)
        for index in np.ndindex(*x.shape):
            centred = int(x[index]) - int(_at(zero, index, axis, block))
            result[index] = centred * float(_at(scale, index, axis, block))
        return result

    return expected


def _quantize(kind: str, x: str | Arg, scale: Arg, zero: Arg, *, axis: int = 0, block: int = 0) -> Case:
    op = QuantizeLinear(DatumType.parse(kind), axis, block)
    fact = x if isinstance(x, str) else x.fact
    name = f"QuantizeLinear-{fact}-{kind}-scale {scale.fact}-block {block}"
    return Case(name, op, [x, scale, zero], _quantized(kind, axis, block), _SIZES)


def _dequantize(x: Arg, scale: Arg, zero: Arg, *, axis: int = 0, block: int = 0, to: str = "f32") -> Case:
    op = DequantizeLinear(DatumType.parse(to), axis, block)
    name = f"DequantizeLinear-{x.fact}-{to}-scale {scale.fact}-block {block}"
    return Case(name, op, [x, scale, zero], _dequantized(axis, block), _SIZES)


def _exactly(multiplier: int, shift: int, nearest: Callable[[Fraction], int]) -> Callable[[Any], Any]:
    def expected(x: Any) -> Any:
        found = [nearest(Fraction(int(v) * multiplier, 1) / Fraction(2) ** (31 + shift)) for v in x.reshape(-1)]
        return np.array([min(max(v, -(2**31)), 2**31 - 1) for v in found], np.int32).reshape(x.shape)

    return expected


def _away(x: Fraction) -> int:
    return int(abs(x) + Fraction(1, 2)) * (1 if x > 0 else -1)


_HALVES = Arg("8,i32", [-5, -3, -2, -1, 1, 2, 3, 5])
"""Times one half, most of them are half way between two integers."""

_TIES: dict[Ties, list[int]] = {
    Ties.ZERO: [-2, -1, -1, 0, 0, 1, 1, 2],
    Ties.AWAY: [-3, -2, -1, -1, 1, 1, 2, 3],
    Ties.MINUS_INF: [-3, -2, -1, -1, 0, 1, 1, 2],
    Ties.PLUS_INF: [-2, -1, -1, 0, 1, 1, 2, 3],
    Ties.EVEN: [-2, -2, -1, 0, 0, 1, 2, 2],
    Ties.ODD: [-3, -1, -1, -1, 1, 1, 1, 3],
}

_TABLE = (np.arange(256) * 7 % 251).astype(np.uint8)
_WIDE = Arg("B,S,f32", low=-40, high=40)


def _bytes_of(x: Any) -> Any:
    return np.array([_TABLE[int(v) % 256] for v in x.reshape(-1)]).reshape(x.shape)


_CASES = [
    *[_quantize(kind, _WIDE, Arg("f32", 0.25), Arg(kind, 3)) for kind in ("u8", "i8", "u16", "i16")],
    _quantize("u4", _WIDE, Arg("f32", 2.0), Arg("u4", 7)),
    _quantize("i4", _WIDE, Arg("f32", 4.0), Arg("i4", -1)),
    _quantize("i8", Arg("6,f32", [0.5, 1.5, 2.5, -0.5, -1.5, 1e9]), Arg("f32", 1.0), Arg("i8", 0)),
    _quantize("u8", Arg("B,S,f16", low=-40, high=40), Arg("f16", 0.25), Arg("u8", 9)),
    _quantize("u8", _WIDE, Arg("S,f32", low=0.1, high=2), Arg("S,u8", high=200), axis=1),
    _quantize("i8", _WIDE, Arg("B,f32", low=0.1, high=2), Arg("B,i8"), axis=0),
    _quantize("i8", "B,6,f32", Arg("B,2,f32", low=0.1, high=2), Arg("B,2,i8"), axis=1, block=3),
    _quantize("i8", "7,B,f32", Arg("3,B,f32", low=0.1, high=2), Arg("3,B,i8"), axis=0, block=3),
    _dequantize(Arg("B,S,u8", high=255), Arg("f32", 0.1), Arg("u8", 128)),
    _dequantize(Arg("B,S,i32", low=-(2**20), high=2**20), Arg("f32", 0.01), Arg("i32", 0)),
    _dequantize(Arg("B,S,i4", low=-8, high=7), Arg("f32", 0.5), Arg("i4", 1)),
    _dequantize(Arg("B,S,u8", high=255), Arg("S,f32", low=0.1, high=1), Arg("S,u8", high=9), axis=1),
    _dequantize(Arg("B,6,i8", low=-128, high=127), Arg("B,3,f32", low=0.1), Arg("B,3,i8"), axis=1, block=2),
    _dequantize(Arg("B,S,u8", high=255), Arg("f16", 0.125), Arg("u8", 128), to="f16"),
    _dequantize(Arg("S,u16", high=65535), Arg("f32", 0.1), Arg("u16", 40000)),
    Case(
        "QuantizeLinear-float8 saturates",
        QuantizeLinear(DatumType.F8E4M3FN),
        [Arg("4,f32", [1.0, 1e6, -1e6, 0.3]), Arg("f32", 1.0), Arg("f8e4m3fn", 0)],
        lambda *_: np.array([1.0, 448.0, -448.0, 0.3125]),
    ),
    Case(
        "DequantizeLinear-float8",
        DequantizeLinear(DatumType.F32),
        [Arg("4,f8e5m2", [1.0, -57344, 2.0**-16, 3]), Arg("f32", 0.5), Arg("f8e5m2", 1.0)],
        lambda *_: np.array([0.0, -28672.5, 2.0**-17 - 0.5, 1.0]),
    ),
    Case(
        "Scale-halves",
        Scale(),
        [Arg("1,f32", 0.5), Arg("5,i32", [1, 3, 5, -1, 7])],
        lambda *_: np.array([0, 2, 2, 0, 4], np.int32),
    ),
    Case(
        "Scale-saturates",
        Scale(),
        [Arg("B,1,f32", [3.0, -1.0]), Arg("B,2,i8", [50, -60, 100, -128])],
        lambda *_: np.array([[127, -128], [-100, 127]], np.int8),
        _SIZES,
    ),
    *[
        Case(
            f"QScale-{ties.value}",
            QScale(2**30, 0, ties),
            [_HALVES],
            lambda _, wanted=wanted: np.array(wanted, np.int32),
        )
        for ties, wanted in _TIES.items()
    ],
    Case(
        "QScale-right",
        QScale(1518500250, 3),
        [Arg("S,i32", low=-(2**30), high=2**30)],
        _exactly(1518500250, 3, round),
        _SIZES,
    ),
    Case(
        "QScale-left",
        QScale(1518500250, -5),
        [Arg("S,i32", low=-(2**30), high=2**30)],
        _exactly(1518500250, -5, round),
        _SIZES,
    ),
    Case(
        "QScale-away",
        QScale(-1518500250, 2, Ties.AWAY),
        [Arg("S,i32", low=-999, high=999)],
        _exactly(-1518500250, 2, _away),
        _SIZES,
    ),
    Case("QScale-far right", QScale(2**30, 40), [Arg("S,i32", low=-999, high=999)], lambda x: 0 * x, _SIZES),
    Case("LookupTable-u8", LookupTable(Constant(_TABLE)), [Arg("B,S,u8", high=255)], _bytes_of, _SIZES),
    Case("LookupTable-i8", LookupTable(Constant(_TABLE)), [Arg("B,S,i8", low=-128, high=127)], _bytes_of, _SIZES),
    Case("OffsetI8asU8", OffsetI8asU8(), [Arg("S,i8", low=-128, high=127)], lambda x: x.astype(int) + 128, _SIZES),
    Case("OffsetU8asI8", OffsetU8asI8(), [Arg("S,u8", high=255)], lambda x: x.astype(int) - 128, _SIZES),
]

ROWS.add(CASES, "quantize", _CASES)
