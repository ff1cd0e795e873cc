"""Every operator with every parameter in every form that the grammar allows: the table, and the documents made of it.

A row has a value for each parameter, tensors as arrays and all else as it is written. `forms` makes documents that mean
the same: a value as a number, a float, an array of one, a variable, what is computed, left out where it is the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tract_nnef.archive.tensors import tensor_file
from tract_nnef.reading.operators import declaration
from tract_nnef.registry import NNEF, Operator
from tract_nnef.syntax import ast
from tract_nnef.syntax.parser import parse_statements

from tract_core.data import DatumType
from tract_core.plugins import default_registry

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
}
"""By operator."""

APART = {
    "cast": "it has one tensor, and wants a type: test_standard_names.py",
    "external": "it makes inputs: test_liberties.py",
    "tract_core_external": "it makes inputs: test_liberties.py",
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


@dataclass(frozen=True)
class Document:
    """A text, the files beside it, and the inputs to run it on. ``is_list``: whether the form is one of a list."""

    form: str
    text: str
    files: Mapping[str, bytes]
    inputs: Sequence[Array]
    is_list: bool = False


def operators() -> Mapping[str, tuple[str, ast.Fragment]]:
    """The registry and the declaration of each operator that is read, by its name."""
    table = default_registry()[NNEF]
    found: dict[str, tuple[str, ast.Fragment]] = {}
    for key in sorted(table.names()):
        registry, name = key.split("/")
        held = table.find(key)
        if isinstance(held, Operator) and registry != "tract_py":
            found.setdefault(name, (registry, declaration(held.declaration)))
    return found


def forms(name: str) -> Iterator[Document]:
    """The documents of an operator, the plainest one first: tensors from outside, by place, all else by name."""
    registry, declared = operators()[name]
    case = _Case(name, registry, declared, TABLE[name])
    yield case.document("plain")
    yield case.document("by name", named=True)
    if all(one.name in case.row.values for one in declared.parameters):
        yield case.document("by place", named=False)
    yield case.in_fragment()
    for parameter in declared.parameters:
        for form, argument in case.others(parameter):
            document = case.document(f"{parameter.name}: {form}", **{parameter.name: argument})
            yield replace(document, is_list=isinstance(parameter.type, ast.ArrayOf))


@dataclass(frozen=True)
class Argument:
    """How an argument is written, statements before the one that has it, and files beside the text. ``text`` is
    ``None`` for one that is left out. ``inputs``: what it wants from outside."""

    text: str | None
    statements: str = ""
    files: Mapping[str, Array] = field(default_factory=dict)
    inputs: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class _Case:
    name: str
    registry: str
    declared: ast.Fragment
    row: Row

    def usual(self, parameter: str) -> Argument:
        """The plainest form."""
        value = self.row.values[parameter]
        if isinstance(value, str):
            return Argument(value, inputs={name: one for name, one in EXTRA_TENSORS.items() if name in value})
        if parameter in self.row.constants:
            return self.variable(parameter, value)
        return Argument(f"in_{parameter.lower()}", inputs={f"in_{parameter.lower()}": value})

    def variable(self, parameter: str, value: Array) -> Argument:
        held = f"{parameter.lower()}_held"
        shape = ", ".join(map(str, value.shape))
        return Argument(held, f"{held} = variable(label = '{held}', shape = [{shape}]);\n", {held: value})

    def document(self, form: str, named: bool | None = None, **others: Argument) -> Document:
        """``named``: whether all arguments have names, or none; if not said, all but tensors have."""
        parts: list[str] = []
        chosen: list[Argument] = []
        gap = False
        for parameter in self.declared.parameters:
            if parameter.name not in self.row.values:
                gap = True
                continue
            argument = others.get(parameter.name) or self.usual(parameter.name)
            chosen.append(argument)
            by_name = not isinstance(parameter.type, ast.TensorOf) if named is None else named
            gap |= argument.text is None
            if argument.text is not None:
                gap |= by_name
                parts.append(f"{parameter.name} = {argument.text}" if gap else argument.text)
        return self._document(form, f"{self.name}({', '.join(parts)})", chosen)

    def in_fragment(self) -> Document:
        """The operator in a fragment, whose parameters are its arguments."""
        given = [one for one in self.declared.parameters if one.name in self.row.values]
        chosen = [self.usual(one.name) for one in given]
        types = [_type(one.type) for one in given]
        own = [f"p{place}" for place in range(len(given))]
        results = [f"r{place}" for place in range(self.row.results)]
        parameters = ", ".join(f"{name}: {kind}" for name, kind in zip(own, types, strict=True))
        arguments = ", ".join(f"{one.name} = {name}" for one, name in zip(given, own, strict=True))
        body = f"{self._targets(results)} = {self.name}({arguments});"
        typed = ", ".join(f"{one}: tensor<?>" for one in results)
        before = f"fragment wrapped({parameters}) -> ({typed}) {{ {body} }}\n"
        call = f"wrapped({', '.join(str(one.text) for one in chosen)})"
        return self._document("in a fragment", call, chosen, before, as_tuple=True)

    def _targets(self, names: Sequence[str], *, as_tuple: bool = False) -> str:
        listed = isinstance(self.declared.results[0].type, ast.ArrayOf) and not as_tuple
        return f"[{', '.join(names)}]" if listed else ", ".join(names)

    def _document(
        self, form: str, call: str, chosen: Sequence[Argument], before: str = "", *, as_tuple: bool = False
    ) -> Document:
        inputs = {name: value for one in chosen for name, value in one.inputs.items()}
        lines = [
            f"{name} = tract_core_external(shape = {list(value.shape)}, datum_type = '{_kind(value)}');\n"
            for name, value in inputs.items()
        ]
        lines += dict.fromkeys(one.statements for one in chosen)
        outputs = [f"out{place}" for place in range(self.row.results)]
        lines.append(f"{self._targets(outputs, as_tuple=as_tuple)} = {call};\n")
        registries = dict.fromkeys(["tract_core", *([self.registry] if self.registry != "tract_nnef" else [])])
        head = "".join(f"extension tract_registry {one};\n" for one in registries)
        symbols = "extension tract_symbol n;\n" if "count_symbol" in self.row.values else ""
        graph = f"graph network({', '.join(inputs)}) -> ({', '.join(outputs)})\n{{\n{''.join(lines)}}}\n"
        files = {f"{name}.dat": _file(value) for one in chosen for name, value in one.files.items()}
        text = f"version 1.0;\n{head}{symbols}{self.row.fragments}{before}{graph}"
        return Document(form, text, files, list(inputs.values()))

    def others(self, parameter: ast.Parameter) -> Iterator[tuple[str, Argument]]:
        """Other forms of an argument, which mean the same."""
        value = self.row.values.get(parameter.name)
        if value is None:
            return
        if isinstance(value, str):
            yield from self.of_text(parameter, value)
            if parameter.default is not None and _same(parameter.default, value):
                yield "left out", Argument(None)
        else:
            yield from self.of_tensor(parameter.name, value)

    def of_tensor(self, name: str, value: Array) -> Iterator[tuple[str, Argument]]:
        yield "a variable", self.variable(name, value)
        if value.dtype in (np.float32, np.int64, bool) and value.size <= 24:
            text = _written(value.tolist())
            yield "a literal", Argument(text)
            yield "a name of a literal", Argument("named", f"named = {text};\n")
            if not value.ndim:
                yield "a literal in an array", Argument(f"[{text}]")
            if value.dtype == np.int64 and name in _INDICES:
                yield "floats", Argument(_written(value.astype(float).tolist()))

    def of_text(self, parameter: ast.Parameter, text: str) -> Iterator[tuple[str, Argument]]:
        kind = _type(parameter.type)
        if "tensor" in kind:
            return
        yield "a name of a literal", Argument("named", f"named = {text};\n")
        if kind == "string":
            yield "in other quotes", Argument(text.replace("'", '"'))
            yield "in an array", Argument(f"[{text}]")
        elif "string" not in kind:
            yield from self.of_numbers(parameter.name, kind, text)

    def of_numbers(self, name: str, kind: str, text: str) -> Iterator[tuple[str, Argument]]:
        """A number or an array of numbers, of whole ones, or of truth values."""
        value: Any = _value(text)
        whole = "integer" in kind
        if kind == "logical":
            yield "a number", Argument(str(int(value)))
        if not isinstance(value, list):
            yield "in an array", Argument(f"[{text}]")
            yield "in an array in an array", Argument(f"[[{text}]]")
        elif len(value) == 1 and kind == "integer[]":
            yield "a single number", Argument(str(value[0]))
        yield "arrays of arrays", Argument(text.replace("(", "[").replace(")", "]"))
        if whole:
            yield "floats", Argument(_written(_floats(value)))
        if value != []:
            natural = np.array(value, np.int64 if whole else bool if kind == "logical" else np.float32)
            yield "a variable", self.variable(name, natural)
            yield from self.of_whole(name, natural) if whole else ()

    def of_whole(self, name: str, value: Array) -> Iterator[tuple[str, Argument]]:
        """Whole numbers as tensors."""
        yield "a variable of floats", self.variable(name, value.astype(np.float32))
        yield "a variable of i32", self.variable(name, value.astype(np.int32))
        halves = _written((value / 2).tolist())
        yield "computed of floats", Argument("a2", f"a1 = mul({halves}, 2.0);\na2 = floor(a1);\n")
        if value.ndim < 2 and value.min() > 0:
            shape = Argument("a1", inputs={"a0": np.zeros(value.reshape(-1).tolist(), np.float32)})
            single = "" if value.ndim else "a1 = squeeze(a1, axes = [0]);\n"
            yield "the shape of a tensor", replace(shape, statements=f"a1 = tract_core_shape_of(a0);\n{single}")
        if value.ndim == 1:
            parts = [self.variable(f"e{place}", one.reshape(())) for place, one in enumerate(value)]
            together = "".join(one.statements for one in parts)
            held = {held: one for part in parts for held, one in part.files.items()}
            yield "an array of variables", Argument(f"[{', '.join(str(one.text) for one in parts)}]", together, held)
        if (self.name, name) in COMPUTED:
            yield "known to the run alone", Argument("a0", inputs={"a0": value})
            slices = [f"slice(a0, axes = [0], begin = [{k}], end = [{k + 1}])" for k in range(len(value))]
            parts = [f"squeeze({one}, axes = [0])" for one in slices]
            yield "an array of what the run knows", Argument(f"[{', '.join(parts)}]", inputs={"a0": value})


_INDICES = ("indices", "start", "end", "k")
"""Tensors of integers that may be given as floats."""


def _type(kind: ast.Type) -> str:
    if isinstance(kind, ast.Primitive):
        return kind.name
    if isinstance(kind, ast.TensorOf):
        return "tensor<?>"
    if isinstance(kind, ast.ArrayOf):
        return f"{_type(kind.item)}[]"
    return f"({', '.join(map(_type, kind.items))})"


def _kind(value: Array) -> str:
    return "complex_f32" if value.dtype == np.complex64 else DatumType.from_numpy(value.dtype).short


def _file(value: Array) -> bytes:
    return b"".join(map(bytes, tensor_file(value)))


def _value(text: str) -> Any:
    return _held(parse_statements(f"a = {text};")[0].value)


def _held(expression: ast.Expression) -> Any:
    if isinstance(expression, ast.Literal):
        return expression.value
    if not isinstance(expression, (ast.Array, ast.Tuple)):
        return expression
    items = [_held(one) for one in expression.items]
    return items if isinstance(expression, ast.Array) else tuple(items)


def _same(default: ast.Expression, text: str) -> bool:
    held, value = _held(default), _value(text)
    return type(held) is type(value) and held == value


def _floats(value: Any) -> Any:
    return type(value)(map(_floats, value)) if isinstance(value, (list, tuple)) else float(value)


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))})"
    return str(value).lower() if isinstance(value, bool) else repr(value)
