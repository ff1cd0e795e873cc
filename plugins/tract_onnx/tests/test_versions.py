"""Corners of operators, in the versions and element types that the backend tests leave out, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from onnx_agree import gives, is_refused

from tract_core.errors import FactError

F32 = np.float32
INF, NAN = np.inf, np.nan
RANDOM = np.random.default_rng(0)
LARGEST = np.finfo(F32).max


def f32(*values):
    return np.array(values, F32)


def i64(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize(("limit", "bias"), [(1.5, 0.0), (1.5, 0.25), (0.5, 1.5), (-1.0, 0.25)])
def test_shrink_of_integers(kind, limit, bias):
    """The limit and the bias are no integers; the result is cut off at the point."""
    x = np.arange(0 if kind is np.uint8 else -4, 6).astype(kind)
    wide = x.astype(np.float64)
    wanted = np.where(wide < -limit, wide + bias, np.where(wide > limit, wide - bias, 0))
    gives([np.trunc(wanted).astype(kind)], "Shrink", [x], opset=9, lambd=limit, bias=bias)


def test_erf_of_integers():
    gives([np.array([0, 0, 0, -1, 1], np.int32)], "Erf", [np.array([0, 1, -2, -100, 100], np.int32)], opset=13)


def test_negative_powers_of_integers():
    base, exponent = np.array([1, -1, -1, 2, -3, 7], np.int32), i64(-1, -1, -2, -1, -3, 2)
    gives([np.array([1, -1, 1, 0, 0, 49], np.int32)], "Pow", [base, exponent], opset=13)


@pytest.mark.parametrize("kind", [np.int32, np.uint32])
def test_norms_of_integers_whose_squares_do_not_fit(kind):
    x = np.array([[30_000, 40_000], [90_000, 0]], kind)
    gives([np.array([[50_000], [90_000]], kind)], "ReduceL2", [x, i64(1)], opset=18, fixed=(1,))
    gives([np.array([[50_000], [90_000]], kind)], "ReduceL2", [x], opset=13, axes=[1])


def test_logarithms_of_sums_of_integers_that_do_not_fit():
    x = np.full((1, 4), 2**31 - 1, np.int32)
    gives([np.array([[int(np.log(4 * (2.0**31 - 1)))]], np.int32)], "ReduceLogSum", [x, i64(1)], opset=18, fixed=(1,))


@pytest.mark.parametrize("kind", [np.int32, np.uint64])
def test_gemm_of_integers_by_fractions(kind):
    a, b, c = np.array([[1, 2]], kind), np.array([[3], [4]], kind), np.array([[5]], kind)
    gives([np.array([[8]], kind)], "Gemm", [a, b, c], opset=13, alpha=0.5, beta=0.6)


def test_quantize_by_an_integer():
    gives([np.array([5, 14], np.uint8)], "QuantizeLinear", [np.array([10, 27], np.int32), np.int32(2)], opset=19)


@pytest.mark.parametrize("opset", [9, 13, 22])
def test_eye_like_of_booleans_is_of_booleans(opset):
    gives([np.eye(2, 3).astype(np.bool_)], "EyeLike", [np.zeros((2, 3), np.bool_)], opset=opset)


def test_texts_are_padded_with_empty_ones():
    x = np.array(["a", "b"], dtype=object)
    padded = np.array(["", "a", "b", ""], dtype=object)
    gives([padded], "Pad", [x, i64(1, 1)], opset=13, fixed=(1,))
    gives([padded], "CenterCropPad", [x, i64(4)], opset=18, fixed=(1,))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_added_in_wide_ones(kind):
    """On the way there are numbers that the type does not hold."""
    x = [np.array([value], kind) for value in (3e4, 6e4, -5e4)]
    wide = [one.astype(np.float64) for one in x]
    gives([sum(wide).astype(kind)], "Sum", x, opset=13)
    gives([(sum(wide) / 3).astype(kind)], "Mean", x, opset=13)


@pytest.mark.parametrize(
    ("opset", "kinds"),
    [(14, "ddf"), (14, "ffd"), (15, "fdf"), (15, "dff"), (15, "eed")],
)
def test_batch_normalization_of_mixed_types(opset, kinds):
    """``kinds``: of the tensor, of scale and bias, and of mean and variance."""
    x_kind, scale_kind, mean_kind = map(np.dtype, kinds)
    x = RANDOM.standard_normal((2, 3, 4)).astype(x_kind)
    scale, bias = (RANDOM.standard_normal(3).astype(scale_kind) for _ in range(2))
    mean, variance = RANDOM.standard_normal(3).astype(mean_kind), RANDOM.uniform(0.5, 2, 3).astype(mean_kind)
    a, b, m, v = (one.astype(np.float64)[:, None] for one in (scale, bias, mean, variance))
    wanted = ((x.astype(np.float64) - m) / np.sqrt(v + 1e-5) * a + b).astype(x_kind)
    relative = 1e-3 if x_kind.itemsize < 4 else 1e-6
    gives([wanted], "BatchNormalization", [x, scale, bias, mean, variance], opset=opset, relative=relative)


def test_attributes_are_floats_of_32_bits_by_default_too():
    x = np.array([-1e6], np.float64)
    wanted = [x * np.float64(F32(0.01))]
    gives(wanted, "LeakyRelu", [x], opset=16, relative=1e-15)
    gives(wanted, "LeakyRelu", [x], opset=16, relative=1e-15, alpha=0.01)


@pytest.mark.parametrize("kind", [np.float16, F32, np.float64])
def test_texts_of_floats_have_the_digits_that_their_type_needs(kind):
    """As many as tell a number from its neighbours, as the standard's ``314.15926``."""
    x = np.array([0.1, -2.5, 100.6], kind)
    gives([np.array(["0.1", "-2.5", "100.6"], dtype=object)], "Cast", [x], opset=19, to=TensorProto.STRING)


