"""Attributes and parameters that make no sense, one operator after the other."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_hostile import any_info, gives, model_of, node, refused, tensor_info, tried

pytestmark = pytest.mark.hostile

BIG, LOW, NAN, INF = (1 << 63) - 1, -(1 << 63), float("nan"), float("inf")
IMAGE = [1, 2, 5, 5]


def one(op_type, shapes, constants=(), *, opset=17, kinds=None, outputs=1, **attributes):
    """One node. ``shapes``: of its inputs; ``constants``: the values of those after them, ``None`` for one left out."""
    names = [f"x{index}" for index in range(len(shapes))]
    fixed = [(f"c{index}" if value is not None else "", value) for index, value in enumerate(constants)]
    kinds = kinds or [1] * len(shapes)
    results = [f"y{index}" if index else "y" for index in range(outputs)]
    return model_of(
        [helper.make_node(op_type, [*names, *(name for name, _ in fixed)], results, **attributes)],
        [tensor_info(name, shape, kind) for name, shape, kind in zip(names, shapes, kinds, strict=True)],
        results,
        [numpy_helper.from_array(np.asarray(value), name) for name, value in fixed if value is not None],
        opset=opset,
    )


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


WINDOWS = [
    *({"strides": [value, 1]} for value in (0, -1, LOW)),
    *({"dilations": [value, 1]} for value in (0, -1, LOW)),
    *({"pads": pads} for pads in ([-1, 0, 0, 0], [BIG, BIG, 0, 0], [0], [0] * 6, [LOW, 0, 0, 0])),
    {"strides": [1]},
    {"strides": [1, 1, 1]},
    {"dilations": [1]},
    {"auto_pad": "SAME"},
    {"auto_pad": "x" * 10_000},
    {"kernel_shape": [0, 3]},
    {"kernel_shape": [-3, 3]},
    {"kernel_shape": [3, 3, 3]},
    {"dilations": [BIG, 1]},
    {"kernel_shape": [BIG, BIG]},
]


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("attributes", WINDOWS, ids=str)
def test_windows(op_type, attributes):
    """CVE-2022-21741 and its kin: strides, dilations and kernels that are zero, negative or immense."""
    attributes = {"kernel_shape": [3, 3], **attributes}
    is_pool = op_type.endswith("Pool")
    refused(one(op_type, [IMAGE], () if is_pool else (np.ones((2, 2, 3, 3), np.float32),), **attributes))


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("group", [0, -1, 3, BIG, LOW])
def test_groups(op_type, group):
    refused(one(op_type, [IMAGE], (np.ones((2, 2, 3, 3), np.float32),), group=group))


REFUSED = {
    "Conv, a kernel without elements": one("Conv", [IMAGE], (np.ones((2, 2, 0, 3), np.float32),)),
    "Conv, a kernel without channels": one("Conv", [IMAGE], (np.ones((2, 0, 3, 3), np.float32),)),
    "Conv, a kernel of other channels": one("Conv", [IMAGE], (np.ones((2, 3, 3, 3), np.float32),)),
    "ConvTranspose, a kernel of unknown sizes": one("ConvTranspose", [IMAGE, [2, 2, "K", "K"]], kernel_shape=[3]),
    "ConvTranspose, a kernel of another rank": one(
        "ConvTranspose", [[1, 3, 3]], (np.ones((3, 2, 3, 3), np.float32),), output_shape=[10, 8]
    ),
    "NonMaxSuppression of booleans": one("NonMaxSuppression", [[1, 3, 4], [1, 1, 3]], kinds=[1, 9]),
    "Resize, a factor that is no list": one("Resize", [[2, 2]], (None, np.float32(2))),
    "Conv, a kernel of rank 1": one("Conv", [IMAGE], (np.ones(3, np.float32),)),
    "Conv, a bias of another size": one("Conv", [IMAGE], (np.ones((2, 2, 3, 3), np.float32), floats(1, 2, 3))),
    "Conv, a kernel larger than the image": one("Conv", [IMAGE], (np.ones((2, 2, 9, 9), np.float32),)),
    "ConvTranspose, negative output padding": one(
        "ConvTranspose", [IMAGE], (np.ones((2, 2, 3, 3), np.float32),), output_padding=[-1, -1]
    ),
    "ConvTranspose, a shape of another rank": one(
        "ConvTranspose", [IMAGE], (np.ones((2, 2, 3, 3), np.float32),), output_shape=[1]
    ),
    "Transpose, twice the same": one("Transpose", [[2, 3]], perm=[0, 0]),
    "Transpose, outside": one("Transpose", [[2, 3]], perm=[0, 2]),
    "Transpose, negative": one("Transpose", [[2, 3]], perm=[0, -1]),
    "Transpose, too short": one("Transpose", [[2, 3]], perm=[0]),
    "Transpose, too long": one("Transpose", [[2, 3]], perm=[0, 1, 2]),
    "Transpose, immense": one("Transpose", [[2, 3]], perm=[BIG, LOW]),
    **{
        f"{op_type}, axis {axis}": one(op_type, [[2, 3]], axis=axis)
        for op_type in ("Softmax", "LogSoftmax", "Hardmax", "Flatten", "ArgMax", "LpNormalization", "Split", "Unique")
        for axis in (3, -4, BIG, LOW)
    },
    **{f"Concat, axis {axis}": one("Concat", [[2, 3], [2, 3]], axis=axis) for axis in (2, -3, BIG)},
    "Concat, without an axis": one("Concat", [[2, 3]]),
    "Concat, other sizes": one("Concat", [[2, 3], [3, 4]], axis=0),
    "Concat, other ranks": one("Concat", [[2, 3], [2]], axis=0),
    "Concat, nothing": model_of([node("Concat", [], axis=0)], []),
    **{f"Gather, axis {axis}": one("Gather", [[2, 3]], (ints(0),), axis=axis) for axis in (2, -3, BIG)},
    "Gather, indices that are floats": one("Gather", [[2, 3]], (floats(0),)),
    "GatherElements, other ranks": one("GatherElements", [[2, 3]], (ints(0),)),
    "GatherND, too many indices": one("GatherND", [[2, 3]], (ints(0, 0, 0),)),
    "GatherND, batch_dims": one("GatherND", [[2, 3]], (ints(0),), batch_dims=5),
    "ScatterElements, other ranks": one("ScatterElements", [[2, 3]], (ints(0), floats(1))),
    "ScatterElements, reduction": one("ScatterElements", [[3]], (ints(0), floats(1)), opset=18, reduction="evil"),
    "ScatterND, other shapes": one("ScatterND", [[2, 3]], (ints(0), floats(1, 2))),
    "Split, sizes that do not add up": one("Split", [[4]], (ints(1, 2),), outputs=2),
    "Split, a negative size": one("Split", [[4]], (ints(-1, 5),), outputs=2),
    "Split, immense sizes": one("Split", [[4]], (ints(BIG, BIG),), outputs=2),
    "Split, more outputs than sizes": one("Split", [[4]], (ints(4),), outputs=2),
    "Split, no pieces": one("Split", [[4]], opset=18, num_outputs=0),
    "Split, negative pieces": one("Split", [[4]], opset=18, num_outputs=-1),
    "Split, immense pieces": one("Split", [[4]], opset=18, num_outputs=BIG),
    "Split, of no axes": one("Split", [[]]),
    "Slice, step 0": one("Slice", [[4]], (ints(0), ints(2), ints(0), ints(0))),
    "Slice, an axis outside": one("Slice", [[4]], (ints(0), ints(2), ints(1))),
    "Slice, an axis twice": one("Slice", [[4, 4]], (ints(0, 0), ints(2, 2), ints(0, 0))),
    "Slice, other lengths": one("Slice", [[4]], (ints(0, 1), ints(2))),
    "Slice, more than axes": one("Slice", [[4]], (ints(0, 1), ints(2, 2))),
    "Reshape, twice -1": one("Reshape", [[4]], (ints(-1, -1),)),
    "Reshape, another number": one("Reshape", [[4]], (ints(3),)),
    "Reshape, negative": one("Reshape", [[4]], (ints(-2, -2),)),
    "Reshape, immense": one("Reshape", [[4]], (ints(BIG, BIG),)),
    "Reshape, a 0 that copies nothing": one("Reshape", [[4]], (ints(4, 0),)),
    "Expand, negative": one("Expand", [[1]], (ints(-3),)),
    "Expand, another size": one("Expand", [[2]], (ints(3),)),
    "Tile, negative": one("Tile", [[2]], (ints(-1),)),
    "Tile, other lengths": one("Tile", [[2]], (ints(1, 2),)),
    "Pad, other lengths": one("Pad", [[2]], (ints(1, 2, 3),)),
    "Pad, more is cut than there is": one("Pad", [[2]], (ints(-3, 0),)),
    "Pad, immense": one("Pad", [[2]], (ints(BIG, BIG),)),
    "Pad, another mode": one("Pad", [[2]], (ints(1, 1),), mode="evil"),
    "Squeeze, a size that is not 1": one("Squeeze", [[2, 1]], (ints(0),)),
    "Squeeze, outside": one("Squeeze", [[2, 1]], (ints(2),)),
    "Unsqueeze, outside": one("Unsqueeze", [[2]], (ints(5),)),
    "Unsqueeze, twice": one("Unsqueeze", [[2]], (ints(0, 0),)),
    "Range, step 0": one("Range", [], (np.int64(0), np.int64(5), np.int64(0))),
    "Range, NaN": one("Range", [], (np.float32(0), np.float32(NAN), np.float32(1))),
    "Range, infinite": one("Range", [], (np.float32(0), np.float32(INF), np.float32(1))),
    "Range, other types": one("Range", [], (np.float32(0), np.int64(3), np.int64(1))),
    "TopK, more than there are": one("TopK", [[3]], (ints(4),), outputs=2),
    "TopK, negative": one("TopK", [[3]], (ints(-1),), outputs=2),
    "TopK, immense": one("TopK", [[3]], (ints(BIG),), outputs=2),
    "TopK, axis": one("TopK", [[3]], (ints(1),), outputs=2, axis=1),
    "OneHot, negative": one("OneHot", [], (ints(0), ints(-1), floats(0, 1))),
    "OneHot, no depth": one("OneHot", [], (ints(0), ints(), floats(0, 1))),
    "OneHot, two depths": one("OneHot", [], (ints(0), ints(1, 2), floats(0, 1))),
    "OneHot, three values": one("OneHot", [], (ints(0), ints(2), floats(0, 1, 2))),
    "OneHot, axis": one("OneHot", [], (ints(0), ints(2), floats(0, 1)), axis=5),
    "EyeLike, of three axes": one("EyeLike", [[2, 2, 2]]),
    "EyeLike, another type": one("EyeLike", [[2, 2]], dtype=99),
    "ConstantOfShape, negative": one("ConstantOfShape", [], (ints(-1),)),
    "ConstantOfShape, two values": one("ConstantOfShape", [], (ints(1),), value=numpy_helper.from_array(floats(1, 2))),
    **{f"Cast, to {to}": one("Cast", [[2]], to=to) for to in (0, -1, 99, BIG)},
    "Cast, to nothing": one("Cast", [[2]]),
    **{
        f"Resize, by {factor}": one("Resize", [[1, 1, 2, 2]], (floats(), floats(1, 1, factor, 2)))
        for factor in (0.0, -1.0, NAN, INF, -INF, 1e30)
    },
    **{f"Resize, to {size}": one("Resize", [[1, 1, 2, 2]], (None, None, ints(1, 1, size, 2))) for size in (0, -1, LOW)},
    "Resize, other lengths": one("Resize", [[1, 1, 2, 2]], (floats(), floats(2, 2))),
    "Resize, neither": one("Resize", [[1, 1, 2, 2]]),
    "Resize, mode": one("Resize", [[1, 1, 2, 2]], (floats(), floats(1, 1, 2, 2)), mode="evil"),
    "Resize, coordinates": one(
        "Resize", [[1, 1, 2, 2]], (floats(), floats(1, 1, 2, 2)), coordinate_transformation_mode="evil"
    ),
    **{
        f"Upsample, by {by}": one("Upsample", [[1, 1, 2, 2]], (floats(1, 1, by, 2),), opset=9) for by in (0.0, NAN, INF)
    },
    **{f"DepthToSpace, {size}": one("DepthToSpace", [[1, 4, 2, 2]], blocksize=size) for size in (0, -1, 3, BIG)},
    **{f"SpaceToDepth, {size}": one("SpaceToDepth", [[1, 4, 2, 2]], blocksize=size) for size in (0, -1, 3, BIG)},
    "MatMul, other sizes": one("MatMul", [[2, 3], [2, 3]]),
    "MatMul, of numbers": one("MatMul", [[], []]),
    "Gemm, three axes": one("Gemm", [[2, 3, 4], [4, 5]]),
    **{
        f"Einsum, {equation!r}": one("Einsum", [[2, 3]], equation=equation)
        for equation in ("", "ijk->i", "i->ij", "ij->k", "i.j->i", "ij->ii", "->->", "ij,jk->ik", "é->", "i" * 10_000)
    },
    "Einsum, nothing": model_of([node("Einsum", [], equation="->")], []),
    "BatchNormalization, other sizes": one("BatchNormalization", [IMAGE], (floats(1, 2, 3),) * 4),
    "InstanceNormalization, other sizes": one("InstanceNormalization", [IMAGE], (floats(1, 2, 3),) * 2),
    "GroupNormalization, no groups": one("GroupNormalization", [IMAGE], (floats(1, 1),) * 2, opset=21, num_groups=0),
    "GroupNormalization, three": one("GroupNormalization", [IMAGE], (floats(1, 1),) * 2, opset=21, num_groups=3),
    **{f"LRN, size {size}": one("LRN", [IMAGE], size=size) for size in (0, -1)},
    "LSTM, no hidden size": one("LSTM", [[3, 1, 2]], (np.ones((1, 0, 2), np.float32), np.ones((1, 0, 0), np.float32))),
    "LSTM, other sizes": one(
        "LSTM", [[3, 1, 2]], (np.ones((1, 12, 2), np.float32), np.ones((1, 8, 3), np.float32)), hidden_size=3
    ),
    "LSTM, direction": one(
        "LSTM",
        [[3, 1, 2]],
        (np.ones((1, 4, 2), np.float32), np.ones((1, 4, 1), np.float32)),
        hidden_size=1,
        direction="x",
    ),
    "GRU, activations": one(
        "GRU",
        [[3, 1, 2]],
        (np.ones((1, 3, 2), np.float32), np.ones((1, 3, 1), np.float32)),
        hidden_size=1,
        activations=["Evil", "Tanh"],
    ),
    "LabelEncoder, default": model_of(
        [
            node(
                "LabelEncoder",
                ["x"],
                domain="ai.onnx.ml",
                keys_tensor=numpy_helper.from_array(ints(1)),
                values_tensor=numpy_helper.from_array(np.array([1], np.uint16)),
            )
        ],
        [tensor_info("x", [2], 7)],
        more_opsets=[("ai.onnx.ml", 4)],
    ),
    "BatchNormalization, of integers": one(
        "BatchNormalization", [[1, 2, 3], [2], [2], [2], [2]], kinds=[7] * 5, epsilon=INF
    ),
    "STFT, a window of no axes": one("STFT", [[1, 9, 1], [], [], []], kinds=[1, 7, 1, 7]),
    "Reduce, axis": one("ReduceSum", [[2]], (ints(1),)),
    "Reduce, axis twice": one("ReduceSum", [[2, 2]], (ints(0, 0),)),
    "Reduce, axes that are floats": one("ReduceSum", [[2]], (floats(0),)),
    "CumSum, axis": one("CumSum", [[2]], (ints(1),)),
    "CumSum, an axis that is infinite": one("CumSum", [[2]], (floats(INF),)),
    "DFT, an axis that is infinite": one("DFT", [[1, 8, 1]], (None, floats(INF)), opset=20),
    "Pad, axes that are infinite": one("Pad", [[2]], (ints(1, 1), None, floats(INF)), opset=18),
    "Squeeze, axes that are infinite": one("Squeeze", [[1]], (floats(INF),)),
    "Unsqueeze, axes that are infinite": one("Unsqueeze", [[1]], (floats(INF),)),
    "Slice, axes that are infinite": one("Slice", [[2]], (ints(0), ints(1), floats(INF))),
    "Trilu, of one axis": one("Trilu", [[2]]),
    "DequantizeLinear, axis": one("DequantizeLinear", [[2, 3]], (floats(1, 2, 3),), kinds=[3], axis=5),
    "DequantizeLinear, sizes": one("DequantizeLinear", [[2, 3]], (floats(1, 2, 3, 4),), kinds=[3], axis=1),
    "RandomNormal, negative": one("RandomNormal", [], shape=[-1]),
    "RandomNormal, type": one("RandomNormal", [], shape=[1], dtype=7),
    "Multinomial, of three axes": one("Multinomial", [[1, 2, 3]]),
    "If, no branches": one("If", [[]], kinds=[9]),
    "Loop, no body": one("Loop", [[]], kinds=[7]),
    "Scan, no body": one("Scan", [[3]], num_scan_inputs=1),
    "MaxUnpool, other sizes": one("MaxUnpool", [[1, 1, 2, 2], [1, 1, 3, 3]], kinds=[1, 7], kernel_shape=[2, 2]),
    "GridSample, other ranks": one("GridSample", [IMAGE, [1, 2, 2, 3]], opset=20),
    "Identity, no input": model_of([node("Identity", [])], []),
    "Relu, three inputs": one("Relu", [[1], [1], [1]]),
}
MAY_BE_TAKEN = {"Relu, three inputs", "Resize, to 0", "LSTM, no hidden size"}
"""Where the standard does not forbid it: what comes of it is still bounded, and typed."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense(name):
    if name in MAY_BE_TAKEN:
        tried(REFUSED[name])
        return
    error = refused(REFUSED[name])
    assert "'y" in error.where or error.where == "model"


