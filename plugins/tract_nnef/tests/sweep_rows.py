"""Every operator with a value for each parameter: tensors as arrays, and all else as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(13)


def floats(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> Array:
    return RNG.uniform(1.1, 3, shape).astype(np.float32)


def inside(*shape: int) -> Array:
    return RNG.uniform(-0.9, 0.9, shape).astype(np.float32)


def integers(*shape: int, below: int = 3, kind: Any = np.int64) -> Array:
    return RNG.integers(0, below, shape).astype(kind)


def flags(*shape: int) -> Array:
    return RNG.integers(0, 2, shape).astype(bool)


@dataclass(frozen=True)
class Row:
    """``constants``: parameters whose tensors may not be computed. ``fragments``: what the document has too."""

    values: Mapping[str, Array | str]
    results: int = 1
    constants: Sequence[str] = ()
    fragments: str = ""


def row(results: int = 1, constants: Sequence[str] = (), fragments: str = "", **values: Array | str) -> Row:
    return Row(values, results, constants, fragments)


def _window(**more: Array | str) -> Row:
    """Of windows over all axes."""
    named: dict[str, Array | str] = {
        "input": floats(1, 2, 6),
        "size": "[1, 1, 3]",
        "border": "'ignore'",
        "padding": "[(0, 0), (0, 0), (1, 1)]",
        "stride": "[1, 1, 2]",
        "dilation": "[1, 1, 1]",
    }
    return row(**(named | more))


def _convolution(**more: Array | str) -> Row:
    named: dict[str, Array | str] = {
        "input": floats(1, 4, 7),
        "filter": floats(6, 2, 3),
        "bias": floats(1, 6),
        "border": "'constant'",
        "padding": "[(1, 1)]",
        "stride": "[2]",
        "dilation": "[1]",
        "groups": "2",
    }
    return row(**(named | more))


def _separable(**more: Array | str) -> Row:
    planes = {"plane_filter": floats(4, 1, 3), "point_filter": floats(4, 4, 1), "bias": floats(1, 4), "groups": "1"}
    found = _convolution(**planes, **more)
    return replace(found, values={name: value for name, value in found.values.items() if name != "filter"})


def _unary(values: Array) -> Row:
    return row(x=values)


def _binary(a: Array, b: Array) -> Row:
    return row(x=a, y=b)


_QUANTIZED: dict[str, Array | str] = {
    "a0": "1",
    "a_scale": "0.5",
    "b0": "2",
    "b_scale": "0.25",
    "c0": "3",
    "c_scale": "2.0",
}
_REGIONS: dict[str, Array | str] = {
    "input": floats(2, 1, 6, 6),
    "rois": np.array([[0, 0, 3, 3], [1, 1, 5, 4]], np.float32),
    "batch_index": np.array([0, 1], np.int64),
    "output_size": "[2, 2]",
}
_GRID: dict[str, Array | str] = {
    "input": floats(1, 1, 4, 5),
    "grid": inside(1, 3, 2, 2),
    "mode": "'bilinear'",
    "padding_mode": "'zeros'",
    "align_corners": "false",
}
_RESIZE: dict[str, Array | str] = {
    "input": floats(1, 1, 3, 4),
    "coord_transformer": "'half_pixel'",
    "interpolator": "'linear'",
    "nearest_mode": "'floor'",
}
_NORM: dict[str, Array | str] = {"input": floats(2, 3), "axis": "1", "eps": "1e-6"}
_EXP: dict[str, Array | str] = {
    "input": positive(2, 3),
    "state": positive(3),
    "axis": "0",
    "alpha": "0.5",
    "skip": "0",
    "stateless": "false",
}
_BODY = """fragment body(s: tensor<scalar>, x: tensor<scalar>, w: tensor<scalar>)
-> (t: tensor<scalar>, y: tensor<scalar>) { t = s + x; y = t * w; }
"""

_POSITIVE = ("acosh", "log", "log2", "rsqr", "rsqrt", "sqrt", "recip", "rcp")
_INSIDE = ("acos", "asin", "atanh")
_ANY = (
    "abs asinh atan ceil cos cosh exp floor neg round sigmoid sign sin sinh sqr square tan tanh copy relu softplus gelu"
    " silu tract_core_round_even tract_core_erf tract_core_hard_swish tract_core_is_nan tract_core_silu"
    " tract_transformers_silu"
)
_REDUCED = (
    "max_reduce min_reduce mean_reduce argmax_reduce argmin_reduce tract_core_argmax_reduce_last"
    " tract_core_argmin_reduce_last tract_core_product_reduce"
)
_CACHE: Mapping[str, Array | str] = {
    "input": floats(1, 2, 6, 4),
    "name": "'past'",
    "axis": "2",
    "datum_type": "'f32'",
    "past_sequence_shape": "[1, 2, 0, 4]",
    "input_sequence_shape": "[1, 2, 6, 4]",
}
_HEADS: Mapping[str, Array | str] = {"q": floats(1, 2, 3, 4), "k": floats(1, 1, 3, 4), "v": floats(1, 1, 3, 4)}
_COMPARED = "add sub mul div min max lt le gt ge eq ne"

TABLE: Mapping[str, Row] = {
    **{name: _unary(floats(2, 3)) for name in _ANY.split()},
    **{name: _unary(positive(2, 3)) for name in _POSITIVE},
    **{name: _unary(inside(2, 3)) for name in _INSIDE},
    **{name: _binary(floats(2, 3), positive(2, 3)) for name in _COMPARED.split()},
    **{name: _binary(flags(2, 3), flags(2, 3)) for name in ("and", "or", "tract_core_xor")},
    **{
        f"tract_{name}": _binary(integers(2, 3, below=9), integers(2, 3, below=4))
        for name in ("core_bitand", "core_bitor", "core_bitxor", "shl", "shr")
    },
    "pow": _binary(positive(2, 3), floats(2, 3)),
    "not": _unary(flags(2, 3)),
    "tract_core_bitnot": _unary(integers(2, 3)),
    # the standard
    "add_n": row(x="[t0, t1]"),
    "copy_n": row(x=floats(2, 3), times="2", results=2),
    "elu": row(x=floats(2, 3), alpha="1.0"),
    "selu": row(x=floats(2, 3), alpha="1.67326319", **{"lambda": "1.05070102"}),
    "leaky_relu": row(x=floats(2, 3), alpha="0.25"),
    "prelu": row(x=floats(2, 3), alpha=positive(1, 3)),
    "softabs": row(x=floats(2, 3), epsilon="0.5"),
    "clamp": row(x=floats(2, 3), a=floats(1, 1), b=positive(1, 1)),
    "select": row(condition=flags(2, 3), true_value=floats(2, 3), false_value=floats(2, 1)),
    "constant": row(shape="[2, 2]", value="[1.0, 2.0, 3.0, 4.0]"),
    "conv": _convolution(),
    "deconv": _convolution(input=floats(1, 6, 4), filter=floats(4, 3, 3), bias=floats(1, 4), output_shape="[]"),
    "separable_conv": _separable(),
    "separable_deconv": _separable(stride="[1]", output_shape="[]"),
    "box": _window(normalize="false"),
    "debox": _window(normalize="false", output_shape="[]"),
    "max_pool": _window(),
    "avg_pool": _window(),
    "rms_pool": _window(),
    "argmax_pool": _window(),
    "max_pool_with_index": replace(_window(), results=2),
    "sample": _window(index=np.zeros((1, 2, 3), np.int64)),
    "desample": _window(input=floats(1, 2, 3), index=np.zeros((1, 2, 3), np.int64), output_shape="[1, 2, 6]"),
    **{name: row(input=floats(2, 3, 2), axes="[1]") for name in _REDUCED.split()},
    "sum_reduce": row(input=floats(2, 3, 2), axes="[0, 1]", normalize="false"),
    "all_reduce": row(input=flags(2, 3), axes="[1]"),
    "any_reduce": row(input=flags(2, 3), axes="[1]"),
    "moments": row(input=floats(2, 3), axes="[1]", results=2),
    "matmul": row(A=floats(2, 3), B=floats(4, 3), transposeA="false", transposeB="true"),
    "linear": row(input=floats(2, 3), filter=floats(4, 3), bias=floats(1, 4)),
    "softmax": row(x=floats(2, 3), axes="[1]"),
    "concat": row(values="[t0, t1]", axis="1"),
    "stack": row(values="[t0, t1]", axis="1"),
    "split": row(value=floats(2, 6), axis="1", ratios="[1, 2]", results=2),
    "unstack": row(value=floats(2, 3), axis="0", results=2),
    "reshape": row(input=floats(2, 3, 4), shape="[4, 3]", axis_start="1", axis_count="2"),
    "transpose": row(input=floats(2, 3, 4), axes="[2, 0, 1]"),
    "squeeze": row(input=floats(2, 1, 3), axes="[1]"),
    "unsqueeze": row(input=floats(2, 3), axes="[0, 2]"),
    "slice": row(input=floats(4, 5), axes="[0, 1]", begin="[1, 2]", end="[3, 4]", stride="[1, 1]"),
    "tile": row(input=floats(2, 3), repeats="[2, 3]"),
    "pad": row(input=floats(2, 3), padding="[(0, 1), (2, 0)]", border="'constant'", value="0.0"),
    "gather": row(input=floats(4, 3), indices=integers(2, 2), axis="0"),
    "batch_normalization": row(
        input=floats(2, 3, 4),
        mean=floats(1, 3),
        variance=positive(1, 3),
        offset=floats(1, 3),
        scale=floats(1, 3),
        epsilon="0.5",
    ),
    "local_response_normalization": row(input=floats(1, 3, 4), size="[1, 1, 3]", alpha="1.0", beta="0.5", bias="1.0"),
    "local_mean_normalization": row(input=floats(1, 3, 4), size="[1, 1, 3]"),
    "local_variance_normalization": row(input=floats(1, 3, 4), size="[1, 1, 3]", bias="1.0", epsilon="0.5"),
    "local_contrast_normalization": row(input=floats(1, 3, 4), size="[1, 1, 3]", bias="1.0", epsilon="0.5"),
    "l1_normalization": row(input=floats(2, 3), axes="[1]", bias="1.0", epsilon="0.5"),
    "l2_normalization": row(input=floats(2, 3), axes="[1]", bias="1.0", epsilon="0.5"),
    "nearest_upsample": row(input=floats(1, 2, 2, 3), factor="[2, 2]"),
    "nearest_downsample": row(input=floats(1, 2, 4, 6), factor="[2, 2]"),
    "area_downsample": row(input=floats(1, 2, 4, 6), factor="[2, 2]"),
    "multilinear_upsample": row(input=floats(1, 2, 2, 3), factor="[2, 2]", method="'symmetric'", border="'replicate'"),
    "linear_quantize": row(x=floats(2, 3), min="-2.0", max="3.0", bits="4"),
    "logarithmic_quantize": row(x=positive(2, 3), max="3.0", bits="4"),
    "min_max_linear_quantize": row(x=floats(2, 3), min="-2.0", max="3.0", bits="4", signed="true", symmetric="false"),
    "zero_point_linear_quantize": row(
        x=floats(2, 3), zero_point="3", scale="0.5", bits="4", signed="true", symmetric="false"
    ),
    "avg_roi_pool": row(**_REGIONS),
    "max_roi_pool": row(**_REGIONS),
    "roi_resample": row(**_REGIONS, method="'symmetric'"),
    "avg_roi_align": row(**_REGIONS, sampling_rate="[2, 2]", resize_method="'symmetric'"),
    "max_roi_align": row(**_REGIONS, sampling_rate="[2, 2]", resize_method="'symmetric'"),
    "update": row(variable=floats(2, 3), value=floats(2, 3)),
    # tract_core
    "tract_core_broadcast": row(input=floats(3), shape="[2, 3]"),
    "tract_core_cast": row(input=floats(2, 3), to="'f16'"),
    "tract_core_clamped_swiglu": row(gate=floats(2, 3), up=floats(2, 3), alpha="1.5", limit="1.0"),
    "tract_core_cumsum": row(input=floats(2, 3), axis="1", exclusive="false", reverse="false"),
    "tract_core_downsample": row(input=floats(5, 2), axis="0", stride="2", modulo="0"),
    "tract_core_dyn_slice": row(input=floats(5), start=np.array(1), end=np.array(3), len="2", axis="0"),
    "tract_core_einsum": row(inputs="[t0, t1]", expr="'ab,ab->a'", acc="'f32'", output="''", sums="''"),
    "tract_core_einsum_q": row(
        inputs="[q0, q1]", expr="'mk,kn,,,,,,,->mn'", acc="'i32'", output="'i32'", bias="0", **_QUANTIZED
    ),
    "tract_core_matmul": row(A=floats(2, 3), B=floats(3, 4), axes="[0, 1, 0, 1, 0, 1]"),
    "tract_core_qmatmul": row(
        A=integers(2, 3, kind=np.uint8),
        B=integers(3, 4, kind=np.uint8),
        bias="0",
        axes="[0, 1, 0, 1, 0, 1]",
        output_type="'i32'",
        **_QUANTIZED,
    ),
    "tract_core_qconv": row(
        input=integers(1, 4, 7, kind=np.uint8),
        filter=integers(6, 2, 3, kind=np.int8),
        bias=integers(6, kind=np.int32),
        group="0",
        dilation="[1]",
        stride="[2]",
        padding="[(0, 0)]",
        border="'constant'",
        output_dt="'i32'",
        groups="2",
        **_QUANTIZED,
    ),
    "tract_core_fft": row(input=floats(2, 4, 2), axis="1", inverse="false"),
    "tract_core_stft": row(
        input=floats(1, 8, 2), axis="1", frame="4", stride="2", window=floats(4), constants=("window",)
    ),
    "tract_core_inner_dim_to_complex": row(input=floats(3, 2)),
    "tract_core_complex_to_inner_dim": row(input=floats(3, 2).view(np.complex64).reshape(3)),
    "tract_core_gather": row(input=floats(4, 3), indices=integers(2), axis="0", datum_type="'f32'"),
    "tract_core_gather_elements": row(input=floats(3, 3), indices=integers(2, 3), axis="0"),
    "tract_core_gather_nd": row(input=floats(3, 3), indices=integers(2, 2), batch_dims="0"),
    "tract_core_scatter_elements": row(
        input=floats(3, 3), indices=np.array([[0, 1, 2]]), updates=floats(1, 3), axis="0", reduction="'none'"
    ),
    "tract_core_scatter_nd": row(input=floats(3, 3), indices=np.array([[0, 1]]), updates=floats(1), reduction="'none'"),
    **dict.fromkeys(("tract_core_grid_sample", "tract_onnx_grid_sample"), row(**_GRID)),
    "tract_core_gru_epilogue": row(xh=floats(2, 9), rh=floats(2, 9), h_prev=floats(2, 3), hidden="3"),
    "tract_core_lstm_epilogue": row(preact=floats(2, 12), c_prev=floats(2, 3), hidden="3", results=2),
    "tract_core_gru_seq": row(
        x=floats(2, 4, 3),
        w=floats(6, 3),
        r=floats(6, 2),
        b=floats(1, 12),
        initial_h=floats(2, 1, 2),
        hidden="2",
        chunk="1",
        has_bias="true",
        reset_every_turn="false",
        emit_y="true",
        projected="false",
        results=2,
    ),
    **dict.fromkeys(
        ("tract_core_gelu_approx", "tract_transformers_gelu_approx"), row(input=floats(2, 3), fast_impl="false")
    ),
    "tract_core_is_inf": row(input=floats(2, 3), detect_positive="true", detect_negative="true"),
    "tract_core_log_softmax": row(x=floats(2, 3), axes="[1]"),
    "tract_core_softmax": row(x=floats(2, 3), axes="[1]", exp="''"),
    "tract_core_one_hot": row(input=integers(3), axis="1", dim="4", value_off="0.0", value_on="1.0"),
    "tract_core_pow_const": row(input=positive(2, 3), exponent="2.5"),
    "tract_core_range": row(start=np.array(1), end=np.array(7), step=np.array(2)),
    "tract_core_resize": row(**_RESIZE, sizes="[1, 1, 6, 4]", axes="[0, 1, 2, 3]"),
    **dict.fromkeys(("tract_core_rms_norm", "tract_transformers_rms_norm"), row(**_NORM)),
    "tract_core_scaled_rms_norm": row(**_NORM, scale=floats(3), out_dt="''", scale_dt="''"),
    "tract_core_scan": row(
        body="'body'",
        scan="[('x', t0, 1, 1)]",
        full="[('w', 2.0)]",
        state="[('s', t2, 't')]",
        output="[('y', 'full', 1, 1), ('t', 'last', 0, 1)]",
        skip="0",
        reset_every_turn="false",
        external_state="false",
        extensions="[]",
        results=2,
        fragments=_BODY,
    ),
    "tract_core_shape_of": row(input=floats(2, 3)),
    "tract_core_topk": row(input=floats(2, 5), k=np.array(2), axis="1", largest="true", results=2),
    "tract_core_trilu": row(input=floats(3, 3), k=np.array(1), upper="true"),
    # tract_onnx
    "tract_onnx_lrn": row(input=floats(1, 4, 3), alpha="1e-4", beta="0.75", bias="1.0", size="3"),
    "tract_onnx_multinomial": row(input=floats(1, 3), dtype="6", sample_size="1", seed="7"),
    "tract_onnx_non_max_suppression": row(
        boxes=np.array([[[0, 0, 2, 2], [0, 0, 2, 1.9], [4, 4, 5, 5]]], np.float32),
        scores=np.array([[[0.9, 0.8, 0.7]]], np.float32),
        max_output_boxes_per_class=np.array(2),
        iou_threshold=np.array(0.5, np.float32),
        score_threshold=np.array(0.1, np.float32),
        center_point_box="0",
    ),
    "tract_onnx_non_zero": row(input=floats(2, 3), count_symbol="'n'"),
    "tract_onnx_random": row(datum_type="'f32'", shape="[2, 3]", dist="'uniform'", parameters="[0.0, 1.0]", seed="7"),
    "tract_onnx_resize": row(
        **_RESIZE,
        scales="[1.0, 1.0, 2.0, 2.0]",
        cubic_coeff_a="-0.75",
        exclude_outside="false",
        antialias="false",
        extrapolation_value="0.0",
        axes="[0, 1, 2, 3]",
    ),
    "tract_onnx_ml_direct_lookup": row(
        input=integers(3), values=floats(3), fallback=floats(1).reshape(()), constants=("values", "fallback")
    ),
    "tract_onnx_ml_reverse_lookup": row(
        input=np.array([5, 9], np.int32),
        keys=np.array([9, 5, 7], np.int32),
        fallback=np.array(-1, np.int32),
        datum_type="'i32'",
        constants=("keys", "fallback"),
    ),
    "tract_onnx_ml_tree_ensemble_classifier": row(
        input=floats(2, 1),
        trees=np.array([0], np.uint32),
        nodes=np.array([[0, 1, 2, 0, 3], [0, 1, 0, 0, 0], [1, 2, 0, 0, 0]], np.uint32),
        leaves=np.array([[0, 0x3F800000], [1, 0x40000000]], np.uint32),
        max_used_feature="0",
        n_classes="2",
        aggregate_fn="'SUM'",
        datum_type="'f32'",
        constants=("trees", "nodes", "leaves"),
    ),
    # the others
    "tract_extra_exp_mean_norm": row(**_EXP, scaling_factor="1.0"),
    "tract_extra_exp_unit_norm": row(**_EXP, complex="false", epsilon="1e-14"),
    "tract_pulse_delay": row(input=floats(1, 4), axis="1", delay="2", overlap="1"),
    "tract_pulse_cumsum": row(input=floats(1, 4), axis="1", exclusive="false", skip="0"),
    "tract_pulse_mask": row(input=floats(1, 4), axis="1", begin="1", end="3", value="0.0"),
    "tract_pulse_pulse_pad": row(
        input=floats(1, 4),
        axis="1",
        before="1",
        after="1",
        begin_input="1",
        end_input="3",
        border="'constant'",
        value="0.0",
        overlap="0",
    ),
    "tract_transformers_apply_rope": row(input=floats(2, 4), cos=floats(2, 4), sin=floats(2, 4)),
    **dict.fromkeys(
        ("tract_transformers_causal_conv1d_update", "tract_qwen35_causal_conv1d_update"),
        row(2, input=floats(1, 2, 5), weight=floats(2, 4), initial_state=floats(1, 2, 4)),
    ),
    "tract_transformers_dyn_kv_cache": row(**_CACHE),
    **dict.fromkeys(
        ("tract_transformers_gdn_recurrent", "tract_qwen35_gdn_recurrent"),
        row(
            2,
            query=floats(1, 3, 1, 4),
            key=floats(1, 3, 1, 4),
            value=floats(1, 3, 2, 4),
            log_decay=-positive(1, 3, 2),
            beta=inside(1, 3, 2),
            initial_state=floats(1, 2, 4, 4),
        ),
    ),
    "tract_transformers_quantized_dyn_kv_cache": row(**_CACHE, bits="4", per_channel="0"),
    "tract_transformers_quantized_kv_sdpa": row(**_HEADS, axis="2", scale="0.5"),
    "tract_transformers_scaled_masked_softmax": row(
        input=floats(2, 3), mask=floats(2, 3), scale="0.5", post_softmax_mask="false"
    ),
    "tract_transformers_sdpa": row(
        q=floats(1, 2, 4),
        k=floats(1, 3, 4),
        v=floats(1, 3, 4),
        mask=floats(1, 2, 3),
        scale="0.5",
        datum_type="'f32'",
        acc_datum_type="'f32'",
        is_causal="false",
    ),
    "tract_transformers_window_kv_sdpa": row(**_HEADS, axis="2", window="2", scale="0.5"),
}
"""By operator."""

APART = {
    "cast": "it has one tensor, and wants a type: test_standard_names.py",
    "external": "it makes inputs: test_liberties.py",
    "tract_core_external": "it makes inputs: test_liberties.py",
    "within_bound_index": "its result is a size: test_liberties.py",
    "variable": "its argument is the name of a file: test_opl_beside.py",
    "tract_core_submodel": "its argument is the name of a file: test_opl_beside.py",
    "tract_resource_get": "its arguments are the names of files and places: test_opl_beside.py",
}
"""Operators that are tested elsewhere."""

EXTRA_TENSORS = {
    "t0": floats(2, 3),
    "t1": floats(2, 3),
    "t2": floats(2, 1),
    "q0": integers(2, 3, kind=np.uint8),
    "q1": integers(3, 2, kind=np.uint8),
}
"""Tensors that texts of the table mention."""

COMPUTED = {
    ("reshape", "shape"),
    ("tile", "repeats"),
    ("slice", "begin"),
    ("slice", "end"),
    ("tract_core_broadcast", "shape"),
    ("tract_core_resize", "sizes"),
    ("tract_onnx_resize", "scales"),
}
"""Parameters that are no tensors, whose numbers only a run may know."""