@pytest.mark.parametrize("kind", [np.int32, np.uint16, np.int64, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize(
    ("to", "dtype", "largest"),
    [
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, 448),
        (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz, 240),
    ],
)
def test_every_number_is_saturated_in_floats_of_8_bits(kind, to, dtype, largest):
    x = np.array([2, 0, 32768], np.float64).astype(kind)
    gives([np.array([2, 0, largest]).astype(dtype)], "Cast", [x], opset=19, to=to)


def test_a_slope_counts_below_zero_only():
    x, slope = f32(1, 0, INF, -1, 2, -INF, NAN), f32(INF, INF, NAN, INF, NAN, 0.5, 1)
    gives([f32(1, 0, INF, -INF, 2, -INF, NAN)], "PRelu", [x, slope], opset=16)


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_clip_ends_at_the_ends_of_the_type(opset):
    x = f32(-INF, -1, 2, INF, NAN)
    gives([f32(-LARGEST, -1, 2, LARGEST, NAN)], "Clip", [x], opset=opset)
    gives([f32(0, 0, 2, LARGEST, NAN)], "Clip", [x, F32(0)], opset=opset)
    gives([f32(-LARGEST, -1, 1, 1, NAN)], "Clip", [x, None, F32(1)], opset=opset)


def test_clip_without_limits_of_its_own():
    """Version 6 names the ends of f32; version 1 none."""
    x = f32(-INF, -1, 2, INF)
    gives([f32(-LARGEST, -1, 2, LARGEST)], "Clip", [x], opset=6)
    gives([x], "Clip", [x], opset=1)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("size", [1e-40, 1e-25, 1.0, 1e30])
def test_lp_normalization_neither_overflows_nor_vanishes(p, size):
    x = f32([3, 0, -4], [0, 0, 0]) * F32(size)
    wide = x[:1].astype(np.float64)
    wanted = np.concatenate([wide / (np.abs(wide) ** p).sum() ** (1 / p), np.zeros((1, 3))])
    gives([wanted.astype(F32)], "LpNormalization", [x], opset=22, p=p, axis=1)


def test_dynamic_quantization_rounds_alike_in_normal_form():
    """Half of the range is between two numbers: what divides by 255 must not become a product."""
    x = f32(-1e-3, 1e-3)
    scale = F32(2e-3) / F32(255)
    wanted = [np.array([0, 255], np.uint8), np.array(scale), np.array(128, np.uint8)]
    gives(wanted, "DynamicQuantizeLinear", [x], opset=11, outputs=3)


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 4)])
def test_expand_to_a_shape_of_fewer_axes(shape, fixed):
    x = RANDOM.standard_normal((2, 3, 1)).astype(F32)
    wanted = np.broadcast_to(x, np.broadcast_shapes(x.shape, shape))
    gives([wanted], "Expand", [x, np.array(shape, np.int64)], opset=13, fixed=fixed)


@pytest.mark.parametrize(("axis", "wanted"), [(0, (1, 0)), (1, (2, 0)), (2, (0, 3)), (3, (0, 1))])
def test_flatten_of_nothing(axis, wanted):
    gives([np.zeros(wanted, F32)], "Flatten", [np.zeros((2, 0, 3), F32)], opset=13, axis=axis, symbolic=False)


@pytest.mark.parametrize(("shape", "target"), [((0,), (0, 2)), ((0, 3), (3, 0)), ((2, 0), (0, 7))])
def test_reshape_of_nothing(shape, target):
    for fixed in ((), (1,)):
        inputs = [np.zeros(shape, F32), i64(*target)]
        gives([np.zeros(target, F32)], "Reshape", inputs, opset=14, fixed=fixed, allowzero=1, symbolic=False)


