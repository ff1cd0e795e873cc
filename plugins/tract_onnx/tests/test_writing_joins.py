"""What ONNX has one operator for is written as that operator, where it computes the same, and only there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tract_onnx.writing.saver import OnnxWriter

import tract_core as tract

TYPES = {"f": TensorProto.FLOAT, "d": TensorProto.DOUBLE, "e": TensorProto.FLOAT16}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -80.0, 80.0, 3e38, -3e38]

Nodes = list[onnx.NodeProto]


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def file_of(nodes: Nodes, x: np.ndarray, shape: list[Any], held: dict[str, Any], opset: int = 18) -> onnx.ModelProto:
    """A file with one input x and one output y. ``shape``: of the input, as the file says it."""
    kind = TYPES[x.dtype.char]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def joined(file: onnx.ModelProto, opset: int = 21) -> onnx.ModelProto:
    model = tract.load_bytes(file.SerializeToString())
    found = onnx.load_from_string(OnnxWriter(opset=opset).to_bytes(model.typed))
    onnx.checker.check_model(found, full_check=True)
    return found


def outputs(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """As ONNX Runtime computes it, without any of its own changes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})  # pyright: ignore[reportReturnType]: tensors


def check(file: onnx.ModelProto, x: np.ndarray, kinds: dict[str, int], opset: int = 21) -> None:
    """The file becomes these operators, and gives what it gave, within a few roundings of its largest number."""
    model = joined(file, opset)
    assert Counter(one.op_type for one in model.graph.node) == Counter(kinds)
    for found, wanted in zip(outputs(model, x), outputs(file, x), strict=True):
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(np.isfinite(found), finite)
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
        bound = 16 * np.finfo(wanted.dtype).eps * max(1.0, float(np.abs(wanted[finite]).max(initial=0)))
        np.testing.assert_allclose(found[finite], wanted[finite], rtol=1e-5, atol=bound)


def numbers(*shape: int, kind: str = "f", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def special(kind: str = "f") -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.concatenate([np.array(SPECIAL), np.linspace(-9, 9, 31)]).astype(kind)


ONE = {
    "Elu": {"alpha": 1.5},
    "Selu": {},
    "Celu": {"alpha": 2.0},
    "Softplus": {},
    "Softsign": {},
    "Mish": {},
    "ThresholdedRelu": {"alpha": 0.5},
    "HardSigmoid": {"alpha": 0.25, "beta": 0.5},
    "HardSwish": {},
}


@pytest.mark.parametrize("op_type", ONE)
def test_functions_of_one_tensor(op_type: str) -> None:
    """Also of what is infinite, or no number."""
    x = special()
    file = file_of([node(op_type, "x", "y", **ONE[op_type])], x, ["N"], {})
    model = joined(file)
    assert Counter(one.op_type for one in model.graph.node) == Counter({op_type: 1})
    for found, wanted in zip(outputs(model, x), outputs(file, x), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["e", "d"])
@pytest.mark.parametrize("op_type", ["Elu", "Softplus", "HardSigmoid"])
def test_other_types_stay_what_they_are_written_as(op_type: str, kind: str) -> None:
    x = np.linspace(-3, 3, 7).astype(kind)
    model = joined(file_of([node(op_type, "x", "y")], x, [7], {}))
    assert len(model.graph.node) > 1


@pytest.mark.parametrize("shape", [(2, 5), (3, 1, 7), (1, 2, 3, 4), (0, 3)])
@pytest.mark.parametrize("scaled", ["plain", "scale", "scale and bias"])
def test_layers_are_normalised_by_one_operator(shape: tuple[int, ...], scaled: str) -> None:
    nodes = [
        node("ReduceMean", "x axis", "mean"),
        node("Sub", "x mean", "centred"),
        node("Mul", "centred centred", "squares"),
        node("ReduceMean", "squares axis", "variance"),
        node("Add", "variance eps", "safe"),
        node("Sqrt", "safe", "root"),
        node("Div", "centred root", "y" if scaled == "plain" else "standard"),
        *([] if scaled == "plain" else [node("Mul", "standard s", "y" if scaled == "scale" else "scaled")]),
        *([node("Add", "scaled b", "y")] if "bias" in scaled else []),
    ]
    held = {"axis": np.array([-1]), "eps": np.float32(1e-5), "s": numbers(shape[-1]), "b": numbers(shape[-1], seed=1)}
    x = numbers(*shape, seed=2) * np.float32(3)
    check(file_of(nodes, x, ["N", *shape[1:]], held), x, {"LayerNormalization": 1})


def test_what_is_no_number_makes_its_row_none() -> None:
    x = numbers(3, 5)
    x[0, 1], x[2, 2] = np.nan, np.inf
    file = file_of([node("LayerNormalization", "x s", "y")], x, [3, 5], {"s": numbers(5, seed=1)})
    (found,) = outputs(joined(file), x)
    assert np.isnan(found[[0, 2]]).all()
    np.testing.assert_allclose(found[1], outputs(file, x)[0][1], rtol=1e-5)


@pytest.mark.parametrize("kind", ["e", "d"])
def test_layers_of_other_types_are_computed_as_they_were(kind: str) -> None:
    """f64 is not normalised in f32, which the operator says; of f16, what is in f32 is."""
    x = numbers(2, 5, kind=kind)
    file = file_of([node("LayerNormalization", "x s", "y")], x, [2, 5], {"s": numbers(5, kind=kind, seed=1)})
    kinds = {one.op_type for one in joined(file).graph.node}
    assert ("LayerNormalization" in kinds) == (kind == "e")


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 1, 2, 4), (2, 4, 3, 2, 3)])
def test_instances_and_groups(shape: tuple[int, ...]) -> None:
    channels = shape[1]
    held = {"s": numbers(channels), "b": numbers(channels, seed=1)}
    x = numbers(*shape, seed=2)
    sizes = ["N", channels, *(f"S{axis}" for axis in range(len(shape) - 2))]
    check(file_of([node("InstanceNormalization", "x s b", "y")], x, sizes, held), x, {"InstanceNormalization": 1})
    groups = node("GroupNormalization", "x s b", "y", num_groups=channels)
    model = joined(file_of([groups], x, [*shape], held, opset=21))
    assert "InstanceNormalization" in {one.op_type for one in model.graph.node} or len(shape) == 3