ODD = {
    "Slice beyond the ends": (one("Slice", [[4]], (ints(-100), ints(BIG))), [0, 1, 2, 3]),
    "Slice from the far end back": (one("Slice", [[4]], (ints(BIG), ints(LOW), ints(0), ints(-1))), [3, 2, 1, 0]),
    "Slice of nothing": (one("Slice", [[4]], (ints(3), ints(1))), []),
    "Slice in immense steps": (one("Slice", [[4]], (ints(0), ints(4), ints(0), ints(BIG))), [0]),
    "Tile by nothing": (one("Tile", [[4]], (ints(0),)), []),
    "Expand to nothing": (one("Expand", [[4]], (ints(1),)), [0, 1, 2, 3]),
    "Pad that cuts": (one("Pad", [[4]], (ints(-1, -1),)), [1, 2]),
    "TopK of none": (one("TopK", [[4]], (ints(0),), outputs=2), []),
    "Range of nothing": (one("Range", [], (np.int64(5), np.int64(0), np.int64(1))), []),
    "Concat of one": (one("Concat", [[4]], axis=-1), [0, 1, 2, 3]),
    "OneHot of indices outside": (
        one("OneHot", [], (ints(9, -9, -1), ints(2), floats(0, 1))),
        [[0, 0], [0, 0], [0, 1]],
    ),
    "Reshape of nothing": (
        one("Reshape", [], (np.zeros((0, 3), np.float32), ints(3, 0)), allowzero=1),
        np.zeros((3, 0)),
    ),
    "ConstantOfShape of no shape": (one("ConstantOfShape", [], (ints(),)), 0.0),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_and_right(name):
    model, wanted = ODD[name]
    arrays = [np.arange(4, dtype=np.float32)] * len(model.graph.input)
    for declutter in (False, True):
        np.testing.assert_array_equal(gives(model, arrays, declutter)[0], np.asarray(wanted))


SCHEMAS = sorted({(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas()})


@pytest.mark.parametrize("shape", [[], [0], [3], [2, 3, 4, 5], None], ids=str)
@pytest.mark.parametrize(("domain", "name"), SCHEMAS)
def test_every_operator_on_anything(domain, name, shape):
    """Every operator, with as many inputs as it takes, all of one shape, and no attributes."""
    schema = onnx.defs.get_schema(name, domain=domain)
    count = min(schema.max_input, 4)
    info = [tensor_info(f"x{index}", shape) if shape is not None else any_info(f"x{index}") for index in range(count)]
    given = helper.make_node(name, [one.name for one in info], ["y"], domain=domain)
    tried(model_of([given], info, opset=onnx.defs.onnx_opset_version(), more_opsets=[(domain, 1)] * bool(domain)))


@pytest.mark.parametrize("value", [0, -1, BIG, LOW])
@pytest.mark.parametrize(("domain", "name"), SCHEMAS)
def test_every_integer_attribute(domain, name, value):
    """Every attribute that is an integer, or a list of them, has that value."""
    schema = onnx.defs.get_schema(name, domain=domain)
    kinds = onnx.defs.OpSchema.AttrType
    attributes = {}
    for attribute in schema.attributes.values():
        if attribute.type == kinds.INT:
            attributes[attribute.name] = value
        elif attribute.type == kinds.INTS:
            attributes[attribute.name] = [value] * 2
    if not attributes:
        return
    info = [tensor_info(f"x{index}", [1, 2, 4, 4]) for index in range(min(schema.max_input, 3))]
    given = helper.make_node(name, [one.name for one in info], ["y"], domain=domain, **attributes)
    tried(model_of([given], info, opset=onnx.defs.onnx_opset_version(), more_opsets=[(domain, 1)] * bool(domain)))