def test_groups_of_channels_whose_number_a_run_tells():
    x = RANDOM.standard_normal((2, 4, 3)).astype(F32)
    grouped = x.astype(np.float64).reshape(2, 2, 6)
    wanted = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    inputs = [x, np.ones(4, F32), np.zeros(4, F32)]
    gives([wanted.reshape(x.shape).astype(F32)], "GroupNormalization", inputs, opset=21, num_groups=2)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatter_at_places_of_a_length_that_a_run_tells(depth):
    """How many coordinates a place has follows from the axes of the updates."""
    x, places = np.zeros((2, 3, 4), F32), np.array([[0, 1, 2], [1, 2, 3]])[:, :depth]
    updates = RANDOM.standard_normal((2, *x.shape[depth:])).astype(F32)
    wanted = x.copy()
    wanted[tuple(places.T)] = updates
    gives([wanted], "ScatterND", [x, places, updates], opset=18)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_of_nothing(axis):
    x = np.zeros((0, 2), F32)
    found = x if axis == 0 else np.zeros(0, F32) if axis is None else np.zeros((0, 1), F32)
    first, which, counts = ([], [], []) if axis != 1 else ([0], [0, 0], [2])
    attributes = {} if axis is None else {"axis": axis}
    gives([found, i64(*first), i64(*which), i64(*counts)], "Unique", [x], opset=11, outputs=4, **attributes)


def test_deconvolution_with_gaps_behind_the_kernel():
    """More is wanted than is written: zeros follow, wherever padding would be cut off first."""
    x, kernel = f32([[1, 2]]), f32([[1, 10]])
    for auto_pad in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
        gives(
            [f32([[1, 10, 0, 2, 20, 0]])],
            "ConvTranspose",
            [x, kernel],
            opset=11,
            fixed=(1,),
            strides=[3],
            output_shape=[6],
            auto_pad=auto_pad,
        )


@pytest.mark.parametrize(("auto_pad", "before"), [("SAME_UPPER", 1), ("SAME_LOWER", 2)])
def test_same_padding_of_a_dilated_pool(auto_pad, before):
    """As many windows as ``size / stride``, rounded up, whatever the dilation, which others leave out."""
    x = f32(0, 2, 1, 3, 4)
    wide = np.pad(x, (before, 3 - before), constant_values=-INF)
    windows = [max(wide[start], wide[start + 3]) for start in (0, 2, 4)]
    attributes = {"kernel_shape": [2], "dilations": [3], "strides": [2], "auto_pad": auto_pad}
    gives([f32(windows).reshape(1, 1, 3)], "MaxPool", [x.reshape(1, 1, 5)], opset=12, **attributes)


@pytest.mark.parametrize("fixed", [(), (2,)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_an_axis_that_keeps_its_size_is_not_resized(mode, fixed):
    """Nor moved by half an element, as these coordinates would have it, where only a run knows the factor."""
    x = np.arange(12, dtype=F32).reshape(1, 3, 4)
    places = (np.arange(8) + 0.5) / 2
    low = np.minimum(np.floor(places), 3).astype(int)
    share = places - low if mode == "linear" else 0
    wanted = x[..., low] * (1 - share) + x[..., np.minimum(low + 1, 3)] * share
    wanted[..., places >= 3] = x[..., 3:]
    attributes = {"mode": mode, "coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}
    inputs = [x, None, f32(1, 1, 2)]
    gives([wanted.astype(F32)], "Resize", inputs, opset=13, fixed=fixed, symbolic=False, **attributes)


@pytest.mark.parametrize("fixed", [(), (1,)])
def test_the_first_resize_at_factors_known_in_a_run(fixed):
    """On an axis that shrinks it takes the element above, on one that grows the one below."""
    x = np.arange(20, dtype=F32).reshape(1, 1, 4, 5)
    rows, columns = np.ceil(np.arange(2) / 0.6).astype(int), np.arange(10) // 2
    gives([x[:, :, rows][..., columns]], "Resize", [x, f32(1, 1, 0.6, 2)], opset=10, fixed=fixed, symbolic=False)


@pytest.mark.parametrize("opset", [1, 6])
def test_batch_normalization_of_single_elements_in_training(opset):
    x = RANDOM.standard_normal((4, 2, 3)).astype(F32)
    scale, bias, mean, variance = (RANDOM.uniform(0.5, 2, (2, 3)).astype(F32) for _ in range(4))
    wide = x.astype(np.float64)
    own_mean, own_variance = wide.mean(0), wide.var(0)
    wanted = [
        (wide - own_mean) / np.sqrt(own_variance + 1e-5) * scale + bias,
        mean * 0.75 + own_mean * 0.25,
        variance * 0.75 + own_variance * 0.25,
        own_mean,
        own_variance,
    ]
    gives(
        [one.astype(F32) for one in wanted],
        "BatchNormalization",
        [x, scale, bias, mean, variance],
        opset=opset,
        outputs=5,
        symbolic=False,
        relative=1e-5,
        spatial=0,
        momentum=0.75,
    )


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax_of_no_elements(op_type, opset):
    gives([np.zeros((2, 0), F32)], op_type, [np.zeros((2, 0), F32)], opset=opset, symbolic=False)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax_of_no_axes(op_type, opset):
    is_refused(FactError, "wants at least one axis", op_type, [F32(1)], opset=opset, axis=0)


def test_a_fraction_is_no_integer():
    x = np.arange(3, dtype=np.int64)
    is_refused(FactError, r"0\.5 is no i64", "Pad", [x], opset=2, pads=[1, 1], value=0.5)
