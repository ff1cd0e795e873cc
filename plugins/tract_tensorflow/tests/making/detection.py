"""The end of detectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any]]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """Class by class, and all together; with a background, and in bytes."""
    for regular in (False, True):
        for background in (0, 1):
            for per_box in (1,) if regular else (1, 2):  # of two, the rest is not written to
                label = f"regular {regular} background {background} classes of a box {per_box}"
                yield (f"{label}", *detector(draw, regular, background, per_box))
        yield (f"regular {regular} most 2", *detector(draw, regular, 0, 1, most=2, per_class=1))
        yield (f"regular {regular} little overlap", *detector(draw, regular, 0, 1, overlap=0.2))
        yield (f"regular {regular} bytes", *detector(draw, regular, 1, 1, kind="UINT8"))


def detector(
    draw: np.random.Generator, regular: bool, background: int, per_box: int, *, most: int = 6, per_class: int = 100,
    overlap: float = 0.6, kind: str = "FLOAT32",
) -> tuple[bytes, list[Any]]:  # fmt: skip
    anchors, classes, most = 12, 3, most if regular else min(most, 3)  # what nothing is written to would be anything
    options = {
        "max_detections": most, "max_classes_per_detection": per_box, "detections_per_class": per_class,
        "use_regular_nms": regular, "nms_score_threshold": 0.15, "nms_iou_threshold": overlap, "num_classes": classes,
        "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
    }  # fmt: skip
    places = np.concatenate([draw.uniform(0.2, 0.8, (anchors, 2)), draw.uniform(0.1, 0.5, (anchors, 2))], 1)
    shapes = (1, anchors, 4), (1, anchors, classes + background)
    if kind == "FLOAT32":
        given = [Tensor(shapes[0]), Tensor(shapes[1])]
        # class by class, some scores are the same; else, the kernel says nothing of their order
        scores = draw.permutation(np.linspace(0, 1, anchors * (classes + background))).reshape(shapes[1])
        data = [
            draw.standard_normal(shapes[0], np.float32),
            (scores.round(1) if regular else scores).astype(np.float32),
        ]
    else:
        given = [Tensor(shapes[0], kind, scale=0.03, zero=128), Tensor(shapes[1], kind, scale=1 / 255, zero=0)]
        data = [
            draw.integers(0, 256, shapes[0]).astype(np.uint8),
            draw.permutation(256)[: np.prod(shapes[1])].astype(np.uint8).reshape(shapes[1]),
        ]
    boxes = const(places.astype(np.float32))
    if kind != "FLOAT32":
        boxes = const(np.round(places * 255), kind, scale=1 / 255, zero=0)
    count = most * per_box
    results = [Tensor(shape) for shape in ((1, count, 4), (1, count), (1, count), (1,))]
    op = Op("TFLite_Detection_PostProcess", [0, 1, 2], [3, 4, 5, 6], custom=bytes(flexbuffers.Dumps(options)))
    return file(Graph([*given, boxes, *results], [op], [0, 1], [3, 4, 5, 6])), data
