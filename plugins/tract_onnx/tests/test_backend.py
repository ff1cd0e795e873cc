"""The adapter to ONNX's own interface for engines. That it computes rightly is seen by ``test_onnx_backend_suite``."""

from __future__ import annotations

import unittest

import numpy as np
import onnx.backend.base
import onnx.backend.test
import onnx.parser
import pytest
from onnx import helper
from onnx.backend.test.loader import load_model_tests
from tract_onnx import backend
from tract_onnx.backend import Backend

from tract_core.errors import InputError, ModelError, PluginError, RunError

F32 = np.float32
X = np.arange(6, dtype=F32).reshape(2, 3)
XS = X[None, ..., None]


def model_of(body, opset=21):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {body}')


NEGATED = "f (float[N,3] x) => (float[N,3] y) { y = Neg (x) }"


def test_it_is_a_backend_as_onnx_defines_it():
    assert issubclass(Backend, onnx.backend.base.Backend)
    assert isinstance(Backend.prepare(model_of(NEGATED)), onnx.backend.base.BackendRep)


@pytest.mark.parametrize(
    ("device", "supported"),
    [("CPU", True), ("CPU:0", True), ("reference", True), ("CPU:1", False), ("TPU", False), ("", False), (None, False)],
)
def test_devices_are_runtimes(device, supported):
    assert Backend.supports_device(device) is supported
    if supported:
        (y,) = Backend.run_model(model_of(NEGATED), [X], device)
        np.testing.assert_array_equal(y, -X)
    else:
        with pytest.raises((PluginError, InputError)):
            Backend.prepare(model_of(NEGATED), device)


def test_cpu_is_the_default_runtime():
    import tract_core as tract

    assert Backend.prepare(model_of(NEGATED)).runnable.runtime.name() == tract.runtime_for_name("default").name()


def test_compatible_is_what_can_be_prepared():
    assert Backend.is_compatible(model_of(NEGATED))
    assert not Backend.is_compatible(model_of(NEGATED), "TPU")
    unknown = model_of("f (bool[] c) => (float[N] y) { y = NoSuchOperator (c) }")
    assert not Backend.is_compatible(unknown)
    with pytest.raises(ModelError, match=r"'NoSuchOperator' of ai\.onnx, version \d+, is not known"):
        Backend.prepare(unknown)


def test_outputs_have_names():
    model = model_of("f (float[N] x) => (float[N] up, float[N] down) { up = Neg (x)\n down = Abs (x) }")
    found = Backend.run_model(model, [X[0]])
    np.testing.assert_array_equal(found.up, -X[0])
    np.testing.assert_array_equal(found["down"], X[0])
    assert len(found) == 2


def test_inputs_may_be_given_by_name():
    model = model_of("f (float[N] a, float[N] b) => (float[N] y) { y = Sub (a, b) }")
    (y,) = Backend.run_model(model, {"b": X[0], "a": X[1]})
    assert y.tolist() == [3, 3, 3]


@pytest.mark.parametrize("declutter", [True, False])
@pytest.mark.parametrize(
    ("body", "first", "second"),
    [
        ("int64[2] s) => (float[A,B] y) { y = Reshape (x, s) }", ([3, 2], X.reshape(3, 2)), ([1, -1], X.reshape(1, 6))),
        ("int64[1] a) => (float[A] y) { y = ReduceSum<keepdims=0>(x, a) }", ([0], X.sum(0)), ([-1], X.sum(1))),
        ("int64[1] a) => (float[A,B] y) { y = ReduceMax (x, a) }", ([0], X[1:]), ([1], X[:, 2:])),
        ("int64[1] a) => (float[A,B,C] y) { y = Unsqueeze (x, a) }", ([0], X[None]), ([-1], X[:, :, None])),
        ("int64[2] a) => (float[A,B,C,D] y) { y = Unsqueeze (x, a) }", ([0, 2], X[None, :, None]), ([3, 0], XS)),
        ("int64[1] r) => (float[A,B] y) { y = Slice (x, r, r, r) }", ([0], X[:0]), ([1], X[:, :0])),
        ("int64 a) => (float[2,3] y) { y = CumSum (x, a) }", (0, X.cumsum(0)), (-1, X.cumsum(1))),
        ("int64[2] t) => (float[A,B] y) { y = Tile (x, t) }", ([1, 2], np.tile(X, 2)), ([2, 1], np.tile(X, (2, 1)))),
        ("int64[2] s) => (float[A,B] y) { y = Expand (x, s) }", ([2, 3], X), ([1, 1], X)),
        ("int64[1] k) => (float[A,B] y, int64[A,B] i) { y, i = TopK (x, k) }", ([1], X[:, 2:]), ([3], X[:, ::-1])),
    ],
)  # fmt: skip
def test_what_is_given_at_run_time_may_change_from_run_to_run(body, first, second, declutter):
    prepared = Backend.prepare(model_of(f"f (float[2,3] x, {body}"), declutter=declutter)
    for parameter, wanted in (first, second, first):
        found = prepared.run([X, np.array(parameter)])
        np.testing.assert_array_equal(found[0], wanted)


