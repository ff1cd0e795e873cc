"""ONNX nodes that the established engine writes as archives, read here, and from here read there again."""

from __future__ import annotations

from typing import Any

import established
import numpy as np
import onnx
import pytest
from documents import run
from established import interchange
from onnx_node import onnx_model, onnx_run

import tract_core as tract

RNG = np.random.default_rng(12)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def integers(kind: Any, *shape: int) -> np.ndarray[Any, Any]:
    ends = np.iinfo(kind)
    return RNG.integers(ends.min, ends.max, shape, dtype=kind, endpoint=True)


def scalar(kind: Any, value: float) -> np.ndarray[Any, Any]:
    return np.array(value, kind)


U8, I8, I32, F32 = np.uint8, np.int8, np.int32, np.float32
QUANTIZED = {
    "x": integers(U8, 2, 4, 7),
    "w": integers(I8, 4, 4, 3) // 2,  # seven bits: with AVX2 and no more, ONNX Runtime's sums saturate in i16
    "bias": integers(I32, 4) // (1 << 20),
}

NODES = {
    "conv": ("Conv", [floats(2, 3, 7, 8)], [floats(4, 3, 3, 2), floats(4)], {}),
    "conv padded": (
        "Conv",
        [floats(1, 3, 7, 8)],
        [floats(4, 3, 3, 2)],
        {"pads": [1, 0, 1, 2], "strides": [2, 1], "dilations": [1, 2]},
    ),
    "conv same": ("Conv", [floats(1, 3, 8, 9)], [floats(4, 3, 3, 2)], {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    "conv same lower": ("Conv", [floats(1, 3, 8, 9)], [floats(4, 3, 3, 2)], {"auto_pad": "SAME_LOWER"}),
    "conv groups": ("Conv", [floats(1, 4, 9)], [floats(6, 2, 3)], {"group": 2}),
    "conv depthwise": ("Conv", [floats(1, 3, 9)], [floats(3, 1, 3), floats(3)], {"group": 3}),
    "conv 3d": ("Conv", [floats(1, 2, 4, 5, 3)], [floats(3, 2, 2, 1, 2)], {}),
    "deconv": (
        "ConvTranspose",
        [floats(2, 3, 5, 4)],
        [floats(3, 4, 3, 3), floats(4)],
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 0]},
    ),
    "deconv groups": ("ConvTranspose", [floats(1, 4, 6)], [floats(4, 3, 3)], {"strides": [2], "group": 2}),
    "max": ("MaxPool", [floats(2, 3, 7, 8)], [], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    "max same": ("MaxPool", [floats(2, 3, 8)], [], {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
    "mean": ("AveragePool", [floats(1, 3, 7, 8)], [], {"kernel_shape": [3, 2], "pads": [2, 0, 1, 1]}),
    "mean of padding": (
        "AveragePool",
        [floats(1, 3, 7, 8)],
        [],
        {"kernel_shape": [3, 2], "pads": [2, 0, 1, 1], "count_include_pad": 1},
    ),
    "product": ("MatMul", [floats(5, 7, 8), floats(8, 3)], [], {}),
    "product of batches": ("MatMul", [floats(2, 3, 4, 5), floats(2, 3, 5, 6)], [], {}),
    "product broadcast": ("MatMul", [floats(2, 1, 4, 5), floats(3, 5, 6)], [], {}),
    "gemm": ("Gemm", [floats(3, 8)], [floats(4, 8), floats(4)], {"transB": 1, "alpha": 0.5}),
    "einsum": ("Einsum", [floats(2, 3, 4, 5), floats(2, 6, 3, 5)], [], {"equation": "bhqd,bkhd->bhqk"}),
    "resize": (
        "Resize",
        [floats(1, 2, 3, 4)],
        [np.zeros(0, F32), np.array([1, 1, 2, 3], F32)],
        {"mode": "linear"},
    ),
    "quantised conv": (
        "QLinearConv",
        [QUANTIZED["x"]],
        [
            scalar(F32, 0.125),
            scalar(U8, 3),
            QUANTIZED["w"],
            scalar(F32, 0.5),
            scalar(I8, 1),
            scalar(F32, 64),
            scalar(U8, 7),
            QUANTIZED["bias"],
        ],
        {"pads": [1, 1]},
    ),
    "integer conv": (
        "ConvInteger",
        [QUANTIZED["x"]],
        [QUANTIZED["w"], scalar(U8, 3), scalar(I8, 1)],
        {"pads": [1, 1]},
    ),
    "integer product": (
        "MatMulInteger",
        [integers(U8, 4, 3), integers(I8, 3, 2)],
        [scalar(U8, 3), scalar(I8, 1)],
        {},
    ),
    "quantised product": (
        "QLinearMatMul",
        [integers(U8, 5, 4)],
        [
            scalar(F32, 0.125),
            scalar(U8, 3),
            integers(I8, 4, 3),
            scalar(F32, 0.5),
            scalar(I8, 1),
            scalar(F32, 16),
            scalar(U8, 7),
        ],
        {},
    ),
}


@interchange
@pytest.mark.parametrize("name", NODES)
def test_what_is_written_there_means_the_same_here(name, tmp_path) -> None:
    op_type, inputs, constants, attributes = NODES[name]
    model = onnx_model(op_type, inputs, constants=constants, **attributes)
    onnx.save(model, tmp_path / "m.onnx")
    established.write(tmp_path / "m.onnx", tmp_path / "theirs")
    expected = onnx_run(model, inputs)
    ours = tract.load(tmp_path / "theirs")
    np.testing.assert_allclose(run(ours.clone(), *inputs), expected, rtol=1e-4, atol=1e-4)
    ours.save(tmp_path / "ours.tar", format_name="nnef")
    (there,) = established.run(tmp_path / "ours.tar", inputs)
    atol = 1e-4 if expected.dtype == F32 else 1  # the established engine rounds in fixed point
    np.testing.assert_allclose(there, expected, rtol=1e-4, atol=atol)
