"""Cases of the convolutions: each output element is summed up by itself, in float64 or whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tract_core.data import DatumType, QuantizedType
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.pool_spec import (
    DataFormat,
    Explicit,
    ExplicitOnnxPool,
    Padding,
    PoolSpec,
    SameLower,
    SameUpper,
    Valid,
)
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Array, Case

ROWS = Rows()

_VALID = Valid()

_SIZES = {"B": 2, "C": 4, "H": 6, "W": 5, "S": 9}


def _sum_up(
    x: Array,
    kernel: Array,
    bias: Array,
    *,
    out: Sequence[int],
    before: Sequence[int] | int = 0,
    stride: Sequence[int] | int = 1,
    dilation: Sequence[int] | int = 1,
    group: int = 1,
) -> Array:
    """Data (N, C, spatial) and kernel (O, C / group, spatial) to (N, O, *out); ``before``: elements of padding."""
    exact = np.int64 if x.dtype.kind in "iu" else np.float64
    x, kernel, bias = (array.astype(exact) for array in (x, kernel, bias))
    starts, steps, gaps = (np.broadcast_to(one, len(out)) for one in (before, stride, dilation))
    result = np.zeros((x.shape[0], kernel.shape[0], *out), dtype=x.dtype)
    for n, o, *place in np.ndindex(*result.shape):
        total = bias.reshape(-1)[o % bias.size]
        channel = o // (kernel.shape[0] // group) * kernel.shape[1]
        for i, *tap in np.ndindex(*kernel.shape[1:]):
            read = [p * s + t * d - b for p, s, t, d, b in zip(place, steps, tap, gaps, starts, strict=True)]
            if all(0 <= r < size for r, size in zip(read, x.shape[2:], strict=True)):
                total = total + x[(n, channel + i, *read)] * kernel[(o, i, *tap)]
        result[(n, o, *place)] = total
    return result


def _case(name: str, pool: PoolSpec, inputs: Sequence[str | Arg], *, group: int = 1, **how: Any) -> Case:
    """A case on NCHW data and OIHW kernels."""
    return Case(
        f"Conv-{name}", Conv(pool, group=group), inputs, lambda *a: _sum_up(*a, group=group, **how), dict(_SIZES)
    )


def _pool(
    kernel: Sequence[int], padding: Padding = _VALID, dilations: Sequence[int] = (), strides: Sequence[int] = ()
) -> PoolSpec:
    return PoolSpec(DataFormat.NCHW, tuple(kernel), padding, tuple(dilations), tuple(strides))


_PLAIN = [
    _case("no-axes", _pool([]), ["B,3,f32", "4,3,f32", "4,f32"], out=[]),
    _case("1d", _pool([3]), ["B,2,S,f32", "3,2,3,f32", "3,f32"], out=[7]),
    _case("1x1", _pool([1, 1]), ["B,3,H,W,f32", "4,3,1,1,f32", "4,f32"], out=[6, 5]),
    _case(
        "2d-padded-strided",
        _pool([3, 2], Explicit((1, 0), (1, 1)), strides=[2, 1]),
        ["B,3,H,W,f32", "4,3,3,2,f32", "4,f32"],
        out=[3, 5],
        before=[1, 0],
        stride=[2, 1],
    ),
    _case(
        "dilated",
        _pool([3, 2], Explicit((2, 0), (1, 2)), [2, 3]),
        ["B,1,H,W,f32", "2,1,3,2,f32", "f32"],
        out=[5, 4],
        before=[2, 0],
        dilation=[2, 3],
    ),
    _case("symbolic-channels", _pool([3]), ["B,C,S,f32", "3,C,3,f32", "f32"], out=[7]),
    _case("symbolic-outputs", _pool([3]), ["1,2,S,f32", "C,2,3,f32", "C,f32"], out=[7]),
    _case(
        "3d",
        _pool([2, 1, 3], Explicit((0, 0, 1), (1, 0, 1)), [2, 1, 1], [1, 2, 2]),
        ["B,2,H,W,4,f32", "3,2,2,1,3,f32", "3,f32"],
        out=[5, 3, 2],
        before=[0, 0, 1],
        stride=[1, 2, 2],
        dilation=[2, 1, 1],
    ),
    _case("groups", _pool([3]), ["B,4,S,f32", "6,2,3,f32", "6,f32"], group=2, out=[7]),
    _case(
        "depthwise",
        _pool([3, 3], Explicit((1, 1), (1, 1)), strides=[2, 2]),
        ["B,3,H,W,f32", "3,1,3,3,f32", "3,f32"],
        group=3,
        out=[3, 3],
        before=1,
        stride=2,
    ),
    _case("multiplier", _pool([2]), ["B,3,S,f32", "6,1,2,f32", "6,f32"], group=3, out=[8]),
    _case("same-upper", _pool([3], SameUpper(), strides=[2]), ["B,1,H,f32", "1,1,3,f32", "f32"], out=[3], stride=2),
    _case(
        "same-lower",
        _pool([3], SameLower(), strides=[2]),
        ["B,1,H,f32", "1,1,3,f32", "f32"],
        out=[3],
        before=1,
        stride=2,
    ),
    _case(
        "same-upper-wide-stride",
        _pool([2], SameUpper(), strides=[4]),
        ["B,1,S,f32", "1,1,2,f32", "f32"],
        out=[3],
        stride=4,
    ),
    _case(
        "ceil",
        _pool([3], ExplicitOnnxPool((0,), (0,), ceil_mode=True), strides=[2]),
        ["B,1,H,f32", "1,1,3,f32", "f32"],
        out=[3],
        stride=2,
    ),
    _case("nothing-fits", _pool([10]), ["B,1,S,f32", "1,1,10,f32", "f32"], out=[0]),
    _case("f64", _pool([3]), ["B,2,S,f64", "3,2,3,f64", "3,f64"], out=[7]),
    _case("f16", _pool([3]), ["B,2,S,f16", "3,2,3,f16", "3,f16"], out=[7]),
    _case("bf16", _pool([3]), ["B,2,S,bf16", "3,2,3,bf16", "3,bf16"], out=[7]),
    _case(
        "i8",
        _pool([3]),
        [Arg("B,2,S,i8", low=-128, high=127), Arg("3,2,3,i8", low=-128, high=127), "3,i32"],
        out=[7],
    ),
    _case("i64", _pool([3]), [Arg("B,2,S,i64", high=1 << 33), "3,2,3,i64", "3,i64"], out=[7]),
]


def _in_format(data: DataFormat, kernel: KernelFormat) -> Case:
    """The same convolution on data and a kernel in other orders."""
    spatial = {DataFormat.NCHW: "B,2,H,W", DataFormat.NHWC: "B,H,W,2", DataFormat.CHW: "2,H,W", DataFormat.HWC: "H,W,2"}
    weights = {KernelFormat.OIHW: "3,2,2,3", KernelFormat.HWIO: "2,3,2,3", KernelFormat.OHWI: "3,2,3,2"}
    back = {KernelFormat.OIHW: (0, 1, 2, 3), KernelFormat.HWIO: (3, 2, 0, 1), KernelFormat.OHWI: (0, 3, 1, 2)}

    def expected(x: Array, k: Array, bias: Array) -> Array:
        batched = x if data.value.startswith("n") else x[None]
        moved = batched.transpose(0, 3, 1, 2) if data.value.endswith("c") else batched
        result = _sum_up(moved, k.transpose(back[kernel]), bias, out=[3, 3], stride=[2, 1])
        result = result.transpose(0, 2, 3, 1) if data.value.endswith("c") else result
        return result if data.value.startswith("n") else result[0]

    op = Conv(PoolSpec(data, (2, 3), strides=(2, 1)), kernel)
    name = f"Conv-{data.name}-{kernel.name}"
    return Case(name, op, [f"{spatial[data]},f32", f"{weights[kernel]},f32", "3,f32"], expected, dict(_SIZES))


def _parameters(kinds: Sequence[str], values: Sequence[Any]) -> list[Arg]:
    """Zero point and scale of data, kernel and output. Scales are powers of two, so that no rounding is in doubt."""
    return [
        Arg(f"{len(value)},{kind}" if isinstance(value, list) else kind, value)
        for kind, value in zip(kinds, values, strict=True)
    ]


def _quantized(
    name: str, op: Conv, inputs: Sequence[str | Arg], values: Sequence[Any], limits: tuple[int, int], **how: Any
) -> Case:
    kinds = ["u8", "f32", "i8", "f32", "i32", "f32"]

    def expected(x: Array, k: Array, bias: Array, *p: Array) -> Array:
        data = x.astype(np.int64) - int(p[0])
        weights = k.astype(np.int64) - p[2].astype(np.int64).reshape(-1, 1, 1)
        sums = _sum_up(data, weights, bias.astype(np.int64), group=op.group, **how)
        real = sums * (p[1] * p[3]).reshape(-1, 1)
        return np.clip(np.round(real / p[5].reshape(-1, 1)) + p[4].reshape(-1, 1), *limits).astype(np.int64)

    return Case(f"Conv-{name}", op, [*inputs, *_parameters(kinds, values)], expected, dict(_SIZES))


_BYTES = [Arg("B,2,S,u8", low=0, high=255), Arg("4,2,3,i8", low=-128, high=127), Arg("4,i32", low=-999, high=999)]
_GROUPED = [Arg("B,4,S,u8", low=0, high=255), *_BYTES[1:]]

_QUANTIZED = [
    _quantized(
        "q-u8",
        Conv(_pool([3], Explicit((1,), (1,))), q_output=DatumType.U8),
        _BYTES,
        [128, 0.5, 3, 0.25, 100, 32.0],
        (0, 255),
        out=[9],
        before=1,
    ),
    _quantized(
        "q-per-channel",
        Conv(_pool([3]), group=2, q_output=DatumType.I8),
        _GROUPED,
        [7, 0.5, [0, 1, -2, 3], [0.25, 0.5, 0.125, 1.0], [1, 2, 3, 4], [64.0, 32.0, 64.0, 128.0]],
        (-128, 127),
        out=[7],
    ),
    _quantized(
        "q-i32",
        Conv(_pool([3]), q_output=DatumType.I32),
        _BYTES,
        [128, 1.0, 0, 1.0, 0, 1.0],
        (-(1 << 31), (1 << 31) - 1),
        out=[7],
    ),
    _quantized(
        "q-type",
        Conv(_pool([3]), q_output=QuantizedType(DatumType.U8, 100, 32.0)),
        _BYTES,
        [128, 0.5, 3, 0.25, 100, 32.0],
        (0, 255),
        out=[7],
    ),
]

ROWS.add(
    CASES, "conv", [*_PLAIN, *(_in_format(*formats) for formats in product(DataFormat, KernelFormat)), *_QUANTIZED]
)
