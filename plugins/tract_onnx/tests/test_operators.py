"""Operators against ONNX Runtime, above all the older versions of them, which the backend tests do not have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_check import assert_close, expected, run, single, with_output_types

RANDOM = np.random.default_rng(0)


def f32(*shape, low=-2.0, high=2.0):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


@dataclass
class Op:
    """One node. ``fixed``: inputs that are constants. ``symbolic``: whether it is also run with symbolic sizes."""

    op_type: str
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 17
    fixed: tuple[int, ...] = ()
    outputs: int = 1
    symbolic: bool = True
    label: str = ""

    def __str__(self):
        return "-".join(filter(None, [self.op_type, str(self.opset), self.label]))


X = f32(2, 3, 4)
IMAGE = f32(1, 4, 7, 6)

CASES = [
    # element-wise
    *(Op(name, [f32(2, 3, low=0.1, high=0.9)]) for name in ("Acos", "Asin", "Atanh", "Log", "Sqrt", "Reciprocal")),
    *(
        Op(name, [X])
        for name in ("Abs", "Atan", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Round", "Sigmoid", "Sign")
    ),
    *(Op(name, [X]) for name in ("Sin", "Sinh", "Tan", "Tanh", "Relu", "Elu", "Selu", "Celu", "Softplus", "Softsign")),
    *(Op(name, [X]) for name in ("HardSigmoid", "HardSwish", "LeakyRelu", "ThresholdedRelu", "Shrink")),
    Op("Mish", [X], opset=18),
    Op("Elu", [X], {"alpha": 0.3}, label="alpha"),
    Op("Celu", [X], {"alpha": 0.3}, label="alpha"),
    Op("Relu", [f32(3).astype(np.float64)], label="f64"),
    Op("PRelu", [X, f32(3, 1)], fixed=(1,)),
    Op("Clip", [X], {"min": -0.5, "max": 0.25}, opset=10),
    Op("Clip", [X, np.float32(-0.5), np.float32(0.25)], opset=13, fixed=(1, 2)),
    Op("Clip", [X, None, np.float32(0.25)], opset=13),
    Op("Gelu", [X], opset=20),
    Op("Gelu", [X], {"approximate": "tanh"}, opset=20, label="tanh"),
    Op("IsInf", [np.array([1, np.inf, -np.inf, np.nan], np.float32)], {"detect_negative": 0}),
    Op("IsNaN", [np.array([1, np.inf, np.nan], np.float32)]),
    Op("Dropout", [X], {"ratio": 0.3}, opset=10),
    Op("Dropout", [X, np.float32(0.3)], opset=13, fixed=(1,), outputs=2),
    Op("Identity", [X]),
    Op("Cast", [X], {"to": TensorProto.INT32}),
    Op("Cast", [X], {"to": TensorProto.BOOL}, label="bool"),
    # binary
    *(Op(name, [f32(2, 1, 4), f32(3, 1)]) for name in ("Add", "Sub", "Mul", "Div", "Less", "Greater", "Max", "Min")),
    Op("Div", [i64(7, -7, 7, -7), i64(2, 2, -2, -2)], label="i64"),
    Op("Mod", [i64(7, -7, 7, -7), i64(3, 3, -3, -3)]),
    Op("Mod", [f32(4), f32(4)], {"fmod": 1}, label="fmod"),
    Op("Pow", [f32(3, low=0.1), np.array([2, 3, 0], np.int64)]),
    Op("Pow", [np.array([2, 3, 4], np.int32), np.array([2.0, 0.5, 2.0], np.float32)], label="int_float"),
    Op("BitShift", [np.array([1, 2, 255], np.uint8), np.array([1, 3, 4], np.uint8)], {"direction": "LEFT"}),
    Op("Sum", [f32(2, 3), f32(3), f32(2, 1)]),
    Op("Mean", [f32(2, 3), f32(3)]),
    Op("Where", [np.array([[True], [False]]), f32(3), f32(2, 1)]),
    Op("And", [np.array([True, False]), np.array([[True], [False]])]),
    Op("Equal", [i64(1, 2, 3), i64(1, 0, 3)]),
    # axes
    Op("Reshape", [X, i64(0, -1)], fixed=(1,)),
    Op("Reshape", [X, i64(4, 6)], label="computed"),
    Op("Reshape", [X, i64(2, -1, 2)], label="left_over"),
    Op("Transpose", [X]),
    Op("Transpose", [f32(2, 3, 4, 5)], {"perm": [2, 0, 3, 1]}, label="perm"),
    Op("Squeeze", [f32(1, 3, 1)], {"axes": [0]}, opset=11),
    Op("Squeeze", [f32(1, 3, 1), i64(-1)], fixed=(1,)),
    Op("Squeeze", [f32(1, 3, 1)], label="all", symbolic=False),
    Op("Unsqueeze", [X], {"axes": [0, 4]}, opset=11),
    Op("Unsqueeze", [X, i64(-1, 0)], fixed=(1,)),
    Op("Flatten", [X], {"axis": 2}),
    Op("Flatten", [X], {"axis": -3}, label="negative"),
    Op("DepthToSpace", [f32(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}),
    Op("SpaceToDepth", [f32(1, 2, 4, 6)], {"blocksize": 2}),
    Op("Shape", [X], {"start": -2}),
    Op("Size", [X]),
    Op("Expand", [f32(3, 1), i64(2, 1, 4)], fixed=(1,)),
    Op("Expand", [f32(3, 1), i64(2, 1, 4)], label="computed", symbolic=False),
    Op("ConstantOfShape", [i64(2, 3)], symbolic=False),
    Op("Range", [np.int64(3), np.int64(11), np.int64(2)]),
    Op("Range", [np.float32(0.5), np.float32(-2), np.float32(-0.75)], label="f32"),
    Op("EyeLike", [f32(3, 4)], {"k": 1}),
    Op("Tile", [f32(2, 3), i64(2, 1)], fixed=(1,)),
    Op("Tile", [f32(2, 3), i64(2, 3)], label="computed"),
    # parts
    Op("Concat", [f32(2, 3), f32(2, 1), f32(2, 2)], {"axis": -1}),
    Op("Slice", [X], {"starts": [0, -3], "ends": [1, 1000], "axes": [0, 2]}, opset=9),
    Op("Slice", [X, i64(3, 1), i64(-100, 3), i64(2, 1), i64(-1, 1)], fixed=(1, 2, 3, 4)),
    Op("Slice", [X, i64(1, 1), i64(2, 4), i64(1, 2)], fixed=(3,), label="computed"),
    Op("Slice", [X, i64(-1), i64(-9), i64(2), i64(-2)], fixed=(3, 4), label="backwards_computed"),
    # Where a slice that goes backwards starts before the first element, NumPy takes nothing.
    Op("Slice", [X, i64(-9), i64(-99), i64(2), i64(-1)], fixed=(1, 2, 3, 4), label="from_before_the_first"),
    Op("Slice", [X, i64(-9), i64(-99), i64(2), i64(-1)], fixed=(3, 4), label="from_before_the_first_computed"),
    Op("Slice", [X, i64(-9), i64(-99), i64(2), i64(-1)], fixed=(3,), label="from_before_the_first_all_computed"),
    Op("Split", [f32(6, 2)], {"axis": 0}, opset=11, outputs=3),
    Op("Split", [f32(6, 2)], {"axis": 0, "split": [1, 2, 3]}, opset=11, outputs=3, label="sizes", symbolic=False),
    Op("Split", [f32(2, 6), i64(2, 4)], {"axis": 1}, fixed=(1,), outputs=2, symbolic=False),
    Op("Split", [f32(2, 7)], {"axis": 1, "num_outputs": 3}, opset=18, outputs=3),
    Op("Pad", [X], {"pads": [0, 1, 0, 2, 0, 1], "value": 3.0}, opset=10),
    Op("Pad", [X, i64(0, 1, 1, 0, 0, 2)], {"mode": "reflect"}, fixed=(1,)),
    Op("Pad", [X, i64(0, 1, 0, 0, 0, 2), np.float32(1.5)], label="computed"),
    Op("Pad", [X, i64(0, -1, 0, 0, 0, 2)], fixed=(1,), label="negative"),
    Op("Pad", [X, i64(1, 2), np.float32(1.5), i64(-1)], opset=18, fixed=(1, 3)),
    # gather and scatter
    Op("Gather", [X, np.array([[0, -1], [2, 1]])], {"axis": 1}),
    Op("GatherElements", [f32(3, 4), np.array([[0, -1, 2], [1, 1, 0]])], {"axis": 0}, symbolic=False),
    Op("GatherND", [f32(2, 3, 4), np.array([[1, 2], [0, -1]])], symbolic=False),
    Op("GatherND", [f32(2, 3, 4), np.array([[1], [2]])], {"batch_dims": 1}, label="batch", symbolic=False),
    Op("ScatterElements", [f32(3, 4), np.array([[0, 2]]), f32(1, 2)], {"axis": 1}),
    Op("ScatterElements", [f32(3), i64(0, 0, 2), f32(3)], {"reduction": "add"}, opset=16, label="add"),
    Op("ScatterND", [f32(3, 4), np.array([[0], [2]]), f32(2, 4)], symbolic=False),
    Op("OneHot", [i64(0, 3, -1), np.int64(5), np.array([0.5, 2], np.float32)], fixed=(2,)),
    Op("OneHot", [i64(0, 3), np.int64(5), np.array([0, 1], np.float32)], {"axis": 0}, fixed=(1, 2), label="axis"),
    Op("TopK", [X], {"k": 2}, opset=9, outputs=2),
    Op("TopK", [X, i64(2)], {"axis": 1}, opset=10, fixed=(1,), outputs=2),
    Op("TopK", [X, i64(2)], {"largest": 0}, opset=11, outputs=2),
    Op("Trilu", [f32(2, 4, 5)], {"upper": 0}),
    Op("Trilu", [f32(4, 5), np.int64(-1)]),
    Op("CumSum", [X, np.int64(1)], {"reverse": 1}, fixed=(1,)),
    Op("CumSum", [X, np.int64(-1)], {"exclusive": 1}, fixed=(1,), label="exclusive"),
    Op("NonZero", [np.array([[1, 0, 2], [0, 0, 3]], np.float32)]),
    Op("Compress", [X, np.array([True, False, True])], {"axis": 1}),
    Op("Compress", [X, np.array([True, False, True])], label="flat"),
    # reductions
    *(
        Op(f"Reduce{name}", [f32(2, 3, 4, low=0.1)], {"axes": [0, -1]}, opset=11)
        for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    ),
    Op("ReduceSum", [X, i64(1)], {"keepdims": 0}, fixed=(1,)),
    Op("ReduceSum", [X], {"noop_with_empty_axes": 1}, label="idle"),
    Op("ReduceMean", [X, i64(-1)], opset=18, fixed=(1,)),
    Op("ReduceMax", [np.array([[1, 5], [7, 3]], np.int32)], {"axes": [1], "keepdims": 0}, opset=13),
    Op("ReduceL2", [np.array([[1, 5], [7, 3]], np.float64)], opset=13, label="all"),
    Op("ArgMax", [np.array([[1, 5, 5], [7, 3, 7]], np.float32)], {"axis": 1}),
    Op("ArgMin", [np.array([[1, 5, 1], [7, 3, 3]], np.float32)], {"axis": 1, "keepdims": 0, "select_last_index": 1}),
    # normalisation
    Op("Softmax", [X], {"axis": 1}, opset=11),
    Op("Softmax", [X], opset=13),
    Op("LogSoftmax", [X], {"axis": 1}, opset=11),
    Op("LogSoftmax", [X], {"axis": 0}, opset=13),
    Op("Hardmax", [X], {"axis": 1}, opset=11, symbolic=False),
    Op("Hardmax", [X], opset=13),
    Op("BatchNormalization", [IMAGE, f32(4), f32(4), f32(4), f32(4, low=0.2)], opset=9, fixed=(1, 2, 3, 4)),
    Op("BatchNormalization", [f32(2, 4), f32(4), f32(4), f32(4), f32(4, low=0.2)], {"epsilon": 0.1}, opset=15),
    Op("InstanceNormalization", [f32(3, 4, 5) * np.arange(1, 4, dtype=np.float32)[:, None, None], f32(4), f32(4)]),
    Op("LayerNormalization", [X, f32(4), f32(4)]),
    Op("LayerNormalization", [X, f32(3, 4)], {"axis": 1, "epsilon": 0.01}, outputs=3, label="statistics"),
    Op("LRN", [IMAGE], {"size": 3, "alpha": 0.5, "beta": 0.6, "bias": 1.5}),
    Op("LpNormalization", [X], {"p": 1, "axis": 1}),
    Op("MeanVarianceNormalization", [IMAGE], opset=13),
    # products
    Op("MatMul", [f32(2, 3, 4), f32(4, 5)]),
    Op("MatMul", [f32(4), f32(2, 4, 5)], label="vector"),
    Op("MatMul", [f32(4), f32(4)], label="dot"),
    Op("Gemm", [f32(4, 3), f32(5, 4), f32(5)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
    Op("Gemm", [f32(3, 4), f32(4, 5)], label="no_bias"),
    Op("Einsum", [f32(2, 3, 4), f32(2, 4, 5)], {"equation": "bij, bjk -> bik"}),
    Op("Einsum", [f32(3, 3)], {"equation": "ii->i"}, label="diagonal"),
    Op("Einsum", [f32(2, 3, 4), f32(4, 3)], {"equation": "...ij,ji"}, label="implicit"),
    Op("MatMulInteger", [RANDOM.integers(0, 255, (2, 4), np.uint8), RANDOM.integers(-9, 9, (4, 3), np.int8)]),
    # spatial
    Op("Conv", [IMAGE, f32(5, 4, 3, 2), f32(5)], {"pads": [1, 0, 2, 1], "strides": [2, 1]}, fixed=(1, 2)),
    Op("Conv", [IMAGE, f32(6, 2, 3, 3)], {"group": 2, "dilations": [2, 1]}, fixed=(1,), label="group"),
    Op("Conv", [f32(2, 3, 9), f32(4, 3, 3)], {"auto_pad": "SAME_LOWER", "strides": [2]}, fixed=(1,), label="1d"),
    Op("Conv", [f32(1, 2, 4, 4, 4), f32(3, 2, 2, 2, 2)], fixed=(1,), label="3d"),
    Op("ConvTranspose", [IMAGE, f32(4, 3, 3, 3), f32(3)], {"strides": [2, 2], "output_padding": [1, 1]}, fixed=(1, 2)),
    Op("ConvTranspose", [IMAGE, f32(4, 3, 3, 2)], {"group": 2, "pads": [1, 0, 0, 1]}, fixed=(1,), label="group"),
    Op(
        "ConvTranspose", [f32(1, 2, 5), f32(2, 3, 4)], {"strides": [3], "output_shape": [14]}, fixed=(1,), label="shape"
    ),
    Op("MaxPool", [IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 0]}),
    Op("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, label="ceil"),
    Op("MaxPool", [IMAGE], {"kernel_shape": [2, 2]}, outputs=2, label="places"),
    Op("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    Op("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}, label="same"),
    Op("LpPool", [IMAGE], {"kernel_shape": [2, 3], "p": 3}),
    Op("GlobalAveragePool", [IMAGE]),
    Op("GlobalMaxPool", [IMAGE]),
    Op("GlobalLpPool", [IMAGE]),
    Op("Upsample", [IMAGE], {"scales": [1.0, 1.0, 2.0, 1.5]}, opset=7, symbolic=False),
    Op("Upsample", [IMAGE, np.array([1, 1, 2, 3], np.float32)], {"mode": "linear"}, opset=9, fixed=(1,)),
    Op("Resize", [IMAGE, np.array([1, 1, 0.6, 2], np.float32)], opset=10, fixed=(1,)),
    Op("Resize", [IMAGE, None, np.array([1, 1, 1.5, 2], np.float32)], {"mode": "linear"}, opset=13, fixed=(2,)),
    Op("Resize", [IMAGE, None, None, i64(1, 4, 9, 5)], {"mode": "cubic"}, opset=13, fixed=(3,), label="sizes"),
    Op(
        "Resize",
        [IMAGE, None, None, i64(1, 4, 14, 12)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        opset=13,
        label="computed",
    ),
    Op("GridSample", [f32(1, 2, 4, 5), f32(1, 3, 3, 2, low=-1.1, high=1.1)], {"align_corners": 1}, opset=16),
    # quantisation
    Op("QuantizeLinear", [X, np.float32(0.05), np.uint8(30)], opset=13, fixed=(1, 2)),
    Op("QuantizeLinear", [X, f32(3, low=0.02, high=0.1), np.array([1, 2, 3], np.int8)], opset=13, label="axis"),
    Op("DequantizeLinear", [RANDOM.integers(0, 255, (2, 3), np.uint8), np.float32(0.1), np.uint8(7)], opset=13),
    Op("DynamicQuantizeLinear", [X], opset=13, outputs=3),
    Op(
        "ConvInteger",
        [RANDOM.integers(0, 255, (1, 2, 5, 5), np.uint8), RANDOM.integers(0, 9, (3, 2, 3, 3), np.uint8), np.uint8(9)],
        {"pads": [1, 1, 1, 1]},
        fixed=(1,),
    ),
]


def model_of(case, symbolic):
    return single(
        case.op_type,
        case.inputs,
        opset=case.opset,
        fixed=case.fixed,
        outputs=case.outputs,
        symbolic=symbolic,
        **case.attributes,
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_onnxruntime(case):
    model, inputs = model_of(case, symbolic=False)
    wanted = expected(with_output_types(model), inputs)
    for symbolic in (False, True) if case.symbolic else (False,):
        tried, _ = model_of(case, symbolic)
        for declutter in (False, True):
            assert_close(run(tried, inputs, declutter=declutter), wanted)


RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", RECURRENT)
def test_recurrent_networks(op_type, direction):
    gates, directions, hidden = RECURRENT[op_type], 1 + (direction == "bidirectional"), 5
    x = f32(6, 2, 3)
    weights = [
        f32(directions, gates * hidden, 3),
        f32(directions, gates * hidden, hidden),
        f32(directions, 2 * gates * hidden),
    ]
    states = [f32(directions, 2, hidden)] * (2 if op_type == "LSTM" else 1)
    outputs = 3 if op_type == "LSTM" else 2
    for extra in ([], [None, *states]):
        inputs = [x, *weights, *extra]
        model, given = single(
            op_type, inputs, fixed=(1, 2, 3), outputs=outputs, direction=direction, hidden_size=hidden
        )
        wanted = expected(with_output_types(model), given)
        for declutter in (False, True):
            assert_close(run(model, given, declutter=declutter), wanted)


def test_gru_with_the_reset_gate_after_the_product():
    inputs = [f32(4, 2, 3), f32(1, 15, 3), f32(1, 15, 5), f32(1, 30)]
    model, given = single("GRU", inputs, fixed=(1, 2, 3), outputs=2, hidden_size=5, linear_before_reset=1)
    assert_close(run(model, given), expected(with_output_types(model), given))


def test_lstm_with_items_of_different_lengths():
    inputs = [f32(4, 2, 3), f32(1, 20, 3), f32(1, 20, 5), f32(1, 40), np.array([4, 2], np.int32)]
    model, given = single("LSTM", inputs, fixed=(1, 2, 3), outputs=3, hidden_size=5)
    assert_close(run(model, given), expected(with_output_types(model), given))


def test_an_input_that_is_left_out_in_the_middle():
    resize = helper.make_node("Resize", ["x0", "", "x2"], ["y0"], mode="nearest")
    assert list(resize.input) == ["x0", "", "x2"]
    model, given = single("Resize", [IMAGE, None, np.array([1, 1, 2, 2], np.float32)], opset=13, fixed=(2,))
    assert run(model, given)[0].shape == (1, 4, 14, 12)
