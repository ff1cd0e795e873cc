"""What custom operators say: read right, and refused where it is damaged."""

from __future__ import annotations

import numpy as np
import pytest
from lite_files import content_of, opened, operators
from tract_tensorflow.tflite.flexbuffer import read_map

from tract_core.errors import CorruptModel, LimitExceeded, ModelError


def said(family: str, case: str) -> bytes:
    return operators(opened(content_of(family, case)))[0].numbers("custom_options").tobytes()


DETECTION = said("detection", "regular True background 0 classes of a box 1")
MATRIX = said("mediapipe", "matrix of landmarks turned to 0.0")


def read(content: bytes) -> object:
    return dict(read_map(np.frombuffer(content, np.uint8)))


def test_numbers_truth_values_and_lists() -> None:
    assert read(DETECTION) == {
        "max_detections": 6, "max_classes_per_detection": 1, "detections_per_class": 100, "use_regular_nms": True,
        "nms_score_threshold": 0.15, "nms_iou_threshold": 0.6, "num_classes": 3, "y_scale": 10.0, "x_scale": 10.0,
        "h_scale": 5.0, "w_scale": 5.0,
    }  # fmt: skip
    found = read(MATRIX)
    assert isinstance(found, dict)
    assert found["subset_idxs"] == [0, 3, 4, 8, 2, 2]
    assert read(b"") == {}


@pytest.mark.parametrize("content", [DETECTION, MATRIX], ids=["detection", "matrix"])
def test_a_damaged_map_is_refused_or_says_something_else(content: bytes) -> None:
    refused = 0
    for place in range(len(content)):
        for byte in (0, 1, 0x7F, 0xFF, content[place] ^ 4):
            try:
                read(content[:place] + bytes([byte]) + content[place + 1 :])
            except ModelError:
                refused += 1
        try:
            read(content[:place])
        except ModelError:
            refused += 1
    assert refused > len(content)


def test_a_list_in_itself_ends() -> None:
    # one element at byte 1, a list whose element is the list
    with pytest.raises(LimitExceeded, match="too deep, or too many"):
        read(b"\x01\x00" + bytes([10 << 2]) + b"\x02" + bytes([10 << 2, 1]))


def test_what_is_no_map_is_refused() -> None:
    with pytest.raises(CorruptModel, match="are int, wanted a map"):
        read(bytes([7, 1 << 2, 1]))
    with pytest.raises(CorruptModel, match="have 2 bytes"):
        read(b"\x01\x02")
    with pytest.raises(CorruptModel, match="is of type 63"):
        read(bytes([0, 63 << 2, 1]))
