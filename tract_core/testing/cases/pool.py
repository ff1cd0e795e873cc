"""Cases of the pools: the elements of each window are gathered by themselves, then reduced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, ExplicitOnnxPool, PoolSpec, SameLower, SameUpper, Valid
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Array, Case

ROWS = Rows()

_SIZES = {"B": 2, "C": 3, "H": 6, "W": 5, "S": 9}

Place = tuple[int, ...]


def _windows(
    x: Array,
    kernel: Sequence[int],
    reduce: Callable[[Array, list[Place], list[Place]], Any],
    *,
    out: Sequence[int],
    before: Sequence[int] | int = 0,
    stride: Sequence[int] | int = 1,
    dilation: Sequence[int] | int = 1,
) -> Array:
    """``reduce(x, places in the input, all places)`` for each output element; places are indices into (N, C, ...)."""
    starts, steps, gaps = (np.broadcast_to(one, len(out)) for one in (before, stride, dilation))
    result = np.zeros((*x.shape[:2], *out), dtype=np.float64)
    for n, c, *place in np.ndindex(*result.shape):
        every: list[Place] = []
        for tap in np.ndindex(*kernel):
            read = [p * s + t * d - b for p, s, t, d, b in zip(place, steps, tap, gaps, starts, strict=True)]
            every.append((n, c, *map(int, read)))
        inside = [at for at in every if all(0 <= r < size for r, size in zip(at, x.shape, strict=True))]
        result[(n, c, *place)] = reduce(x, inside, every)
    return result


def _largest(x: Array, inside: list[Place], every: list[Place]) -> Any:
    return max((x[at] for at in inside), default=-math.inf, key=lambda one: (one, np.copysign(1, one)))


def _where_largest(x: Array, inside: list[Place], every: list[Place]) -> Any:
    best = max(inside, key=lambda at: x[at])
    return sum(at * math.prod(x.shape[axis + 1 :]) for axis, at in enumerate(best))


def _sum(x: Array, inside: list[Place], every: list[Place]) -> Any:
    return sum(x[at] for at in inside)


def _mean(x: Array, inside: list[Place], every: list[Place]) -> Any:
    return sum(x[at] for at in inside) / len(inside)


def _mean_of_all(x: Array, inside: list[Place], every: list[Place]) -> Any:
    return sum(x[at] for at in inside) / len(every)


def _max(name: str, pool: PoolSpec, fact: str | Arg, **how: Any) -> Case:
    return Case(
        f"MaxPool-{name}",
        MaxPool(pool),
        [fact],
        lambda x: _windows(x, pool.kernel_shape, _largest, **how),
        dict(_SIZES),
    )


def _max_with_indices(name: str, pool: PoolSpec, fact: str | Arg, **how: Any) -> Case:
    def expected(x: Array) -> tuple[Array, Array]:
        values, places = (_windows(x, pool.kernel_shape, f, **how) for f in (_largest, _where_largest))
        return values, places.astype(np.int64)

    return Case(f"MaxPool-{name}", MaxPool(pool, DatumType.I64), [fact], expected, dict(_SIZES))


def _sums(name: str, op: SumPool, fact: str, reduce: Any, **how: Any) -> Case:
    return Case(f"SumPool-{name}", op, [fact], lambda x: _windows(x, op.pool.kernel_shape, reduce, **how), dict(_SIZES))


def _pool(kernel: Sequence[int], padding: Any, dilations: Sequence[int] = (), strides: Sequence[int] = ()) -> PoolSpec:
    return PoolSpec(DataFormat.NCHW, tuple(kernel), padding, tuple(dilations), tuple(strides))


_VALID = Valid()
_CEIL = ExplicitOnnxPool((0,), (0,), ceil_mode=True)
_CEIL_PADDED = ExplicitOnnxPool((1, 0), (1, 1), ceil_mode=True)

_SOME_ZEROS = Arg("1,2,5,37,f32", np.where(np.arange(370) * 7919 % 11 < 3, 0.0, -0.0))


def _zeros(kind: str, stride: int) -> list[Case]:
    """Windows of zeros; -0.0 is below 0.0, but where the first of equals is asked for."""
    pool, arg = _pool([2, 3], _VALID, strides=[stride, stride]), replace(_SOME_ZEROS, fact=f"1,2,5,37,{kind}")
    out = [(5 - 2) // stride + 1, (37 - 3) // stride + 1]
    found = [
        _max(f"zeros-{kind}-{stride}", pool, arg, out=out, stride=stride),
        _max_with_indices(f"zeros-indices-{kind}-{stride}", pool, arg, out=out, stride=stride),
    ]
    return [replace(one, signed_zeros=True) for one in found]


_MAX = [
    _max("1d", _pool([3], _VALID), "B,C,S,f32", out=[7]),
    _max(
        "2d-strided",
        _pool([3, 2], Explicit((1, 0), (1, 1)), strides=[2, 2]),
        "B,C,H,W,f32",
        out=[3, 3],
        before=[1, 0],
        stride=2,
    ),
    _max("dilated", _pool([3, 2], _VALID, [2, 3]), "B,C,H,W,f32", out=[2, 2], dilation=[2, 3]),
    _max("3d", _pool([2, 1, 2], _VALID, (), [1, 2, 1]), "B,C,H,W,3,f32", out=[5, 3, 2], stride=[1, 2, 1]),
    _max("ceil", _pool([3], _CEIL, strides=[2]), "B,C,H,f32", out=[3], stride=2),
    _max("ceil-wide-stride", _pool([2], _CEIL, strides=[4]), "B,C,H,f32", out=[2], stride=4),
    _max("ceil-drops-window", _pool([2], _CEIL, strides=[3]), "B,C,H,f32", out=[2], stride=3),
    _max("same-upper", _pool([3], SameUpper(), strides=[2]), "B,C,H,f32", out=[3], stride=2),
    _max("same-lower", _pool([3], SameLower(), strides=[2]), "B,C,H,f32", out=[3], before=1, stride=2),
    _max("f16", _pool([3], _VALID), "B,C,S,f16", out=[7]),
    *(case for kind in ("f16", "bf16", "f32", "f64") for stride in (1, 2, 3) for case in _zeros(kind, stride)),
    _max("i8", _pool([3], Explicit((1,), (1,))), Arg("B,C,S,i8", low=-128, high=-100), out=[9], before=1),
    _max("u8", _pool([2], _VALID), Arg("B,C,S,u8", high=255), out=[8]),
    Case(
        "MaxPool-infinities",
        MaxPool(_pool([2], Explicit((1,), (0,)), strides=[2])),
        [Arg("1,1,5,f32", [-math.inf, -math.inf, -math.inf, math.nan, 1])],
        lambda _: np.array([[[-math.inf, -math.inf, math.nan]]]),
    ),
    _max_with_indices("indices", _pool([3, 2], _VALID, strides=[1, 2]), "B,C,H,W,f32", out=[4, 2], stride=[1, 2]),
    _max_with_indices(
        "indices-padded", _pool([3, 2], _CEIL_PADDED, (), [2, 2]), "B,C,H,W,f32", out=[4, 3], before=[1, 0], stride=2
    ),
    _max_with_indices(
        "indices-of-equals", _pool([3], Explicit((1,), (1,))), Arg("B,C,S,i8", low=-128, high=-127), out=[9], before=1
    ),
]


def _nhwc(x: Array) -> tuple[Array, Array]:
    values = np.maximum(x[:, :-1], x[:, 1:])
    places = np.arange(x.size).reshape(x.shape)
    return values, np.where(x[:, 1:] > x[:, :-1], places[:, 1:], places[:, :-1])


_FORMATS = [
    Case(
        "MaxPool-NHWC",
        MaxPool(PoolSpec(DataFormat.NHWC, (2, 1)), DatumType.I64),
        ["B,H,W,C,f32"],
        _nhwc,
        dict(_SIZES),
    ),
    Case(
        "SumPool-CHW",
        SumPool(PoolSpec(DataFormat.CHW, (1, 2), strides=(1, 2)), normalize=False),
        ["C,H,W,f32"],
        lambda x: x[..., 0:4:2] + x[..., 1:4:2],
        dict(_SIZES),
    ),
    Case(
        "SumPool-HWC",
        SumPool(PoolSpec(DataFormat.HWC, (2, 1))),
        ["H,W,C,f32"],
        lambda x: (x[:-1] + x[1:]) / 2,
        dict(_SIZES),
    ),
]

_SUMS = [
    _sums("sum", SumPool(_pool([3], _VALID), normalize=False), "B,C,S,f32", _sum, out=[7]),
    _sums("sum-i32", SumPool(_pool([3], _VALID), normalize=False), "B,C,S,i32", _sum, out=[7]),
    _sums(
        "mean-2d",
        SumPool(_pool([3, 2], Explicit((1, 0), (1, 1)), (), [2, 1])),
        "B,C,H,W,f32",
        _mean,
        out=[3, 5],
        before=[1, 0],
        stride=[2, 1],
    ),
    _sums(
        "mean-with-padding",
        SumPool(_pool([3, 2], Explicit((1, 0), (1, 1)), (), [2, 1]), count_include_pad=True),
        "B,C,H,W,f32",
        _mean_of_all,
        out=[3, 5],
        before=[1, 0],
        stride=[2, 1],
    ),
    _sums("ceil", SumPool(_pool([3], _CEIL, strides=[2])), "B,C,H,f32", _mean, out=[3], stride=2),
    _sums(
        "ceil-counts-what-there-is",
        SumPool(_pool([3], _CEIL, strides=[2]), count_include_pad=True),
        "B,C,H,f32",
        _mean,
        out=[3],
        stride=2,
    ),
    _sums("dilated", SumPool(_pool([3], _VALID, [3])), "B,C,S,f32", _mean, out=[3], dilation=3),
    _sums("same-upper", SumPool(_pool([3], SameUpper(), strides=[2])), "B,C,H,f32", _mean, out=[3], stride=2),
    _sums("f16", SumPool(_pool([3], _VALID)), "B,C,S,f16", _mean, out=[7]),
]

ROWS.add(CASES, "pool", [*_MAX, *_FORMATS, *_SUMS])
