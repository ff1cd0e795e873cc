"""Values that only a run sees: sizes that no memory holds, indices outside, NaN, arrays of any kind."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_hostile import any_info, fails, gives, model_of, node, refused, taken, tensor_info
from tract_onnx.frontend import OnnxLoader

import tract_core as tract
from tract_core.errors import InputError, LimitExceeded, RunError, TractError
from tract_core.limits import LoadLimits
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.hostile import bounded

pytestmark = pytest.mark.hostile

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
BIG, LOW, NAN = (1 << 63) - 1, -(1 << 63), float("nan")


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


def dynamic(op_type, arrays, *, fixed=(), opset=17, outputs=1, **attributes):
    """A model of one node whose inputs are inputs of the model, and the arrays for them."""
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(arrays)]
    given = {name: np.asarray(array) for name, array in zip(names, arrays, strict=True) if name}
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in given.items()}
    free = [name for name in given if int(name[1:]) not in fixed]
    model = model_of(
        [node(op_type, names, [f"y{index}" if index else "y" for index in range(outputs)], **attributes)],
        [tensor_info(name, given[name].shape, kinds[name]) for name in free],
        ["y", *(f"y{index}" for index in range(1, outputs))],
        [numpy_helper.from_array(given[name], name) for name in given if name not in free],
        opset=opset,
    )
    return model, [given[name] for name in free]


LARGE = {
    "Tile": dynamic("Tile", [floats(1, 2), ints(10**12)]),
    "Tile, a product that overflows": dynamic("Tile", [np.ones((2, 2), np.float32), ints(1 << 32, 1 << 32)]),
    "Tile, negative": dynamic("Tile", [floats(1, 2), ints(-1)]),
    "Expand": dynamic("Expand", [floats(1), ints(1 << 62)]),
    "Expand, negative": dynamic("Expand", [floats(1), ints(-1)]),
    "ConstantOfShape": dynamic("ConstantOfShape", [ints(1 << 31, 1 << 31)]),
    "ConstantOfShape, negative": dynamic("ConstantOfShape", [ints(-1)]),
    "Pad": dynamic("Pad", [floats(1), ints(0, 1 << 62)]),
    "Pad, both sides": dynamic("Pad", [floats(1), ints(BIG, BIG)]),
    "Pad, cut": dynamic("Pad", [floats(1), ints(-1, -1)]),
    "Range": dynamic("Range", [np.int64(0), np.int64(1 << 62), np.int64(1)]),
    "Range, step 0": dynamic("Range", [np.int64(0), np.int64(5), np.int64(0)]),
    "Range, NaN": dynamic("Range", [np.float32(0), np.float32(NAN), np.float32(1)]),
    "Range, infinite": dynamic("Range", [np.float32(0), np.float32(np.inf), np.float32(1)]),
    "Range, tiny steps": dynamic("Range", [np.float32(0), np.float32(1e30), np.float32(1e-30)]),
    "OneHot": dynamic("OneHot", [ints(1), ints(1 << 60), floats(0, 1)], fixed=(2,)),
    "OneHot, negative": dynamic("OneHot", [ints(1), ints(-5), floats(0, 1)], fixed=(2,)),
    "Resize": dynamic("Resize", [np.ones((1, 1, 2, 2), np.float32), None, floats(1, 1, 1e9, 1e9)]),
    "Resize, NaN": dynamic("Resize", [np.ones((1, 1, 2, 2), np.float32), None, floats(1, 1, NAN, 1)]),
    "Resize, negative": dynamic("Resize", [np.ones((1, 1, 2, 2), np.float32), None, floats(1, 1, -1, 1)]),
    "Resize, sizes": dynamic("Resize", [np.ones((1, 1, 2, 2), np.float32), None, None, ints(1, 1, 1 << 40, 2)]),
    "TopK": dynamic("TopK", [floats(1, 2), ints(3)], outputs=2),
    "TopK, negative": dynamic("TopK", [floats(1, 2), ints(-1)], outputs=2),
    "Reshape": dynamic("Reshape", [floats(1, 2), ints(3)]),
    "Reshape, twice -1": dynamic("Reshape", [floats(1, 2), ints(-1, -1)]),
    "Col2Im": dynamic("Col2Im", [np.ones((1, 4, 1), np.float32), ints(1 << 40, 2), ints(2, 2)], opset=18),
    "HannWindow": dynamic("HannWindow", [np.int64(1 << 50)]),
    "MelWeightMatrix": dynamic(
        "MelWeightMatrix", [np.int64(8), np.int64(1 << 50), np.int64(8000), np.float32(0), np.float32(4000)]
    ),
    "MelWeightMatrix, no rate": dynamic(
        "MelWeightMatrix", [np.int64(8), np.int64(64), np.int64(0), np.float32(0), np.float32(4000)]
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_sizes_that_a_run_cannot_have(name):
    fails(*LARGE[name], TractError)


def test_sizes_that_follow_from_the_inputs():
    """An output that would be a million times as large as the input is refused before anything is computed."""
    x = model_of(
        [node("Tile", ["x", "n"])], [tensor_info("x", ["N"])], ["y"], [numpy_helper.from_array(ints(10**9), "n")]
    )
    fails(
        x, [np.ones(1000, np.float32)], RunError, r"a tensor of shape \[1000000000000\] would take 4000000000000 bytes"
    )
    outer = model_of(
        [node("Unsqueeze", ["x", "a"], "r"), node("Unsqueeze", ["x", "b"], "c"), node("MatMul", "cr")],
        [tensor_info("x", ["N"])],
        ["y"],
        [numpy_helper.from_array(ints(0), "a"), numpy_helper.from_array(ints(1), "b")],
    )
    fails(outer, [np.ones(1 << 20, np.float32)], RunError, "would take 4398046511104 bytes")
    assert gives(outer, [np.ones(3, np.float32)])[0].shape == (3, 3)


def test_sizes_that_follow_from_the_middle_of_a_run():
    nodes = [node("NonZero", "x", "z"), node("Transpose", "z", "t"), node("Tile", ["t", "n"], "r"), node("Abs", "r")]
    many = numpy_helper.from_array(ints(1, 1 << 40), "n")
    model = model_of(nodes, [tensor_info("x", ["N"])], ["y"], [many])
    fails(model, [np.ones(1000, np.float32)], RunError, "would take")
    assert gives(model, [np.zeros(1000, np.float32)])[0].shape == (0, 1 << 40)


def test_one_tensor_may_take_what_the_limits_say():
    limits = LoadLimits(max_tensor_bytes=8 << 20)
    model = model_of([node("Concat", "xx", axis=0)], [tensor_info("x", ["N"])])
    plan = TypedSimplePlan(OnnxLoader(limits=limits).load_bytes(model.SerializeToString()).into_typed())
    state = plan.spawn()
    assert len(state.run([np.zeros(1 << 20, np.float32)])[0]) == 1 << 21
    with pytest.raises(RunError, match=r"would take 16777216 bytes, 8388608 are allowed") as caught:
        state.run([np.zeros(1 << 21, np.float32)])
    assert "'y'" in caught.value.where
    assert "max_tensor_bytes" in caught.value.hint
    assert len(state.run([np.zeros(3, np.float32)])[0]) == 6


def body_of(nodes, outputs, inputs):
    return helper.make_graph(nodes, "b", inputs, [any_info(name) for name in outputs])


def test_loops_that_do_not_end():
    counter = [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("c", BOOL, [])]
    same = body_of([node("Identity", "c", "d"), node("Add", "vv", "w")], "dw", [*counter, tensor_info("v", [1])])
    true = numpy_helper.from_array(np.array(True), "t")
    for limit in (BIG, 1 << 40):
        many = numpy_helper.from_array(np.array(limit), "m")
        model = model_of([node("Loop", "mtx", body=same)], [tensor_info("x", [1])], ["y"], [many, true])
        fails(model, [floats(1)], RunError, "its condition never becomes false")
    for limit in (0, -1, LOW):
        none = numpy_helper.from_array(np.array(limit), "m")
        model = model_of([node("Loop", "mtx", body=same)], [tensor_info("x", [1])], ["y"], [none, true])
        np.testing.assert_array_equal(gives(model, [floats(5)])[0], [5])


def loops_for_long():
    """Loops whose end cannot be told beforehand, or is far away."""
    counter = [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("c", BOOL, [])]
    counter.append(tensor_info("v", [1]))
    never, true = numpy_helper.from_array(np.array(-1), "never"), numpy_helper.from_array(np.array(True), "true")
    computed = [node("Equal", ["i", "never"], "e"), node("Not", "e", "d"), node("Cos", "v", "w")]
    loop = node("Loop", ["", "true", "x"], body=body_of(computed, "dw", counter))
    yield model_of([loop], [tensor_info("x", [1])], constants=[never, true]), [floats(1)]
    same = body_of([node("Identity", "c", "d"), node("Cos", "v", "w")], "dw", counter)
    many = helper.make_tensor_value_info("m", INT64, [])
    loop = node("Loop", ["m", "", "x"], body=same)
    yield model_of([loop], [tensor_info("x", [1]), many]), [floats(1), np.array(1 << 31)]
    added = helper.make_graph(
        [node("ReduceSum", "e", "r", keepdims=0), node("Add", "sr", "q"), node("Cos", "q", "t")],
        "b",
        [any_info("s"), any_info("e")],
        [any_info("t")],
    )
    inputs = [tensor_info("x", []), tensor_info("z", ["N", 0])]
    scan = node("Scan", "xz", body=added, num_scan_inputs=1)
    yield model_of([scan], inputs), [np.float32(1).reshape(()), np.zeros((1 << 24, 0), np.float32)]


@pytest.mark.parametrize("number", range(3))
def test_runs_that_take_too_long(number):
    model, arrays = list(loops_for_long())[number]
    for declutter in (False, True):
        typed = OnnxLoader(limits=LoadLimits(run_deadline_s=0.3)).load_bytes(model.SerializeToString()).into_typed()
        plan = TypedSimplePlan(typed.declutter() if declutter else typed)
        start = time.monotonic()
        with bounded(), pytest.raises(RunError, match=r"the run takes longer than 0\.3 seconds") as caught:
            plan.run(arrays)
        assert time.monotonic() - start < 3
        assert caught.value.where.startswith("node 'y")
        assert "run_deadline_s" in caught.value.hint


def test_every_run_has_its_own_time():
    model = model_of([node("Relu", "x")], [tensor_info("x", ["N"])])
    plan = TypedSimplePlan(
        OnnxLoader(limits=LoadLimits(run_deadline_s=0.2)).load_bytes(model.SerializeToString()).into_typed()
    )
    state = plan.spawn()
    for _ in range(3):
        time.sleep(0.15)
        np.testing.assert_array_equal(state.run([floats(1, -1)])[0], [1, 0])


def test_loops_that_grow():
    """The carried value is twice as long after every iteration."""
    counter = [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("c", BOOL, [])]
    twice = body_of(
        [node("Identity", "c", "d"), node("Concat", "vv", "w", axis=0)], "dw", [*counter, tensor_info("v", ["K"])]
    )
    constants = [numpy_helper.from_array(np.array(True), "t"), numpy_helper.from_array(np.array(100), "m")]
    model = model_of([node("Loop", "mtx", body=twice)], [tensor_info("x", ["N"])], ["y"], constants)
    limits = LoadLimits(max_tensor_bytes=16 << 20)
    with bounded(), pytest.raises(RunError, match="would take"):
        TypedSimplePlan(OnnxLoader(limits=limits).load_bytes(model.SerializeToString()).into_typed()).run([floats(1)])


def gates(count):
    """The weights of a recurrent network of one unit for two numbers."""
    return np.ones((1, count, 2), np.float32), np.ones((1, count, 1), np.float32)


M = np.arange(6, dtype=np.float32).reshape(2, 3)
OUTSIDE = {
    "Gather": dynamic("Gather", [M, ints(2)]),
    "Gather, negative": dynamic("Gather", [M, ints(-3)]),
    "Gather, far": dynamic("Gather", [M, ints(BIG)]),
    "Gather, far negative": dynamic("Gather", [M, ints(LOW)]),
    "GatherElements": dynamic("GatherElements", [M, ints(2, 0, 0).reshape(1, 3)]),
    "GatherElements, negative": dynamic("GatherElements", [M, ints(-3, 0, 0).reshape(1, 3)]),
    "GatherND": dynamic("GatherND", [M, ints(0, 3).reshape(1, 2)]),
    "GatherND, negative": dynamic("GatherND", [M, ints(0, -4).reshape(1, 2)]),
    "ScatterElements": dynamic("ScatterElements", [M, ints(2).reshape(1, 1), floats(1).reshape(1, 1)]),
    "ScatterElements, negative": dynamic("ScatterElements", [M, ints(LOW).reshape(1, 1), floats(1).reshape(1, 1)]),
    "ScatterND": dynamic("ScatterND", [M, ints(2, 0).reshape(1, 2), floats(1)]),
    "ScatterND, negative": dynamic("ScatterND", [M, ints(-3, 0).reshape(1, 2), floats(1)]),
    "ReverseSequence, longer": dynamic("ReverseSequence", [M, ints(3, 0, 0)], batch_axis=1, time_axis=0),
    **{
        f"{op_type}, {name} steps": dynamic(
            op_type,
            [np.ones((3, 1, 2), np.float32), *gates(count), None, np.array([length], np.int32)],
            hidden_size=1,
        )
        for op_type, count in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
        for name, length in (("more", 4), ("fewer than no", -1), ("endless", (1 << 31) - 1))
    },
    "Compress, longer": dynamic("Compress", [M, np.array([True] * 5)], axis=0),
    "MaxUnpool": dynamic(
        "MaxUnpool", [np.ones((1, 1, 1, 1), np.float32), np.full((1, 1, 1, 1), 99)], kernel_shape=[2, 2]
    ),
    "MaxUnpool, negative": dynamic(
        "MaxUnpool", [np.ones((1, 1, 1, 1), np.float32), np.full((1, 1, 1, 1), -99)], kernel_shape=[2, 2]
    ),
    "Slice, step 0": dynamic("Slice", [M, ints(0), ints(1), ints(0), ints(0)]),
    "Unsqueeze, outside": dynamic("Unsqueeze", [M, ints(7)]),
    "Squeeze, outside": dynamic("Squeeze", [np.ones((1, 2), np.float32), ints(7)]),
    "Squeeze, not 1": dynamic("Squeeze", [np.ones((1, 2), np.float32), ints(1)]),
    "Split, sizes": dynamic("Split", [floats(1, 2, 3), ints(1, 9)], outputs=2),
    "CumSum, axis": dynamic("CumSum", [M, np.int64(5)]),
    "Reduce, axis": dynamic("ReduceSum", [M, ints(9)]),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_indices_outside(name):
    """Refused when it is wired, where the value or the rank tells, or when it runs: never memory that is not theirs."""
    model, arrays = OUTSIDE[name]
    for declutter in (False, True):
        with pytest.raises(TractError) as caught:
            gives(model, arrays, declutter)
        assert caught.value.where
        assert "it cannot be wired: " not in caught.value.problem


BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, NAN], [5, 5, 6, 6]]], np.float32)
PLAIN = {
    "Gather, from the end": (dynamic("Gather", [M, ints(-1)]), M[[-1]]),
    "ReverseSequence of fewer than none": (
        dynamic("ReverseSequence", [M, ints(-1, 0, 0)], batch_axis=1, time_axis=0),
        M,
    ),
    "integers by 0": (dynamic("Div", [ints(5, -5), ints(0, 0)]), None),
    "the lowest integer by -1": (dynamic("Div", [ints(LOW), ints(-1)]), None),
    "Mod by 0": (dynamic("Mod", [ints(5), ints(0)]), None),
    "shifts beyond the bits": (
        dynamic("BitShift", [np.array([1], np.uint8), np.array([200], np.uint8)], direction="LEFT"),
        [0],
    ),
    "Cast of NaN": (dynamic("Cast", [floats(NAN, np.inf, 1e30)], to=INT64), None),
    "TopK of NaN": (dynamic("TopK", [floats(NAN, 1, NAN), ints(2)], outputs=2), None),
    "ArgMax of NaN": (dynamic("ArgMax", [floats(NAN, 1, NAN)]), None),
    "Unique of NaN": (dynamic("Unique", [floats(NAN, 1, NAN)]), None),
    "NonMaxSuppression of NaN": (
        dynamic("NonMaxSuppression", [BOXES, np.ones((1, 1, 3), np.float32), np.int64(3), np.float32(0.5)]),
        None,
    ),
    "NonMaxSuppression, immense": (
        dynamic("NonMaxSuppression", [BOXES, np.full((1, 1, 3), NAN, np.float32), np.int64(BIG), np.float32(NAN)]),
        None,
    ),
    "GridSample of NaN": (
        dynamic("GridSample", [np.ones((1, 1, 2, 2), np.float32), np.full((1, 2, 2, 2), NAN, np.float32)], opset=20),
        None,
    ),
    "GridSample, far away": (
        dynamic("GridSample", [np.ones((1, 1, 2, 2), np.float32), np.full((1, 2, 2, 2), 1e30, np.float32)], opset=20),
        np.zeros((1, 1, 2, 2)),
    ),
    "LSTM, longer than it is": (
        dynamic(
            "LSTM",
            [
                np.ones((3, 1, 2), np.float32),
                np.ones((1, 4, 2), np.float32),
                np.ones((1, 4, 1), np.float32),
                None,
                np.array([9], np.int32),
            ],
            fixed=(1, 2),
            hidden_size=1,
        ),
        None,
    ),
    "RoiAlign, far away": (
        dynamic("RoiAlign", [np.ones((1, 1, 4, 4), np.float32), floats(-1e9, NAN, 1e9, 5).reshape(1, 4), ints(0)]),
        None,
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_values_that_are_odd(name):
    """Something of the right shape and type comes out, or a typed error; what is written down is what it is."""
    (model, arrays), wanted = PLAIN[name]
    if wanted is None:
        with contextlib.suppress(RunError):
            assert all(isinstance(array, np.ndarray) for array in gives(model, arrays))
        return
    found = gives(model, arrays)
    assert all(isinstance(array, np.ndarray) for array in found)
    np.testing.assert_array_equal(found[0], wanted)


def test_roi_align_of_images_that_are_not_there():
    model, arrays = dynamic("RoiAlign", [np.ones((1, 1, 4, 4), np.float32), np.ones((1, 4), np.float32), ints(7)])
    fails(model, arrays, RunError)


def text_model(nodes, constants=()):
    """From ``x``, texts of any number, and ``n``, a number, to the texts ``y``."""
    inputs = [tensor_info("x", ["N"], TensorProto.STRING), tensor_info("n", [], INT64)]
    return model_of(nodes, inputs, constants=constants, opset=20)


def doubled_in_a_row(count, first="x"):
    names = [first, *(f"t{index}" for index in range(1, count)), "y"]
    return [node("StringConcat", [names[index]] * 2, [names[index + 1]]) for index in range(count)]


def doubled_in_a_loop():
    inner = [tensor_info("i", [], INT64), tensor_info("c", [], TensorProto.BOOL), any_info("v")]
    nodes = [node("Identity", "c", ["d"]), node("StringConcat", "vv", ["w"])]
    body = helper.make_graph(nodes, "b", inner, [any_info("d"), any_info("w")])
    return [node("Loop", ["n", "", "x"], ["y"], body=body)]


SOME = helper.make_tensor("k", TensorProto.STRING, [1], [b"0123456789abcdef"])


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        (doubled_in_a_row(45), []),
        (doubled_in_a_row(45, "k"), [SOME]),
        (doubled_in_a_loop(), []),
        ([*doubled_in_a_row(16), node("Identity", "y", ["z"])], []),
    ],
    ids=["a row", "a row of constants", "a loop", "within the machine's memory"],
)
def test_texts_that_grow(nodes, constants):
    """Each is as long as all before it: their lengths count as the bytes of a tensor."""
    typed = taken(text_model(nodes, constants), LoadLimits(max_tensor_bytes=1 << 20))
    x = [np.array(["0123456789abcdef"] * 4, object), np.array(45)]
    with (
        bounded(),
        pytest.raises(RunError, match=r"the texts of a tensor take \d+ bytes, 1048576 are allowed") as caught,
    ):
        TypedSimplePlan(typed).run(x)
    assert "StringConcat" in caught.value.where
    assert "max_tensor_bytes" in caught.value.hint


def test_texts_of_every_row_and_column():
    """Neither input is large, and together they are."""
    ends = [helper.make_tensor(name, INT64, [1], [axis]) for name, axis in (("zero", 0), ("one", 1))]
    nodes = [node("Unsqueeze", ["x", "zero"], ["r"]), node("Unsqueeze", ["x", "one"], ["c"])]
    typed = taken(text_model([*nodes, node("StringConcat", "rc", ["y"])], ends), LoadLimits(max_tensor_bytes=1 << 24))
    texts = np.array(["a" * 1000] * 1000, object)
    with bounded(), pytest.raises(RunError, match="2008000000 bytes, 16777216 are allowed"):
        TypedSimplePlan(typed).run([texts, np.array(0)])
    (found,) = TypedSimplePlan(typed).run([texts[:50], np.array(0)])
    assert found.shape == (50, 50)


def test_texts_of_a_file():
    long = helper.make_tensor("k", TensorProto.STRING, [2], [b"a" * 1000, "é".encode() * 500])
    model = text_model([node("Identity", "k", ["y"])], [long])
    refused(model, LimitExceeded, "takes 2016 bytes, 2015 are allowed", limits=LoadLimits(max_tensor_bytes=2015))
    taken(model, LoadLimits(max_tensor_bytes=2016))


def test_limits_of_the_public_interface(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of([node("Concat", "xx", axis=0)], [tensor_info("x", ["N"])]).SerializeToString())
    model = tract.onnx().load(path, limits=LoadLimits(max_tensor_bytes=100)).into_model()
    runnable = tract.runtime_for_name("reference").prepare(model)
    assert len(runnable.run([np.zeros(10, np.float32)])[0].to_numpy()) == 20
    with pytest.raises(RunError, match="would take 160 bytes, 100 are allowed"):
        runnable.run([np.zeros(20, np.float32)])


@pytest.fixture(scope="module")
def doubled(tmp_path_factory):
    path = tmp_path_factory.mktemp("m") / "m.onnx"
    path.write_bytes(model_of([node("Add", "xx")], [tensor_info("x", [2, 3])]).SerializeToString())
    return tract.onnx().load(path).into_model().into_runnable()


WANTED = 2 * M


@pytest.mark.parametrize(
    "array",
    [
        M.astype(">f4"),
        np.asfortranarray(M),
        np.repeat(M, 2, axis=1)[:, ::2],
        M[::-1][::-1],
        np.frombuffer(b"x" + M.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3),
        np.broadcast_to(M, (4, 2, 3))[2],
    ],
    ids=["byte order", "column major", "strided", "reversed", "unaligned", "broadcast"],
)
def test_layouts_of_arrays(doubled, array):
    array.flags.writeable = False
    np.testing.assert_array_equal(doubled.run([array])[0].to_numpy(), WANTED)


@pytest.mark.parametrize(
    "value",
    [
        M.astype(np.float64),
        M.astype(np.int64),
        M.astype(object),
        M.astype(str),
        M.astype(complex),
        M[0],
        M[None],
        np.float32(3),
        np.zeros((2, 4), np.float32),
        np.zeros((0, 3), np.float32),
        np.ma.masked_array(M, M > 2),
        np.zeros((2, 3), [("a", np.float32)]),
        np.zeros((2, 3), "datetime64[s]"),
        np.zeros((2, 3), "V4"),
        M.tolist(),
        "text",
        b"bytes",
        None,
        object(),
        {1: 2},
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}{getattr(value, 'shape', '')}",
)
def test_arrays_that_do_not_fit(doubled, value):
    with pytest.raises(InputError) as caught:
        doubled.run([value])
    assert "x" in str(caught.value)


def test_arrays_whose_memory_is_gone(doubled):
    class Dead:
        def __dlpack__(self, **_):
            raise RuntimeError("the device is gone")

        def __dlpack_device__(self):
            return (2, 0)

    class Lying:
        def __array__(self, *_, **__):
            raise ValueError("no")

    for value in (Dead(), Lying()):
        with pytest.raises(InputError, match="cannot be read as an array"):
            doubled.run([value])


def test_numbers_of_inputs(doubled):
    for inputs in ([], [M, M], {"y": M}, {}, M, None, 3):
        with pytest.raises(InputError):
            doubled.run(inputs)


def test_outputs_do_not_share_memory_with_inputs(tmp_path):
    """Where the output is the input, it is a copy: neither is changed through the other."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of([node("Identity", "x")], [tensor_info("x", [2, 3])]).SerializeToString())
    state = tract.onnx().load(path).into_model().into_runnable().spawn_state()
    given = M.copy()
    (found,) = state.run([given])
    given[:] = -1
    np.testing.assert_array_equal(found.to_numpy(), M)
    (again,) = state.run([found])
    np.testing.assert_array_equal(again.to_numpy(), M)


def test_inputs_are_not_written_to(doubled):
    given = M.copy()
    doubled.run([given])
    np.testing.assert_array_equal(given, M)


def test_symbols_that_disagree():
    model = model_of([node("Add", "xz")], [tensor_info("x", ["N", 2]), tensor_info("z", ["N", 2])])
    fails(model, [np.ones((3, 2), np.float32), np.ones((4, 2), np.float32)], InputError, "N is 3 by input 'x'")
