"""Custom operators of MediaPipe, which LiteRT has not: what is expected is computed here, place by place in f64."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any]]

SAME, VALID = 1, 2
F = np.float32
EXPECTED: dict[str, list[Any]] = {}
"""By the name of a case."""


def expected(name: str) -> list[Any]:
    """The outputs of a case that was yielded."""
    return EXPECTED[name]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """Deconvolutions, pools with places, and what moves landmarks."""
    for padding in (SAME, VALID):
        for stride, window in (((1, 1), (2, 3)), ((2, 3), (3, 3)), ((2, 2), (2, 2))):
            yield deconvolution(draw, padding, stride, window)
            yield pool(draw, padding, stride, window)
    yield pool(draw, SAME, (2, 2), (2, 2), activation=1)
    for stride in ((2, 2), (1, 2)):
        yield unpool(draw, stride)
    for last in (2, 3):
        yield landmarks(draw, last)
    for name in ("TransformTensorBilinear", "TransformTensor"):
        for turn in (0.0, 0.7):
            yield tensor(draw, name, turn)
    for target in (0.0, 1.5):
        yield matrix(draw, target)


def made(name: str, op: str, given: list[Any], constants: list[Any], results: list[Any], custom: bytes) -> Case:
    EXPECTED[name] = results
    tensors = [*(Tensor(np.shape(one)) for one in given), *map(const, constants)]
    outputs = [*range(len(tensors), len(tensors) + len(results))]
    tensors += [Tensor(np.shape(one)) for one in results]
    ops = [Op(op, [*range(outputs[0])], outputs, custom=custom)]
    return name, file(Graph(tensors, ops, [*range(len(given))], outputs)), given


def deconvolution(draw: np.random.Generator, padding: int, stride: tuple[int, int], window: tuple[int, int]) -> Case:
    x, kernel = draw.standard_normal((2, 3, 4, 2), F), draw.standard_normal((3, *window, 2), F)
    bias = draw.standard_normal(3, F)
    total = [
        max(0, count - (size - 1) % step - 1) if padding == SAME else 0
        for count, size, step in zip(window, x.shape[1:3], stride, strict=True)
    ]
    whole = [step * (size - 1) + count for step, size, count in zip(stride, x.shape[1:3], window, strict=True)]
    y = np.zeros((2, *whole, 3))
    for row, column, i, j in np.ndindex(3, 4, *window):
        y[:, row * stride[0] + i, column * stride[1] + j] += x[:, row, column].astype(float) @ kernel[:, i, j].T
    rows, columns = (slice(cut // 2, size - (cut - cut // 2)) for cut, size in zip(total, whole, strict=True))
    y = y[:, rows, columns] + bias
    custom = struct.pack("<3i", padding, stride[1], stride[0])
    name = f"deconvolution padding {padding} stride {stride} window {window}"
    return made(name, "Convolution2DTransposeBias", [x], [kernel, bias], [y.astype(F)], custom)


def padded(size: int, step: int, count: int, padding: int) -> tuple[int, int]:
    """How many windows there are, and how many places are in front of the first."""
    if padding == VALID:
        return (size - count + step) // step, 0
    out = -(-size // step)
    return out, max(0, (out - 1) * step + count - size) // 2


def pool(
    draw: np.random.Generator, padding: int, stride: tuple[int, int], window: tuple[int, int], activation: int = 0
) -> Case:
    x = draw.integers(-5, 6, (2, 5, 6, 2)).astype(F)  # some are the same
    (rows, top), (columns, left) = (padded(x.shape[1 + a], stride[a], window[a], padding) for a in (0, 1))
    y, places = np.full((2, rows, columns, 2), -np.inf, F), np.zeros((2, rows, columns, 2), F)
    for at in np.ndindex(y.shape):
        for i, j in np.ndindex(*window):
            row, column = at[1] * stride[0] - top + i, at[2] * stride[1] - left + j
            if 0 <= row < 5 and 0 <= column < 6 and x[at[0], row, column, at[3]] > y[at]:
                y[at], places[at] = x[at[0], row, column, at[3]], F(i * window[1] + j) + F(0.1)
    if activation:
        y = np.maximum(y, 0)
    custom = struct.pack("<6i", padding, stride[1], stride[0], window[1], window[0], activation)
    name = f"pool padding {padding} stride {stride} window {window} activation {activation}"
    return made(name, "MaxPoolingWithArgmax2D", [x], [], [y, places], custom)


def unpool(draw: np.random.Generator, stride: tuple[int, int]) -> Case:
    x = draw.standard_normal((2, 3, 2, 2), F)
    places = draw.integers(0, 5, x.shape).astype(F) + F(0.1)  # one of them is in the next row, or outside
    window = (2, 2)
    y = np.zeros((2, 6, 4, 2), F)
    before = [max(0, (x.shape[1 + a] - 1) * stride[a] + 2 - y.shape[1 + a]) // 2 for a in (0, 1)]
    for at in np.ndindex(x.shape):
        place = int(places[at])
        row, column = at[1] * stride[0] - before[0] + place // 2, at[2] * stride[1] - before[1] + place % 2
        if 0 <= row < 6 and 0 <= column < 4:
            y[at[0], row, column, at[3]] = x[at]
    custom = struct.pack("<6i", SAME, stride[1], stride[0], *window, 0)
    return made(f"unpool stride {stride}", "MaxUnpooling2D", [x, places], [], [y], custom)


def landmarks(draw: np.random.Generator, last: int) -> Case:
    points, turn = draw.standard_normal((1, 5, last), F), draw.standard_normal((1, 4, 4), F)
    y = points.astype(float)
    y[0, :, :2] = points[0, :, :2].astype(float) @ turn[0, :2, :2].T.astype(float) + turn[0, :2, 3]
    return made(f"landmarks of {last}", "TransformLandmarks", [points, turn], [], [y.astype(F)], b"")


def tensor(draw: np.random.Generator, name: str, turn: float) -> Case:
    x = draw.standard_normal((1, 5, 6, 2), F)
    matrix = np.eye(4, dtype=F)[None]
    matrix[0, :2] = [[math.cos(turn), -math.sin(turn), 0, 0.8], [math.sin(turn), math.cos(turn), 0, -0.3]]
    half = 0.5 if name.endswith("Bilinear") else 0.0
    y = np.zeros((1, 4, 7, 2))
    for row, column in np.ndindex(4, 7):
        at = matrix[0, :2].astype(float) @ [column + half, row + half, 0, 1] - half
        if 0 <= at[0] <= 5 and 0 <= at[1] <= 4:
            left, top = int(at[0]), int(at[1])
            for i, j in np.ndindex(2, 2):
                weight = abs(1 - i - (at[1] - top)) * abs(1 - j - (at[0] - left))
                if weight:
                    y[0, row, column] += weight * x[0, top + i, left + j]
    custom = bytes(flexbuffers.Dumps({"output_height": 4, "output_width": 7}))
    return made(f"{name} turned by {turn}", name, [x, matrix], [], [y.astype(F)], custom)


def matrix(draw: np.random.Generator, target: float) -> Case:
    points, chosen = draw.uniform(0, 50, (1, 9, 3)).astype(F), [0, 3, 4, 8, 2, 2]
    options: dict[str, Any] = {
        "left_rotation_idx": 1, "right_rotation_idx": 5, "target_rotation_radians": target, "output_height": 8,
        "output_width": 16, "scale_x": 1.5, "scale_y": 1.25, "subset_idxs": chosen,
    }  # fmt: skip
    across, down = (points[0, 5] - points[0, 1])[:2].astype(float)
    angle = target - math.atan2(down, across)

    def turned(by: float) -> Any:
        return np.array([[math.cos(by), -math.sin(by)], [math.sin(by), math.cos(by)]])

    seen = points[0, chosen, :2].astype(float) @ turned(angle).T
    middle, size = (seen.min(0) + seen.max(0)) / 2, seen.max(0) - seen.min(0)
    scale = turned(-angle) @ np.diag(size * [1.5, 1.25] / [16, 8])
    y = np.eye(4)[None]
    y[0, :2, :2] = scale
    y[0, :2, 3] = turned(-angle) @ middle - scale @ [8, 4]
    name = f"matrix of landmarks turned to {target}"
    return made(name, "Landmarks2TransformMatrix", [points], [], [y.astype(F)], bytes(flexbuffers.Dumps(options)))