@pytest.mark.parametrize(
    ("shape", "axes", "keep", "kinds"),
    [
        ((2, 3, 4, 5), [2, 3], 1, {"GlobalAveragePool": 1}),
        ((2, 3, 5), [-1], 1, {"GlobalAveragePool": 1}),
        ((2, 3, 4, 5), [2, 3], 0, {"GlobalAveragePool": 1, "Squeeze": 1}),
        ((2, 3, 4, 5), [1, 2], 1, {"ReduceMean": 1}),
        ((2, 3, 4, 5), [3], 0, {"ReduceMean": 1}),
        ((7,), [0], 0, {"ReduceMean": 1}),
    ],
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_means(shape: tuple[int, ...], axes: list[int], keep: int, kinds: dict[str, int], symbolic: bool) -> None:
    x = numbers(*shape)
    sizes = [f"S{axis}" for axis in range(len(shape))] if symbolic else [*shape]
    file = file_of([node("ReduceMean", "x axes", "y", keepdims=keep)], x, sizes, {"axes": np.array(axes)})
    check(file, x, kinds)


def test_a_mean_of_doubles_is_no_pool() -> None:
    x = numbers(2, 3, 4, 5, kind="d")
    file = file_of([node("ReduceMean", "x axes", "y")], x, [*x.shape], {"axes": np.array([2, 3])})
    check(file, x, {"ReduceMean": 1})


def test_a_sum_that_others_read_too_stays() -> None:
    nodes = [
        node("ReduceSum", "x axes", "sum"),
        node("Div", "sum n", "mean"),
        node("Exp", "sum", "e"),
        node("Add", "mean e", "y"),
    ]
    x = numbers(2, 3, 5) / np.float32(9)
    held = {"axes": np.array([2]), "n": np.float32(5)}
    assert "ReduceSum" in {one.op_type for one in joined(file_of(nodes, x, [2, 3, 5], held)).graph.node}


@pytest.mark.parametrize(("rows", "kind"), [(1, "f"), (5, "f"), (0, "f"), (3, "d")])
@pytest.mark.parametrize("bias", [(), (3,), (1, 3)])
def test_a_product_and_what_is_added(rows: int, kind: str, bias: tuple[int, ...]) -> None:
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b", "y")]
    x = numbers(rows, 4, kind=kind)
    held = {"w": numbers(4, 3, kind=kind, seed=1), "b": numbers(*bias, kind=kind, seed=2)}
    check(file_of(nodes, x, ["N", 4], held), x, {"Gemm": 1})


def test_products_of_halves_are_rounded_before_something_is_added() -> None:
    x = numbers(2, 4, kind="e")
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b", "y")]
    held = {"w": numbers(4, 3, kind="e", seed=1), "b": numbers(3, kind="e", seed=2)}
    assert "Gemm" not in {one.op_type for one in joined(file_of(nodes, x, ["N", 4], held)).graph.node}


def test_a_product_that_a_bias_stretches_is_no_gemm() -> None:
    x = numbers(1, 4)
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b", "y")]
    held = {"w": numbers(4, 3, seed=1), "b": numbers(5, 3, seed=2)}
    check(file_of(nodes, x, [1, 4], held), x, {"MatMul": 1, "Add": 1})


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_strides_come_back_to_windows_of_one_place(size: int) -> None:
    x = numbers(1, 3, size, size)
    held = {"w": numbers(4, 3, 1, 1, seed=1), "b": numbers(4, seed=2)}
    nodes = [node("Conv", "x w b", "y", strides=[2, 3], kernel_shape=[1, 1])]
    check(file_of(nodes, x, ["N", 3, "H", "W"], held), x, {"Conv": 1})


@pytest.mark.parametrize("slope", [(), (3, 1), (1,), (2, 3, 4)])
def test_slopes(slope: tuple[int, ...]) -> None:
    x = numbers(2, 3, 4)
    x[0, 0, 0], x[0, 0, 1] = np.nan, -np.inf
    file = file_of([node("PRelu", "x s", "y")], x, [2, 3, 4], {"s": numbers(*slope, seed=1)})
    check(file, x, {"PRelu": 1})


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("shape", [(1, 8, 2, 3), (2, 4, 1, 1)])
def test_depth_and_space(mode: str, shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    nodes = [node("DepthToSpace", "x", "y", blocksize=2, mode=mode)]
    check(file_of(nodes, x, ["N", shape[1], "H", "W"], {}), x, {"DepthToSpace": 1})
    nodes = [node("SpaceToDepth", "x", "y", blocksize=2)]
    wide = numbers(2, 3, 4, 6)
    check(file_of(nodes, wide, [2, 3, 4, 6], {}), wide, {"SpaceToDepth": 1})


NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def repeating(scales: tuple[int, ...], shape: list[Any], x: np.ndarray) -> onnx.ModelProto:
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], **NEAREST)
    return file_of([resize], x, shape, {"s": np.array(scales, np.float32)})


