"""The operators of torchvision that are written in C, in plain loops, where its library is not there.

They are named here where nothing else names them, as beside a build of PyTorch that the library was not made for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
"""What is defined here lasts as long as this does."""

_ROIS = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_DEFORM = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w,"
    " SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups,"
    " bool use_mask"
)


def _nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    kept: list[int] = []
    for place in scores.argsort(descending=True, stable=True).tolist():
        if all(_common(dets[place].tolist(), dets[other].tolist()) <= iou_threshold for other in kept):
            kept.append(place)
    return torch.tensor(kept, dtype=torch.int64)


def _common(a: list[float], b: list[float]) -> float:
    """The area that two boxes have in common as a share of that of both."""
    sides = [max(min(a[axis + 2], b[axis + 2]) - max(a[axis], b[axis]), 0) for axis in (0, 1)]
    area_a, area_b = ((one[2] - one[0]) * (one[3] - one[1]) for one in (a, b))
    return math.prod(sides) / (area_a + area_b - math.prod(sides))


def _at(image: torch.Tensor, y: float, x: float, border: float) -> float:
    """An image between its pixels, which goes on for ``border`` beyond them, and is 0 from there on."""
    height, width = image.shape
    if not (-border <= y <= height - 1 + border and -border <= x <= width - 1 + border) and border:
        return 0.0
    if border:
        y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    found = 0.0
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < height and 0 <= column < width:
                found += (1 - abs(y - row)) * (1 - abs(x - column)) * float(image[row, column])
    return found


def _mean(image: torch.Tensor, box: list[float], cell: tuple[int, int], size: tuple[int, int], samples: int) -> float:
    """The mean of the points of one cell of a box (x1, y1, x2, y2)."""
    height, width = (box[3] - box[1]) / size[0], (box[2] - box[0]) / size[1]
    down, across = (samples, samples) if samples > 0 else (math.ceil(height), math.ceil(width))
    places = [
        (box[1] + (cell[0] + (k + 0.5) / down) * height, box[0] + (cell[1] + (m + 0.5) / across) * width)
        for k in range(down)
        for m in range(across)
    ]
    # a pixel beyond the last one, and no further, is where the C library begins to give 0
    return sum(_at(image, y, x, 1) for y, x in places) / max(len(places), 1)


def _each(
    x: torch.Tensor, rois: torch.Tensor, channels: int, size: tuple[int, int], value: Callable[..., float]
) -> torch.Tensor:
    found = x.new_zeros(len(rois), channels, *size)
    for r, roi in enumerate(rois.tolist()):
        for c in range(channels):
            for i in range(size[0]):
                for j in range(size[1]):
                    found[r, c, i, j] = value(int(roi[0]), roi[1:], c, (i, j))
    return found


def _roi_align(x: torch.Tensor, rois: torch.Tensor, *options: Any) -> torch.Tensor:
    scale, height, width, samples, aligned = options

    def value(image: int, roi: list[float], channel: int, cell: tuple[int, int]) -> float:
        x1, y1, x2, y2 = (one * scale - 0.5 * aligned for one in roi)
        if not aligned:
            x2, y2 = max(x2, x1 + 1), max(y2, y1 + 1)
        return _mean(x[image, channel], [x1, y1, x2, y2], cell, (height, width), samples)

    return _each(x, rois, x.shape[1], (height, width), value)


def _ps_roi_align(x: torch.Tensor, rois: torch.Tensor, *options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    scale, height, width, samples = options

    def value(image: int, roi: list[float], channel: int, cell: tuple[int, int]) -> float:
        own = (channel * height + cell[0]) * width + cell[1]
        box = [one * scale - 0.5 for one in roi]
        return _mean(x[image, own], box, cell, (height, width), samples)

    found = _each(x, rois, x.shape[1] // (height * width), (height, width), value)
    return found, torch.zeros(found.shape, dtype=torch.int32)


def _roi_pool(
    x: torch.Tensor, rois: torch.Tensor, scale: float, height: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    def value(image: int, roi: list[float], channel: int, cell: tuple[int, int]) -> float:
        x1, y1, x2, y2 = (math.floor(one * scale + 0.5) for one in roi)
        tall, wide = max(y2 - y1 + 1, 1) / height, max(x2 - x1 + 1, 1) / width
        rows = range(max(y1 + math.floor(cell[0] * tall), 0), y1 + math.ceil((cell[0] + 1) * tall))
        columns = range(max(x1 + math.floor(cell[1] * wide), 0), x1 + math.ceil((cell[1] + 1) * wide))
        plane = x[image, channel].tolist()
        return max((plane[i][j] for i in rows for j in columns if i < x.shape[2] and j < x.shape[3]), default=0.0)

    found = _each(x, rois, x.shape[1], (height, width), value)
    return found, torch.zeros(found.shape, dtype=torch.int32)


def _deform_conv2d(
    x: torch.Tensor, kernel: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor, bias: torch.Tensor, *options: Any
) -> torch.Tensor:
    stride, pad, dilation, (groups, offset_groups), use_mask = *(options[k : k + 2] for k in (0, 2, 4, 6)), options[8]
    found = bias[None, :, None, None].repeat(len(x), 1, *offset.shape[2:])
    rows, columns = kernel.shape[2:]
    for n, i, j, k, m in torch.cartesian_prod(*map(torch.arange, (len(x), *offset.shape[2:], rows, columns))).tolist():
        for c in range(x.shape[1]):
            read = (c // (x.shape[1] // offset_groups) * rows + k) * columns + m
            y = i * stride[0] - pad[0] + k * dilation[0] + float(offset[n, 2 * read, i, j])
            across = j * stride[1] - pad[1] + m * dilation[1] + float(offset[n, 2 * read + 1, i, j])
            value = _at(x[n, c], y, across, 0) * (float(mask[n, read, i, j]) if use_mask else 1)
            group, own = divmod(c, x.shape[1] // groups)
            outputs = slice(group * len(kernel) // groups, (group + 1) * len(kernel) // groups)
            found[n, outputs, i, j] += value * kernel[outputs, own, k, m]
    return found


def _regions(x: torch.Tensor, rois: torch.Tensor, _: float, height: int, width: int, *options: Any) -> torch.Tensor:
    return x.new_empty(rois.shape[0], x.shape[1], height, width)


def _pooled_regions(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
    found = _regions(*arguments)
    return found, found.new_empty(found.shape, dtype=torch.int32)


def _own_channels(x: torch.Tensor, *arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _pooled_regions(x[:, : x.shape[1] // (arguments[2] * arguments[3])], *arguments)


def _kept(dets: torch.Tensor, *_: Any) -> torch.Tensor:
    return dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def _convolved(x: torch.Tensor, kernel: torch.Tensor, offset: torch.Tensor, *_: Any) -> torch.Tensor:
    return x.new_empty(x.shape[0], kernel.shape[0], *offset.shape[2:])


_OPERATORS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": (_nms, _kept),
    f"roi_align({_ROIS}, int sampling_ratio, bool aligned) -> Tensor": (_roi_align, _regions),
    f"ps_roi_align({_ROIS}, int sampling_ratio) -> (Tensor, Tensor)": (_ps_roi_align, _own_channels),
    f"roi_pool({_ROIS}) -> (Tensor, Tensor)": (_roi_pool, _pooled_regions),
    f"ps_roi_pool({_ROIS}) -> (Tensor, Tensor)": (_roi_pool, _own_channels),
    f"deform_conv2d({_DEFORM}) -> Tensor": (_deform_conv2d, _convolved),
}


def operators() -> Any:
    """``torch.ops.torchvision``, with the operators that are compared; after torchvision, which has shapes for some."""
    with suppress(ImportError):
        import with_torchvision  # noqa: F401 - where it is installed, it names what it has shapes for
    if not hasattr(torch.ops.torchvision, "roi_align"):
        for schema, (compute, shapes) in _OPERATORS.items():
            name = schema.partition("(")[0]
            if not hasattr(torch.ops.torchvision, name):
                LIBRARY.define(schema)
                torch.library.register_fake(f"torchvision::{name}", shapes, lib=LIBRARY)
            LIBRARY.impl(name, compute, "CPU")
    return torch.ops.torchvision
