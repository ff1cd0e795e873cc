"""Cases of the deconvolutions: for each output element, the input elements that write to it are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.ops.conv import KernelFormat
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import DataFormat, Explicit, Padding, PoolSpec, SameLower, SameUpper, Valid
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Array, Case

ROWS = Rows()

_VALID = Valid()

_SIZES = {"B": 2, "C": 4, "H": 3, "W": 4, "S": 5}


def _look_up(
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
    """Data (N, C, spatial) and kernel (O, C / group, spatial) to (N, O, *out); ``before``: elements cut off."""
    exact = np.int64 if x.dtype.kind in "iu" else np.float64
    x, kernel, bias = (array.astype(exact) for array in (x, kernel, bias))
    starts, steps, gaps = (np.broadcast_to(one, len(out)) for one in (before, stride, dilation))
    result = np.zeros((x.shape[0], kernel.shape[0], *out), dtype=x.dtype)
    for n, o, *place in np.ndindex(*result.shape):
        total = bias.reshape(-1)[o % bias.size]
        channel = o // (kernel.shape[0] // group) * kernel.shape[1]
        for i, *tap in np.ndindex(*kernel.shape[1:]):
            far = [p + b - t * d for p, b, t, d in zip(place, starts, tap, gaps, strict=True)]
            read = [f // s for f, s in zip(far, steps, strict=True)]
            whole = all(f % s == 0 for f, s in zip(far, steps, strict=True))
            if whole and all(0 <= r < size for r, size in zip(read, x.shape[2:], strict=True)):
                total = total + x[(n, channel + i, *read)] * kernel[(o, i, *tap)]
        result[(n, o, *place)] = total
    return result


def _case(name: str, op: Deconv, inputs: Sequence[str], **how: Any) -> Case:
    """A case on NCHW data and OIHW kernels."""
    return Case(f"Deconv-{name}", op, inputs, lambda *a: _look_up(*a, group=op.group, **how), dict(_SIZES))


def _pool(
    kernel: Sequence[int], padding: Padding = _VALID, dilations: Sequence[int] = (), strides: Sequence[int] = ()
) -> PoolSpec:
    return PoolSpec(DataFormat.NCHW, tuple(kernel), padding, tuple(dilations), tuple(strides))


def _channel_last(x: Array, kernel: Array, bias: Array) -> Array:
    moved = _look_up(x.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1), bias, out=[6, 9], stride=2)
    return moved.transpose(0, 2, 3, 1)


_CASES = [
    _case("1d", Deconv(_pool([3])), ["B,2,S,f32", "3,2,3,f32", "3,f32"], out=[7]),
    _case("strided", Deconv(_pool([3], strides=[2])), ["B,2,S,f32", "3,2,3,f32", "3,f32"], out=[11], stride=2),
    _case("gaps", Deconv(_pool([2], strides=[3])), ["B,2,S,f32", "3,2,2,f32", "f32"], out=[14], stride=3),
    _case(
        "unet",
        Deconv(_pool([2, 2], strides=[2, 2])),
        ["B,C,H,W,f32", "3,C,2,2,f32", "3,f32"],
        out=[6, 8],
        stride=2,
    ),
    _case(
        "padded-adjusted",
        Deconv(_pool([3, 4], Explicit((1, 2), (1, 0)), strides=[2, 3]), adjustments=(1, 2)),
        ["B,2,H,W,f32", "3,2,3,4,f32", "3,f32"],
        out=[6, 13],
        before=[1, 2],
        stride=[2, 3],
    ),
    _case(
        "dilated",
        Deconv(_pool([2, 3], Explicit((0, 1), (2, 0)), [3, 2], [1, 2])),
        ["B,2,H,W,f32", "3,2,2,3,f32", "3,f32"],
        out=[4, 10],
        before=[0, 1],
        stride=[1, 2],
        dilation=[3, 2],
    ),
    _case("groups", Deconv(_pool([3], strides=[2]), group=2), ["B,4,S,f32", "6,2,3,f32", "6,f32"], out=[11], stride=2),
    _case(
        "depthwise",
        Deconv(_pool([4], Explicit((1,), (1,)), strides=[2]), group=3),
        ["B,3,S,f32", "3,1,4,f32", "f32"],
        out=[10],
        before=1,
        stride=2,
    ),
    _case(
        "3d",
        Deconv(_pool([2, 1, 2], strides=[1, 2, 1])),
        ["B,1,H,2,W,f32", "2,1,2,1,2,f32", "2,f32"],
        out=[4, 3, 5],
        stride=[1, 2, 1],
    ),
    _case(
        "same-upper",
        Deconv(_pool([3], SameUpper(), strides=[2])),
        ["B,1,S,f32", "1,1,3,f32", "f32"],
        out=[10],
        stride=2,
    ),
    _case(
        "same-lower",
        Deconv(_pool([3], SameLower(), strides=[2])),
        ["B,1,S,f32", "1,1,3,f32", "f32"],
        out=[10],
        before=1,
        stride=2,
    ),
    _case(
        "same-of-gaps",
        Deconv(_pool([1], SameUpper(), strides=[2])),
        ["B,1,S,f32", "1,1,1,f32", "f32"],
        out=[10],
        stride=2,
    ),
    _case("f16", Deconv(_pool([3])), ["B,2,S,f16", "3,2,3,f16", "3,f16"], out=[7]),
    _case("i8", Deconv(_pool([3])), ["B,2,S,i8", "3,2,3,i8", "3,i32"], out=[7]),
    Case(
        "Deconv-NHWC-HWIO",
        Deconv(PoolSpec(DataFormat.NHWC, (2, 3), strides=(2, 2)), KernelFormat.HWIO),
        ["B,H,W,2,f32", "2,3,2,3,f32", "3,f32"],
        _channel_last,
        dict(_SIZES),
    ),
]

ROWS.add(CASES, "deconv", _CASES)