@pytest.mark.parametrize(
    ("scales", "kinds"),
    [
        ((1, 1, 2, 2), {"Resize": 1}),
        ((1, 1, 1, 3), {"Resize": 1}),
        ((1, 1, 5, 2), {"Resize": 1}),
        ((1, 1, 3, 1), {"Unsqueeze": 1, "Expand": 1, "Reshape": 1}),  # rows are copied whole
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_elements_that_are_repeated(scales: tuple[int, ...], kinds: dict[str, int], size: int) -> None:
    x = numbers(2, 3, 4, size)
    file = repeating(scales, [2, 3, 4, size], x)
    if size > 1:
        check(file, x, kinds)
    np.testing.assert_array_equal(outputs(joined(file), x)[0], x.repeat(scales[2], 2).repeat(scales[3], 3))


def test_elements_that_are_repeated_in_images_of_any_size() -> None:
    x = numbers(1, 3, 4, 7)
    check(repeating((1, 1, 2, 2), ["B", 3, "H", "W"], x), x, {"Resize": 1})


@pytest.mark.parametrize(
    ("axis", "wide", "shape"),
    [
        (2, [2, 3, 2, 4], [2, 6, 4]),  # rows of another axis
        (2, [2, 3, 2, 4], [2, 3, 8]),  # the whole row once more, not each element
        (3, [2, 3, 4, 2], [2, 4, 6]),
    ],
)
def test_elements_that_are_repeated_elsewhere_stay(axis: int, wide: list[int], shape: list[int]) -> None:
    x = numbers(2, 3, 4)
    held = {"a": np.array([axis]), "w": np.array(wide), "s": np.array(shape)}
    nodes = [node("Unsqueeze", "x a", "u"), node("Expand", "u w", "e"), node("Reshape", "e s", "y")]
    check(file_of(nodes, x, [2, 3, 4], held), x, {"Unsqueeze": 1, "Expand": 1, "Reshape": 1})


def test_slices_of_all_of_an_axis_are_one_split() -> None:
    nodes = [
        node("Split", "x sizes", "a b c", axis=1),
        node("Mul", "a c", "ac"),
        node("Concat", "ac b b", "y", axis=1),
    ]
    x = numbers(2, 7)
    file = file_of(nodes, x, ["N", 7], {"sizes": np.array([2, 3, 2])})
    check(file, x, {"Split": 1, "Mul": 1, "Concat": 1})


def test_slices_that_leave_something_out_stay() -> None:
    nodes = [node("Split", "x sizes", "a b c", axis=1), node("Concat", "a c", "y", axis=1)]
    x = numbers(2, 7)
    check(file_of(nodes, x, ["N", 7], {"sizes": np.array([2, 3, 2])}), x, {"Slice": 2, "Concat": 1})


def test_one_place_of_an_axis() -> None:
    x = numbers(2, 7, 3)
    file = file_of([node("Gather", "x i", "y", axis=1)], x, ["N", 7, 3], {"i": np.array(-1)})
    check(file, x, {"Gather": 1})


def test_axes_that_broadcasting_adds_are_left_to_it() -> None:
    nodes = [node("ReduceSum", "x axes", "s", keepdims=0), node("Add", "x s", "y")]
    x = numbers(3, 3)
    check(file_of(nodes, x, [3, 3], {"axes": np.array([0])}), x, {"ReduceSum": 1, "Add": 1})


def recurrent(op_type: str, x: np.ndarray, hidden: int, *, seed: int = 0, **attributes: Any) -> onnx.ModelProto:
    """One layer over x [T, B, I], with its states as further outputs."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op_type]
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    held = {
        "w": numbers(ways, gates * hidden, x.shape[2], seed=seed) / np.float32(2),
        "r": numbers(ways, gates * hidden, hidden, seed=seed + 1) / np.float32(2),
        "b": numbers(ways, 2 * gates * hidden, seed=seed + 2),
    }
    last = "h c" if op_type == "LSTM" else "h"
    nodes = [node(op_type, "x w r b", f"y {last}", hidden_size=hidden, **attributes)]
    file = file_of(nodes, x, ["T", x.shape[1], x.shape[2]], held)
    file.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in last.split())
    return file


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("items", [1, 3])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
def test_recurrent_networks(op_type: str, direction: str, items: int, steps: int) -> None:
    x = numbers(steps, items, 5, seed=9)
    more = {"linear_before_reset": 1} if op_type == "GRU" else {}
    file = recurrent(op_type, x, 4, direction=direction, **more)
    model = joined(file)
    kinds = Counter(one.op_type for one in model.graph.node)
    assert kinds[op_type] == (2 if direction == "bidirectional" else 1)
    assert not kinds.keys() & {"Scan", "MatMul", "Gemm"}
    for found, wanted in zip(outputs(model, x), outputs(file, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("GRU", {}),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"clip": 0.5}),
        ("RNN", {"activations": ["Sigmoid"]}),
        ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Tanh"]}),
    ],
)
def test_other_cells_are_loops(op_type: str, attributes: dict[str, Any]) -> None:
    x = numbers(5, 2, 3, seed=9)
    file = recurrent(op_type, x, 4, **attributes)
    model = joined(file)
    assert "Scan" in {one.op_type for one in model.graph.node}
    for found, wanted in zip(outputs(model, x), outputs(file, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize("parts", [2, 3])
def test_products_of_parts_that_are_laid_side_by_side(parts: int) -> None:
    """In normal form they are products of their own, which are added."""
    names = ["Tanh", "Sigmoid", "Exp"][:parts]
    ahead = [node(name, "x", name.lower()) for name in names]
    laid = " ".join(name.lower() for name in names)
    x = numbers(2, 3, 4, 4)
    kernel = {"w": numbers(5, 3 * parts, 3, 3, seed=1), "b": numbers(5, seed=2)}
    nodes = [*ahead, node("Concat", laid, "c", axis=1), node("Conv", "c w b", "y", kernel_shape=[3, 3])]
    kinds = dict.fromkeys(names, 1)
    check(file_of(nodes, x, ["N", 3, 4, 4], kernel), x, {**kinds, "Concat": 1, "Conv": 1})
    matrix = {"w": numbers(4 * parts, 5, seed=1), "b": numbers(5, seed=2)}
    nodes = [*ahead, node("Concat", laid, "c", axis=-1), node("MatMul", "c w", "m"), node("Add", "m b", "y")]
    check(file_of(nodes, x, ["N", 3, 4, 4], matrix), x, {**kinds, "Concat": 1, "MatMul": 1, "Add": 1})


def test_products_that_others_read_too_are_not_laid_side_by_side() -> None:
    nodes = [
        node("MatMul", "x v", "a"),
        node("Tanh", "x", "t"),
        node("MatMul", "t w", "b"),
        node("Add", "a b", "s"),
        node("Concat", "a s", "y", axis=-1),
    ]
    x = numbers(3, 2, 4)
    held = {"v": numbers(4, 2, seed=1), "w": numbers(4, 2, seed=2)}
    check(file_of(nodes, x, [3, 2, 4], held), x, {"MatMul": 2, "Tanh": 1, "Add": 1, "Concat": 1})


def test_the_same_axes_are_moved_once() -> None:
    nodes = [
        node("Transpose", "x", "a", perm=[1, 0]),
        node("Transpose", "x", "b", perm=[1, 0]),
        node("Exp", "a", "c"),
        node("Mul", "b c", "y"),
    ]
    x = numbers(3, 2)
    check(file_of(nodes, x, ["N", 2], {}), x, {"Transpose": 1, "Exp": 1, "Mul": 1})


@pytest.mark.parametrize("groups", [1, 2])
def test_factors_of_channels_behind_a_deconvolution(groups: int) -> None:
    """Channels of groups are counted in another order: those stay a product."""
    x = numbers(2, 4, 3, 3)
    held = {"w": numbers(4, 6 // groups, 2, 2, seed=1), "s": numbers(6, 1, 1, seed=2), "b": numbers(6, 1, 1, seed=3)}
    nodes = [
        node("ConvTranspose", "x w", "c", group=groups, strides=[2, 2]),
        node("Mul", "c s", "d"),
        node("Add", "d b", "y"),
    ]
    rest = {"Mul": 1, "Add": 1} if groups == 2 else {}
    check(file_of(nodes, x, ["N", 4, 3, 3], held), x, {"ConvTranspose": 1, **rest})


@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("axis", [1, 2])
def test_both_directions_are_one_network(op_type: str, axis: int) -> None:
    """Beside each other, as ONNX gives them, and as one vector, as PyTorch does, with a product behind it."""
    x = numbers(5, 2, 3, seed=9)
    more = {"linear_before_reset": 1} if op_type == "GRU" else {}
    file = recurrent(op_type, x, 4, direction="bidirectional", **more)
    del file.graph.output[1:]
    if axis == 2:
        file.graph.node[0].output[0] = "both"
        shape = numpy_helper.from_array(np.array([0, 0, 8]), "shape")
        file.graph.initializer.extend([shape, numpy_helper.from_array(numbers(8, 3, seed=5), "m")])
        file.graph.node.extend(
            [
                node("Transpose", "both", "moved", perm=[0, 2, 1, 3]),
                node("Reshape", "moved shape", "flat"),
                node("MatMul", "flat m", "y"),
            ]
        )
    model = joined(file)
    kinds = Counter(one.op_type for one in model.graph.node)
    assert kinds == Counter({op_type: 1, **({"Transpose": 1, "Reshape": 1, "MatMul": 1} if axis == 2 else {})})
    np.testing.assert_allclose(outputs(model, x)[0], outputs(file, x)[0], rtol=0, atol=2e-6)