@pytest.mark.parametrize("declutter", [True, False])
def test_bounds_axes_and_steps_of_slices_may_change(declutter):
    body = "int64[2] s, int64[2] e, int64[2] a, int64[2] t) => (float[A,B,C] y) { y = Slice (x, s, e, a, t) }"
    prepared = Backend.prepare(model_of(f"f (float[3,4,5] x, {body}"), declutter=declutter)
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(F32)
    for bounds, wanted in [
        (([0, 1], [2, 5], [0, 2], [1, 2]), x[0:2, :, 1:5:2]),
        (([3, -1], [0, -100], [1, -3], [-1, -1]), x[-1:-100:-1, 3:0:-1]),
        (([-100, 100], [100, -100], [2, 1], [3, -2]), x[:, 100:-100:-2, -100:100:3]),
        (([2, 0], [1, 0], [0, 1], [1, 1]), x[2:1, 0:0]),
    ]:
        (y,) = prepared.run([x, *map(np.array, bounds)])
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("declutter", [True, False])
def test_pads_of_some_axes_may_change(declutter):
    body = "int64[4] p, float v, int64[2] a) => (float[A,B,C] y) { y = Pad (x, p, v, a) }"
    prepared = Backend.prepare(model_of(f"f (float[2,3,2] x, {body}"), declutter=declutter)
    x = np.random.default_rng(0).standard_normal((2, 3, 2)).astype(F32)
    for pads, axes, wanted in [
        ([1, 0, 2, 3], [0, 2], np.pad(x, ((1, 2), (0, 0), (0, 3)), constant_values=7)),
        ([1, 0, 0, 2], [-2, 0], np.pad(x, ((0, 2), (1, 0), (0, 0)), constant_values=7)),
    ]:
        (y,) = prepared.run([x, np.array(pads), np.array(7, F32), np.array(axes)])
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("declutter", [True, False])
def test_sizes_of_pieces_may_change(declutter):
    body = "int64[3] s) => (float[A] a, float[B] b, float[C] c) { a, b, c = Split (x, s) }"
    prepared = Backend.prepare(model_of(f"f (float[N] x, {body}"), declutter=declutter)
    x = np.arange(6, dtype=F32)
    for sizes in ([1, 2, 3], [6, 0, 0], [2, 2, 2]):
        found = prepared.run([x, np.array(sizes)])
        for one, wanted in zip(found, np.split(x, np.cumsum(sizes)[:-1]), strict=True):
            np.testing.assert_array_equal(one, wanted)
    for wrong in ([1, 2, 2], [4, 4, 4], [7, -1, 0]):
        with pytest.raises(RunError, match="DynSlice"):
            prepared.run([x, np.array(wrong)])


@pytest.mark.parametrize("declutter", [True, False])
def test_axis_of_a_fourier_transform_may_change(declutter):
    prepared = Backend.prepare(
        model_of('f (float[3,4,5,1] x, int64 a) => (float[A,B,C,D] y) { y = DFT (x, "", a) }'), declutter=declutter
    )
    x = np.random.default_rng(0).standard_normal((3, 4, 5, 1)).astype(F32)
    for axis in (0, 1, -2):
        (y,) = prepared.run([x, np.array(axis)])
        wanted = np.fft.fft(x[..., 0].astype(np.float64), axis=axis % 4)
        np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], wanted, rtol=1e-4, atol=1e-4)
    for wrong in (3, -1, 4):
        with pytest.raises(RunError, match=r"axis [45] is outside a tensor of rank 4"):
            prepared.run([x, np.array(wrong)])


@pytest.mark.parametrize("declutter", [True, False])
def test_values_of_one_hot_may_change(declutter):
    prepared = Backend.prepare(
        model_of("f (int64[3] i, int64 d, float[2] v) => (float[3,D] y) { y = OneHot (i, d, v) }"), declutter=declutter
    )
    for depth, (off, on) in ((3, (0, 1)), (4, (5, -2))):
        (y,) = prepared.run([np.array([0, 2, -1]), np.array(depth), np.array([off, on], F32)])
        np.testing.assert_array_equal(y, np.where(np.eye(depth)[[0, 2, depth - 1]] > 0, on, off))


@pytest.mark.parametrize("axes", [[2], [-3], [0, 0], [0, -2]])
def test_axes_that_are_not_there_are_refused_when_they_are_given(axes):
    body = f"int64[{len(axes)}] a) => (float[A,B] y) {{ y = ReduceSum (x, a) }}"
    prepared = Backend.prepare(model_of(f"f (float[2,3] x, {body}"))
    with pytest.raises(RunError, match=r"is outside a tensor of rank 2|of a tensor of rank 2 name one twice"):
        prepared.run([X, np.array(axes)])


def test_the_shape_of_an_input_may_change():
    prepared = Backend.prepare(model_of("f (float[N,M] x) => (float[M,N] y) { y = Transpose (x) }"))
    for shape in ((2, 3), (4, 1), (0, 2)):
        x = np.ones(shape, F32)
        assert prepared.run([x])[0].shape == shape[::-1]


