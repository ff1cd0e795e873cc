"""What established engines answer wrongly, refuse, or crash at, and this project answers rightly.

Every expected value is written down, computed with NumPy in f64, or is that of the backend test suite.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.loader import load_model_tests
from onnx_backend_suite import MODES, REFUSED, all_cases
from onnx_single import node_model
from tract_onnx.backend import Backend
from tract_onnx.registry import ONNX, OnnxOps

import tract_core as tract
from tract_core.errors import ConsumedError, FactError, InputError, TractError
from tract_core.plugins import default_registry

F32 = np.float32


def text_model(body, opset=21):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {body}')


def outputs(model, *inputs):
    """As wired and decluttered, which must agree."""
    (wired, found) = (
        Backend.prepare(text_model(model) if isinstance(model, str) else model, declutter=declutter).run(inputs)
        for declutter in (False, True)
    )
    for one, other in zip(wired, found, strict=True):
        np.testing.assert_array_equal(one, other)
    return list(found)


@pytest.fixture
def runnable(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(text_model("f (float[B,3] x, float[B,3] y) => (float[B,3] z) { z = Add (x, y) }"), path)
    return tract.runtime_for_name("reference").prepare(tract.onnx().load(path).into_model())


ONNX_RUNTIME_IS_WRONG = (
    "test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal",
    "test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal",
    *(f"test_dft{variant}{opset}" for variant in ("", "_axis", "_rfft", "_irfft") for opset in ("", "_opset19")),
    "test_maxunpool_export_with_output_shape",
    "test_resize_downsample_scales_cubic_align_corners",
    "test_resize_downsample_scales_linear_align_corners",
    "test_stft",
    "test_stft_with_window",
)
"""The cases of the backend suite for which it returns values outside the suite's tolerances."""


@pytest.fixture(scope="module")
def cases():
    return all_cases()


