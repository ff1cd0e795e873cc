"""Files of one operator that are wrong, or that are not taken: what is said.

``tflite_refused.npz`` is made by ``making/refused.py``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import tract_core as tract
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported, UntypableModel

SAID: Final[dict[str, tuple[type[TractError], str]]] = {
    "two sizes left over": (UntypableModel, "'t2' (RESHAPE): [2,4,6] as [-1,-1]: -1 may stand for one size only"),
    "an axis twice": (UntypableModel, "axes [0, 0, 1] name one axis of 3 twice"),
    "axes left out": (UntypableModel, "an order of 2 axes is given for 2,4,6,f32"),
    "a stride of 0": (CorruptModel, "stride 1 of STRIDED_SLICE is 0"),
    "two ellipses": (CorruptModel, "STRIDED_SLICE has 2 parts, and 2 ellipses, for 3 axes"),
    "too many parts": (CorruptModel, "STRIDED_SLICE has 2 parts, and 0 ellipses, for 1 axes"),
    "fewer places than axes": (CorruptModel, "1 places are given for 2,4,6,f32"),
    "an axis outside": (UntypableModel, "axis 3 is outside a tensor of 3 axes"),
    "pieces that do not add up": (CorruptModel, "pieces of sizes ['1', '2'] of 2,4,6,f32, 2 outputs"),
    "pieces below nothing": (CorruptModel, "pieces of sizes ['5', '-2'] of 2,4,6,f32, 2 outputs"),
    "more outputs than places": (CorruptModel, "3 outputs are wanted of axis 0 of 2,4,6,f32"),
    "a block of nothing": (CorruptModel, "option 'block_size' of SPACE_TO_DEPTH is 0, wanted 1 or more"),
    "blocks that do not come out even": (UntypableModel, "an axis of 6 elements cannot be cut into 4 equal parts"),
    "blocks of nothing": (CorruptModel, "blocks [0, 1] and 2 pairs of ends are given for 1,4,6,2,f32"),
    "corners and halves": (Unsupported, "RESIZE_BILINEAR with both align_corners and half_pixel_centers"),
    "a pool without steps": (CorruptModel, "a stride is [0, 1], wanted 1 or more"),
    "shuffled weights": (Unsupported, "weights of FULLY_CONNECTED that are shuffled"),
    "one bit": (CorruptModel, "option 'num_bits' of FAKE_QUANT is 1, wanted 2 to 16"),
    "ends that are one": (CorruptModel, "option 'max' of FAKE_QUANT is 1, wanted a number above min, 1"),
    "no distance": (CorruptModel, "distances [1, 0, 1] are given for 2,4,6,f32"),
    "bytes that are too few": (UntypableModel, "BytesAs to f32 wants a last axis of size 4, found 2,3,u8"),
    "a large window": (LimitExceeded, "a window has 180000 elements, 4096 are allowed"),
    "windows joined by nothing": (Unsupported, "option 'reduce_function' of REDUCE_WINDOW is 'UNSUPPORTED'"),
    "axes that are computed": (Unsupported, "the axes of SUM must be known when the model is loaded"),
    "batches behind the axis": (CorruptModel, "GATHER along axis 0 has 2 axes of batches"),
    "boxes without a number": (Unsupported, "the most boxes of NON_MAX_SUPPRESSION_V4 must be known"),
    "a shape that is given": (Unsupported, "the shape of TRANSPOSE_CONV must be known when the model is loaded"),
    "another batch": (UntypableModel, "the data is 1,4,6,2,f32, wanted sizes 2,4,6,2"),
    "other steps": (
        Unsupported,
        "input 1 of CONCATENATION has the scale 0.2 and the zero point 0, the output 0.1 and 0",
    ),
    "a body of two operators": (Unsupported, "STABLEHLO_REDUCE by a graph of 2 operators, wanted one of two inputs"),
}
"""What each file is, and how it is refused."""


@pytest.mark.parametrize("label", SAID)
def test_refused(label: str) -> None:
    kind, said = SAID[label]
    with np.load(Path(__file__).parent / "tflite_refused.npz") as files:
        content = files[label].tobytes()
    with pytest.raises(kind, match=re.escape(said)):
        tract.load_bytes(content)


def test_all_are_looked_at() -> None:
    with np.load(Path(__file__).parent / "tflite_refused.npz") as files:
        assert set(files.files) == set(SAID)