def test_strings_sequences_and_optionals():
    model = model_of(
        """f (string[N] t, seq(float[M]) s, optional(float[K]) o)
           => (string[N] twice, seq(float[M]) same, optional(float[K]) maybe, bool there)
           { twice = StringConcat (t, t)
             same = Identity (s)
             maybe = Identity (o)
             there = OptionalHasElement (o) }"""
    )
    prepared = Backend.prepare(model)
    twice, same, maybe, there = prepared.run([np.array(["a", "é"]), [X[0], X[1][:2]], None])
    assert twice.tolist() == ["aa", "éé"]
    assert twice.dtype == object
    assert [one.tolist() for one in same] == [[0, 1, 2], [3, 4]]
    assert maybe is None
    assert not there
    *_, maybe, there = prepared.run([np.array(["a"]), [], X[0]])
    np.testing.assert_array_equal(maybe, X[0])
    assert there


def test_one_node():
    node = helper.make_node("Sub", ["a", "b"], ["y"])
    (y,) = Backend.run_node(node, [X, X[0]])
    np.testing.assert_array_equal(y, X - X[0])
    assert Backend.run_node(node, [X, X[0]]).y is not None


def test_one_node_by_name():
    node = helper.make_node("Sub", ["a", "b"], ["y"])
    np.testing.assert_array_equal(Backend.run_node(node, {"b": X[0], "a": X})[0], X - X[0])
    with pytest.raises(InputError, match="1 inputs were given, the node reads 2: a, b"):
        Backend.run_node(node, {"a": X})
    with pytest.raises(InputError, match="no input is named c; the node reads a, b"):
        Backend.run_node(node, {"a": X, "b": X, "c": X})


def test_one_node_of_an_old_version():
    node = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])
    (y,) = Backend.run_node(node, [X[None]], opset_version=11)
    np.testing.assert_array_equal(y, X)


def test_one_node_with_an_input_left_out_and_one_given_twice():
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    (y,) = Backend.run_node(node, [X, np.array(2, F32)])
    np.testing.assert_array_equal(y, np.minimum(X, 2))
    (y,) = Backend.run_node(helper.make_node("Mul", ["x", "x"], ["y"]), [X])
    np.testing.assert_array_equal(y, X * X)


def test_one_node_of_sequences_and_of_texts():
    node = helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)
    for second in (X, X[:1]):
        (y,) = Backend.run_node(node, [[X, second]])
        np.testing.assert_array_equal(y, np.concatenate([X, second]))
    (y,) = Backend.run_node(helper.make_node("StringConcat", ["a", "b"], ["y"]), [np.array(["a"]), np.array(["b"])])
    assert y.tolist() == ["ab"]


def test_one_node_of_another_domain():
    (y,) = Backend.run_node(helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=2.5), [X])
    np.testing.assert_array_equal(y, X > 2.5)


def test_a_node_with_the_wrong_number_of_inputs():
    with pytest.raises(InputError, match="1 inputs were given, the node reads 2: a, b"):
        Backend.run_node(helper.make_node("Sub", ["a", "b"], ["y"]), [X])


def test_an_empty_list_says_nothing_of_its_items():
    node = helper.make_node("SequenceLength", ["s"], ["n"])
    with pytest.raises(InputError, match="the list is empty"):
        Backend.run_node(node, [[]])


def test_the_module_is_used_as_other_backends_are():
    """As in ONNX's own guide: ``import x.backend as backend; backend.prepare(model, device).run(image)``."""
    model = model_of(NEGATED)
    np.testing.assert_array_equal(backend.prepare(model, "CPU").run(X)[0], -X)
    np.testing.assert_array_equal(backend.run_model(model, [X])[0], -X)
    np.testing.assert_array_equal(backend.run_node(helper.make_node("Abs", ["x"], ["y"]), X)[0], X)
    assert backend.is_compatible(model)
    assert backend.supports_device("CPU")
    assert not backend.supports_device("TPU")


def test_onnx_runs_its_tests_on_the_module(monkeypatch):
    def only_simple(kind):
        return load_model_tests(kind=kind) if kind == "simple" else []

    monkeypatch.setattr(onnx.backend.test.runner, "load_model_tests", only_simple)
    result = unittest.TestResult()
    onnx.backend.test.BackendTest(backend, __name__).test_suite.run(result)
    assert result.wasSuccessful(), [*result.errors, *result.failures]
    skipped = {test.id().rpartition(".")[2] for test, _ in result.skipped if not test.id().endswith("_cuda")}
    assert result.testsRun > 40
    assert skipped == {"test_gradient_of_add_cpu", "test_gradient_of_add_and_mul_cpu"}


def test_the_path_of_a_file_is_a_model(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model_of(NEGATED), path)
    for given in (path, str(path)):
        np.testing.assert_array_equal(backend.run_model(given, [X])[0], -X)
    with pytest.raises(ModelError, match=r"absent\.onnx: there is no such file"):
        backend.prepare(tmp_path / "absent.onnx")


@pytest.mark.parametrize("model", [None, b"", 3])
def test_what_is_no_model(model):
    with pytest.raises(InputError, match=r"a model is an onnx\.ModelProto or the path of a file, got (None|bytes|int)"):
        backend.prepare(model)