class OnnxRuntime(Backend):
    """ONNX Runtime in the place of this project."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return cls(onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]))

    def __init__(self, session):
        self.session = session

    def run(self, inputs):
        names = [one.name for one in self.session.get_inputs()]
        return self.session.run(None, dict(zip(names, inputs, strict=True)))


@pytest.mark.parametrize("name", ONNX_RUNTIME_IS_WRONG)
def test_right_where_onnxruntime_is_wrong(cases, name):
    for options in MODES.values():
        cases[name](None, **options)


@pytest.mark.skipif(not onnxruntime.__version__.startswith("1.31."), reason="the list is that of ONNX Runtime 1.31")
@pytest.mark.parametrize("name", ONNX_RUNTIME_IS_WRONG)
def test_onnxruntime_is_wrong(cases, name):
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        cases[name](None, backend=OnnxRuntime)


def onnxruntime_gives(model, **inputs):
    return OnnxRuntime.prepare(model).run(list(inputs.values()))


def test_a_dilated_pool_has_as_many_windows_as_its_padding_says():
    """``SAME_LOWER``: the size divided by the stride, rounded up. It leaves the dilation out of the padding."""
    model = text_model("""f (float[1,1,5] x) => (float[1,1,K] y) {
        y = MaxPool<kernel_shape = [3], dilations = [2], strides = [2], auto_pad = "SAME_LOWER">(x)
    }""")
    x = np.array([[[5, 1, 2, 0, 3]]], F32)
    assert outputs(model, x)[0].tolist() == [[[5, 5, 3]]]
    assert onnxruntime_gives(model, x=x)[0].shape == (1, 1, 2)


def test_a_normalised_row_of_small_numbers_has_length_one():
    """Their squares are 0 in f32; it gives zeros."""
    model = text_model("f (float[1,2] x) => (float[1,2] y) { y = LpNormalization(x) }")
    x = np.array([[3e-25, 4e-25]], F32)
    np.testing.assert_allclose(outputs(model, x)[0], [[0.6, 0.8]], rtol=1e-6)
    assert not onnxruntime_gives(model, x=x)[0].any()


def test_pieces_of_a_given_size_keep_the_axis():
    """Where a size is given, the text has ``keepdims`` ignored; where that is 1, it is not."""
    model = text_model("""f (float[2,3] x, int64 size) => (seq(float) s) {
        s = SplitToSequence<keepdims = 0>(x, size)
    }""")
    x, size = np.arange(6, dtype=F32).reshape(2, 3), np.array(1)
    (pieces,) = Backend.run_model(model, [x, size])
    assert [piece.tolist() for piece in pieces] == [[[0, 1, 2]], [[3, 4, 5]]]
    assert [piece.shape for piece in onnxruntime_gives(model, x=x, size=size)[0]] == [(3,), (3,)]


def test_the_largest_of_what_is_not_a_number_is_none():
    """It passes such elements over when it looks for the largest."""
    model = text_model("f (float[3] x) => (float[1] y) { y = ReduceMax<keepdims = 1>(x) }")
    x = np.array([np.inf, np.nan, 1], F32)
    assert np.isnan(outputs(model, x)[0]).all()
    assert onnxruntime_gives(model, x=x)[0] == np.inf


def test_attention_in_half_precision_is_nearer_to_the_exact_result():
    """The suite expects what rounding after every step gives: its tolerance is widened for this case."""
    (test,) = (one for one in load_model_tests(kind="node") if one.name == "test_attention_4d_causal_fp16")
    ((q, k, v), (expected,)) = test.data_sets[0]
    scale = np.float16(np.sqrt(1 / np.sqrt(q.shape[-1])))
    scores = (q * scale).astype(np.float64) @ np.swapaxes(k * scale, 2, 3).astype(np.float64)
    allowed = np.arange(scores.shape[-2])[:, None] >= np.arange(scores.shape[-1])
    powers = np.where(allowed, np.exp(scores), 0)
    exact = powers / powers.sum(-1, keepdims=True) @ v.astype(np.float64)
    (found,) = Backend.run_model(test.model, [q, k, v])
    assert np.abs(found - exact).max() < np.abs(expected - exact).max()


def test_instance_normalization_of_several_instances():
    """Each instance has a mean and a variance of its own."""
    x = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(F32) * np.array([1, 10], F32).reshape(2, 1, 1)
    model = """f (float[2,3,5] x, float[3] s, float[3] b) => (float[2,3,5] y) {
        y = InstanceNormalization<epsilon = 0.0>(x, s, b)
    }"""
    scale, bias = np.array([1, 2, 3], F32), np.array([0, 1, -1], F32)
    wide = x.astype(np.float64)
    centred = (wide - wide.mean(-1, keepdims=True)) / wide.std(-1, keepdims=True)
    (y,) = outputs(model, x, scale, bias)
    np.testing.assert_allclose(y, centred * scale[:, None] + bias[:, None], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("BRANCH_LEQ", [1, 1, 0]),
        ("BRANCH_LT", [1, 0, 0]),
        ("BRANCH_GTE", [0, 1, 1]),
        ("BRANCH_GT", [0, 0, 1]),
        ("BRANCH_EQ", [0, 1, 0]),
        ("BRANCH_NEQ", [1, 0, 1]),
    ],
)
def test_every_comparison_of_a_tree(mode, wanted):
    """A stump at 0.5: 1 where the comparison holds, else 0."""
    model = node_model(
        "TreeEnsembleRegressor",
        [np.zeros((3, 1), F32)],
        version=3,
        n_targets=1,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_modes=[mode, "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0, 0],
        target_nodeids=[1, 2],
        target_ids=[0, 0],
        target_weights=[1.0, 0.0],
    )
    (y,) = outputs(model, np.array([[0.2], [0.5], [0.9]], F32))
    assert y.reshape(-1).tolist() == wanted


def test_a_scan_of_no_slices_gives_the_state_it_began_with():
    model = """f (float[2] s, float[N,2] x) => (float[2] last, float[N,2] all) {
        last, all = Scan<num_scan_inputs = 1, body = step (float[2] before, float[2] slice)
            => (float[2] after, float[2] out) { after = Add (before, slice)
                                                out = Identity (after) }>(s, x)
    }"""
    last, every = outputs(model, np.array([1, 2], F32), np.zeros((0, 2), F32))
    assert last.tolist() == [1, 2]
    assert every.shape == (0, 2)


def test_integers_beyond_the_precision_of_floats_are_compared_exactly(tmp_path):
    from click.testing import CliRunner

    from tract_core.cli.frame import app

    onnx.save(text_model("f (int64[2] x) => (int64[2] y) { y = Add (x, x) }"), tmp_path / "m.onnx")
    x = np.array([2**30, 2**52], np.int64)
    for off, exit_code in ((0, 0), (1, 1)):
        np.savez(tmp_path / "io.npz", x=x, y=2 * x + off)
        bundle = str(tmp_path / "io.npz")
        checked = ["--input-from-bundle", bundle, "--assert-output-bundle", bundle, "--approx", "exact"]
        assert CliRunner().invoke(app, [str(tmp_path / "m.onnx"), "run", *checked]).exit_code == exit_code


def test_large_integers_stay_exact():
    big = 2**53
    (y, less) = outputs(
        "f (int64[1] a, int64[1] b) => (int64[1] y, bool[1] less) { y = Max (a, b)\n less = Less (a, b) }",
        np.array([big]),
        np.array([big + 1]),
    )
    assert y.tolist() == [big + 1]
    assert less.tolist() == [True]


def test_division_and_multiplication_of_sizes_go_from_left_to_right(tmp_path):
    onnx.save(text_model("f (float[N] x) => (float[N] y) { y = Neg (x) }"), tmp_path / "m.onnx")
    model = tract.onnx().load(tmp_path / "m.onnx")
    model.set_input_fact(0, "3*S/2,f32")
    assert int(model.into_model().input_fact(0).dim(0).eval({"S": 3})) == 4


def test_missing_inputs_are_an_error(runnable):
    with pytest.raises(InputError, match=r"0 inputs were given, the model takes 2: x \(B,3,f32\), y \(B,3,f32\)"):
        runnable.run([])


def test_too_many_inputs_are_an_error(runnable):
    with pytest.raises(InputError, match="3 inputs were given, the model takes 2"):
        runnable.run([np.zeros((1, 3), F32)] * 3)


def test_two_values_of_one_symbol_are_an_error(runnable):
    with pytest.raises(InputError, match=r"axis 0 has size 3, but B is wanted and B is 2 by input 'x'"):
        runnable.run([np.zeros((2, 3), F32), np.zeros((3, 3), F32)])


@pytest.mark.parametrize("index", [2, 99, -3])
def test_a_fact_that_is_not_there_is_an_error(runnable, tmp_path, index):
    model = tract.onnx().load(tmp_path / "model.onnx")
    for holder in (model, runnable):
        with pytest.raises(InputError):
            holder.input_fact(index)
        with pytest.raises(InputError):
            holder.output_fact(index)
    with pytest.raises(InputError):
        model.into_model().input_fact(index)


def test_a_negative_size_in_a_fact_is_an_error(runnable, tmp_path):
    model = tract.onnx().load(tmp_path / "model.onnx").into_model()
    with pytest.raises(FactError, match="negative"):
        model.parse_fact("-1,f32")


def test_what_was_handed_over_says_so(runnable, tmp_path):
    untyped = tract.onnx().load(tmp_path / "model.onnx")
    model = untyped.into_model()
    with pytest.raises(ConsumedError):
        untyped.input_count()
    runtime = tract.runtime_for_name("reference")
    runtime.prepare(model)
    with pytest.raises(ConsumedError):
        runtime.prepare(model)


def test_complex_numbers_convert():
    found = tract.Tensor.from_numpy(np.array([1.5], F32)).convert_to(tract.DatumType.COMPLEX_F32)
    assert found.to_numpy().tolist() == [1.5 + 0j]


def test_inputs_and_outputs_have_names(runnable):
    assert [runnable.input_name(slot) for slot in range(2)] == ["x", "y"]
    assert runnable.output_name(0) == "z"


def test_a_state_freezes_in_mid_stream(tmp_path):
    """A scan whose state begins as a constant goes on from turn to turn, and from a snapshot."""
    model = text_model("""f (float[N] x) => (float[N] sums) {
        zero = Constant<value = float {0}>()
        last, sums = Scan<num_scan_inputs = 1, body = step (float before, float one) => (float after, float out) {
            after = Add (before, one)
            out = Identity (after)
        }>(zero, x)
    }""")
    onnx.save(model, tmp_path / "m.onnx")
    runnable = tract.runtime_for_name("reference").prepare(tract.onnx().load(tmp_path / "m.onnx").into_model())
    state = runnable.spawn_state()
    assert state.run([np.array([1, 2], F32)])[0].to_numpy().tolist() == [1, 3]
    frozen = state.freeze()
    for going_on in (state, frozen.unfreeze(), frozen.unfreeze()):
        assert going_on.run([np.array([3, 4], F32)])[0].to_numpy().tolist() == [6, 10]


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
        (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
        (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
        (TensorProto.INT4, ml_dtypes.int4),
        (TensorProto.UINT4, ml_dtypes.uint4),
        (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn),
    ],
)
def test_narrow_types(kind, dtype):
    """0, 1, 2 and 6 have exact forms in all of them."""
    node = helper.make_node("Cast", ["x"], ["y"], to=kind)
    infos = [helper.make_tensor_value_info(name, one, [4]) for name, one in (("x", TensorProto.FLOAT), ("y", kind))]
    graph = helper.make_graph(
        [node, helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT)], "g", infos[:1], infos[1:]
    )
    graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [4]))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    x = np.array([0, 1, 2, 6], F32)
    found, back = Backend.run_model(model, [x])
    assert found.dtype == dtype
    assert found.astype(F32).tolist() == back.tolist() == x.tolist()


def test_complex_numbers_pass():
    infos = [helper.make_tensor_value_info(name, TensorProto.COMPLEX64, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", infos[:1], infos[1:])
    x = np.array([1 + 2j, -3j], np.complex64)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert outputs(model, x)[0].tolist() == x.tolist()


def test_loops_end_by_their_condition():
    """Doubles until the number is over 100."""
    model = """f (float x) => (float y, float[K] all) {
        begin = Constant<value = bool {1}>()
        y, all = Loop<body = step (int64 i, bool c, float before) => (bool again, float after, float out) {
            two = Constant<value = float {2}>()
            limit = Constant<value = float {100}>()
            after = Mul (before, two)
            out = Identity (after)
            again = Less (after, limit) }>("", begin, x)
    }"""
    y, every = outputs(model, np.array(15, F32))
    assert y == 120
    assert every.tolist() == [30, 60, 120]


def test_sequences_go_in_and_out():
    model = """f (seq(float[M]) s, float[N] x) => (seq(float[K]) longer, int64 n) {
        longer = SequenceInsert (s, x)
        n = SequenceLength (longer)
    }"""
    prepared = Backend.prepare(text_model(model))
    longer, count = prepared.run([[np.ones(2, F32), np.zeros(0, F32)], np.array([7, 8, 9], F32)])
    assert [one.tolist() for one in longer] == [[1, 1], [], [7, 8, 9]]
    assert count == 3


def test_sequences_of_different_lengths_end_where_they_end():
    """An LSTM with ``sequence_lens`` gives zeros behind the end, and the state of the last step that there was."""
    random = np.random.default_rng(1)
    hidden, x = 3, random.standard_normal((4, 2, 2)).astype(F32)
    w, r = random.standard_normal((1, 12, 2)).astype(F32), random.standard_normal((1, 12, 3)).astype(F32)
    model = f"""f (float[4,2,2] x, float[1,12,2] w, float[1,12,3] r, int32[2] n)
        => (float[4,1,2,3] y, float[1,2,3] h, float[1,2,3] c)
        {{ y, h, c = LSTM<hidden_size = {hidden}>(x, w, r, "", n) }}"""
    y, h, c = outputs(model, x, w, r, np.array([4, 2], np.int32))
    for batch, length in enumerate((4, 2)):
        wanted, state, cell = lstm(x[:length, batch].astype(np.float64), w[0], r[0])
        np.testing.assert_allclose(y[:length, 0, batch], wanted, rtol=1e-5, atol=1e-6)
        assert not y[length:, 0, batch].any()
        np.testing.assert_allclose(h[0, batch], state, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(c[0, batch], cell, rtol=1e-5, atol=1e-6)


def lstm(x, w, r):
    """Step by step, gates in the order input, output, forget, cell."""
    state = cell = np.zeros(r.shape[1])
    steps = []
    for step in x:
        i, o, f, g = np.split(w @ step + r @ state, 4)
        i, o, f = (1 / (1 + np.exp(-gate)) for gate in (i, o, f))
        cell = f * cell + i * np.tanh(g)
        state = o * np.tanh(cell)
        steps.append(state)
    return np.array(steps), state, cell


def test_an_operator_of_another_domain_is_another_operator():
    model = text_model("f (float[N] x) => (float[N] y) { y = Relu (x) }")
    model.graph.node[0].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(TractError, match=r"'Relu' of com\.example, version 1, is not known"):
        Backend.prepare(model)


NOT_REGISTERED_ELSEWHERE = """
    Loop SequenceConstruct SequenceAt SequenceEmpty SequenceInsert SequenceErase SequenceLength SequenceMap
    SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement ReverseSequence Unique Col2Im
    DeformConv Det LpPool MaxRoiPool RoiAlign MaxUnpool Upsample TensorScatter AffineGrid Bernoulli CenterCropPad
    StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer SoftmaxCrossEntropyLoss
    NegativeLogLikelihoodLoss Binarizer LabelEncoder DictVectorizer FeatureVectorizer Imputer OneHotEncoder Scaler
    SVMClassifier SVMRegressor TreeEnsemble TreeEnsembleRegressor ZipMap Adam Adagrad Momentum
