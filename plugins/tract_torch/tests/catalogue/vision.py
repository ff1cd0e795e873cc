"""Operators of torchvision in the catalogue, which needs no torchvision for that."""

from __future__ import annotations

import torch
from torchvision_operators import operators

from catalogue.entry import Entry

V = operators()


def boxes(x: torch.Tensor) -> torch.Tensor:
    """From four random numbers a row: some box around the upper left corner of an image."""
    corner = x[:, :2].abs() * 2
    return torch.cat([corner, corner + x[:, 2:].abs() * 4 + 0.5], 1)


def regions(x: torch.Tensor) -> torch.Tensor:
    """Boxes that begin outside too, in the first and the second of two images in turn."""
    return torch.cat([(x[:, :1] > 0).to(x.dtype), boxes(x) - 1], 1)


IMAGES = ("2,8,5,6,f32", "S,4,f32")

ENTRIES = [
    Entry("nms", lambda x, s: V.nms(boxes(x), s, 0.3), ("S,4,f32", "S,f32")),
    Entry(
        "nms, boxes",
        lambda x, s: boxes(x)[V.nms(boxes(x), s, 0.1)],
        ("S,4,f32", "S,f32"),
    ),
    Entry("roi_align", lambda x, r: V.roi_align(x, regions(r), 0.5, 2, 3, 2, True), IMAGES),
    Entry("roi_align, as many points as pixels", lambda x, r: V.roi_align(x, regions(r), 1.0, 2, 2, -1, False), IMAGES),
    Entry("ps_roi_align", lambda x, r: V.ps_roi_align(x, regions(r), 0.5, 2, 2, 2)[0], IMAGES),
    Entry("roi_pool", lambda x, r: V.roi_pool(x, regions(r).round(), 1.0, 2, 3)[0], IMAGES),
    Entry(
        "deform_conv2d",
        lambda x, w, o, m, b: V.deform_conv2d(x, w, o, m, b, 2, 1, 1, 0, 1, 2, 2, 2, True),
        ("S,4,5,6,f32", "6,2,2,2,f32", "S,16,3,4,f32", "S,8,3,4,f32", "6,f32"),
    ),
    Entry(
        "deform_conv2d, no factors",
        lambda x, w, o, b: V.deform_conv2d(x, w, o, x[:, :1, 0, 0], b, 1, 1, 0, 0, 1, 1, 1, 1, False),
        ("S,2,4,4,f32", "3,2,2,2,f32", "S,8,3,3,f32", "3,f32"),
    ),
]
