"""Cases of convolutions that read at places which an input moves: each read is computed by itself."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np

from tract_core.ops.deform_conv import DeformConv
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Array, Case

ROWS = Rows()


def _read(image: Array, y: float, x: float) -> float:
    """The image between its pixels; 0 outside."""
    if not (math.isfinite(y) and math.isfinite(x)):
        return 0.0
    found = 0.0
    for row, column in product((math.floor(y), math.floor(y) + 1), (math.floor(x), math.floor(x) + 1)):
        if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
            found += (1 - abs(y - row)) * (1 - abs(x - column)) * float(image[row, column])
    return found


def _expected(op: DeformConv, *inputs: Array) -> Array:
    x, kernel, offset, bias, mask = inputs
    rows, columns = kernel.shape[2:]
    found = np.zeros((len(x), len(kernel), *offset.shape[2:]))
    per_group, per_offset = kernel.shape[1], x.shape[1] // op.offset_group
    for n, o, i, j in np.ndindex(*found.shape):
        total = float(bias[o])
        for c, k, l in np.ndindex(*kernel.shape[1:]):
            channel = o // (len(kernel) // op.group) * per_group + c
            read = (channel // per_offset * rows + k) * columns + l
            y = i * op.strides[0] - op.before[0] + k * op.dilations[0] + offset[n, 2 * read, i, j]
            across = j * op.strides[1] - op.before[1] + l * op.dilations[1] + offset[n, 2 * read + 1, i, j]
            total += kernel[o, c, k, l] * mask[n, read, i, j] * _read(x[n, channel], y, across)
        found[n, o, i, j] = total
    return found


def _case(op: DeformConv, channels: int, out: tuple[int, int]) -> Case:
    reads = 4 * op.offset_group
    size = f"{out[0]},{out[1]},f32"
    return Case(
        f"DeformConv-{op.group}-{op.offset_group}-{op.strides[0]}",
        op,
        [
            f"N,{channels},4,5,f32",
            f"4,{channels // op.group},2,2,f32",
            Arg(f"N,{2 * reads},{size}"),
            "4,f32",
            f"N,{reads},{size}",
        ],
        lambda *inputs: _expected(op, *inputs),
        {"N": 2},
    )


def _far() -> Case:
    """Offsets that lead far away, or nowhere."""
    offsets = np.resize([0.5, math.nan, math.inf, -math.inf, 1e30, -3e38, -0.25], (2, 8, 3, 4))
    case = _case(DeformConv((1, 1), (1, 1), (0, 0), (0, 0)), 2, (3, 4))
    x, kernel, _, *rest = case.inputs
    return replace(case, name="DeformConv-far", inputs=[x, kernel, Arg("N,8,3,4,f32", offsets), *rest])


_CASES = [
    _far(),
    _case(DeformConv((1, 1), (1, 1), (0, 0), (0, 0)), 2, (3, 4)),
    _case(DeformConv((2, 1), (1, 2), (1, 0), (1, 0), group=2, offset_group=2), 4, (3, 3)),
]

ROWS.add(CASES, "deform_conv", _CASES)