""".split()  # noqa: SIM905 (names are easier to read in a text)


@pytest.mark.parametrize("operator", NOT_REGISTERED_ELSEWHERE)
def test_operators_that_others_do_not_have(operator):
    assert OnnxOps(default_registry()[ONNX]).known(operator)


EXCLUDED_ELSEWHERE = """
    adagrad adam momentum affine_grid ai_onnx_ml attention averagepool batchnorm cast castlike center_crop_pad col2im
    compress constant_pad constantofshape cumsum deform_conv det dequantizelinear dropout dynamicquantizelinear identity
    if loop optional sequence instancenorm lppool maxpool maxunpool nllloss qlinearmatmul quantizelinear range reduce
    regex reversesequence roialign sce scan_sum shape slice split_to_sequence split string strnormalizer tensorscatter
    tfidf unique upsample wrap_pad
""".split()  # noqa: SIM905 (names are easier to read in a text)


def test_families_of_the_backend_suite_that_others_leave_out(cases):
    """They are run by ``test_onnx_backend_suite``: here it is seen that they are there, and not refused."""
    for family in EXCLUDED_ELSEWHERE:
        found = [name for name in cases if name.startswith(f"test_{family}")]
        assert found, family
        assert not set(found) & REFUSED.keys() - {"test_affine_grid_3d_align_corners_expanded"}, family
