"""Operators of tract-OPL that move, find and compute elements: what their texts mean, and that they come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from documents import Array, document, load, run_text, shape_of
from tract_nnef.documents.loader import NnefLoader
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing

import tract_core as tract
from tract_core import errors
from tract_core.data import DatumType
from tract_core.model.same import same_model
from tract_core.ops.gather import GatherNd
from tract_core.ops.one_hot import OneHot
from tract_core.ops.scatter import ScatterNd
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES, Case


@dataclass
class Text:
    """Statements, what is given to them as x, y, z ..., and what they give, by NumPy in float64."""

    body: str
    inputs: Sequence[Array]
    wanted: Sequence[Any]
    shapes: Sequence[str] = ()
    """Of the inputs, where symbols are in them."""
    registry: str = "tract_core"

    def __str__(self) -> str:
        return self.body.split("= ", 1)[1].split(";")[0]


def floats(*shape: int) -> Array:
    return np.random.default_rng(prod(shape) + 7).uniform(-2, 2, shape).astype(np.float32)


def integers(*values: Any, kind: Any = np.int64) -> Array:
    return np.array(values, kind)


X = floats(3, 5)
PAIRS = floats(2, 7, 2)
COMPLEX = PAIRS[..., 0].astype(complex) + 1j * PAIRS[..., 1]
WINDOW = np.array([0.25, 1.0, 0.5])
FRAMES = np.stack([COMPLEX[:, s : s + 4] for s in (0, 2)], 1)
IMAGE = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
FEW = integers(2, -3, 0)


def pairs(x: Array) -> Array:
    return np.stack([x.real, x.imag], -1)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def gelu(x: Array, power: int) -> Array:
    wide = x.astype(np.float64)
    return wide / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**power)))


def lstm(x: Array, c: Array) -> tuple[Array, Array]:
    i, o, f, g = np.split(x.astype(np.float64), 4, -1)
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def gru(x: Array, r: Array, h: Array) -> Array:
    (xz, xr, xg), (rz, rr, rg) = (np.split(part.astype(np.float64), 3, -1) for part in (x, r))
    update = sigmoid(xz + rz)
    return (1 - update) * np.tanh(xg + sigmoid(xr + rr) * rg) + update * h


def with_element(x: Array, place: Any, value: float, *, add: bool = False) -> Array:
    found = x.copy()
    found[place] = value + (found[place] if add else 0)
    return found


INFINITE = np.array([np.inf, -np.inf, np.nan, 0], np.float32)
SPECIAL = np.array([np.nan, -np.inf, -0.0, 1e30], np.float32)

TEXTS = [
    Text("o = tract_core_pow_const(x, exponent = 3.0);", [X], [X.astype(np.float64) ** 3]),
    Text("o = tract_core_gelu_approx(x, fast_impl = false);", [X], [gelu(X, 3)]),
    Text("o = tract_core_gelu_approx(x, fast_impl = true);", [X], [gelu(X, 2)]),
    Text("o = tract_transformers_gelu_approx(x, true);", [X], [gelu(X, 2)]),
    Text("o = tract_transformers_gelu_approx(x);", [X], [gelu(X, 3)], registry="tract_transformers"),
    Text("o = tract_transformers_silu(x);", [X], [X * sigmoid(X)]),
    Text("o = tract_transformers_silu(x);", [X], [X * sigmoid(X)], registry="tract_transformers"),
    Text("o = tract_core_is_inf(x);", [INFINITE], [[True, True, False, False]]),
    Text("o = tract_core_is_inf(x, detect_negative = false);", [INFINITE], [[True, False, False, False]]),
    Text("o = tract_core_is_inf(x, false, false);", [INFINITE], [[False] * 4]),
    Text("o = tract_core_downsample(x, axis = 1, stride = 2);", [X], [X[:, ::2]], ["F32[3, S]"]),
    Text("o = tract_core_downsample(x, axis = 1, stride = 3, modulo = 1);", [X], [X[:, 1::3]], ["F32[3, S]"]),
    Text("o = tract_core_downsample(x, 0, -2);", [X], [X[::-2]], ["F32[S, 5]"]),
    Text("o = tract_core_downsample(x, 0, -1);", [X[:0]], [X[:0]], ["F32[S, 5]"]),
    Text("o = tract_core_fft(x, axis = 1, inverse = false);", [PAIRS], [pairs(np.fft.fft(COMPLEX, axis=1))]),
    Text("o = tract_core_fft(x, 0, true);", [PAIRS], [pairs(np.fft.ifft(COMPLEX, axis=0) * 2)]),
    Text("o = tract_core_stft(x, axis = 1, frame = 4, stride = 2);", [PAIRS], [pairs(np.fft.fft(FRAMES))]),
    Text(
        "o = tract_core_stft(x, axis = 1, frame = 5, stride = 2, window = [0.25, 1.0, 0.5]);",
        [PAIRS],
        [pairs(np.fft.fft(np.stack([COMPLEX[:, s : s + 5] * [0, *WINDOW, 0] for s in (0, 2)], 1)))],
    ),
    Text("o = tract_core_inner_dim_to_complex(x);", [PAIRS], [COMPLEX]),
    Text("o = tract_core_complex_to_inner_dim(x);", [COMPLEX.astype(np.complex64)], [PAIRS]),
    Text("o = tract_core_gather(x, y, axis = 0);", [X, integers(2, 0, -1)], [X[[2, 0, -1]]], ["F32[3, 5]", "I64[N]"]),
    Text("o = tract_core_gather(x, [[0, 4], [2, 2]], axis = 1);", [X], [X[:, [[0, 4], [2, 2]]]]),
    Text("o = tract_core_gather(x, 3, axis = 1);", [X], [X[:, 3]]),
    Text("o = tract_core_gather(x, y, axis = 1);", [X, np.array([1, 0], np.float32)], [X[:, [1, 0]]]),
    Text("o = tract_core_gather(x, y, axis = 1, datum_type = 'f64');", [X, integers(1)], [X[:, [1]].astype(float)]),
    Text("o = tract_core_gather(x, y, axis = 1);", [X, np.zeros((2, 0), np.int64)], [np.zeros((3, 2, 0))]),
    Text("o = tract_core_gather_elements(x, y, axis = 1);", [X, FEW[:, None]], [X[[0, 1, 2], FEW][:, None]]),
    Text("o = tract_core_gather_nd(x, y, batch_dims = 1);", [X, FEW[:, None]], [X[[0, 1, 2], FEW]]),
    Text("o = tract_core_gather_nd(x, y);", [X, integers((2, 1), (0, 0))], [X[[2, 0], [1, 0]]]),
    Text("o = tract_core_scatter_elements(x, [[1]], [[9.0]], axis = 1);", [X], [with_element(X, (0, 1), 9)]),
    Text(
        "o = tract_core_scatter_elements(x, [[1, 1]], [[9.0, 4.0]], axis = 1, reduction = 'add');",
        [X],
        [with_element(X, (0, 1), 13, add=True)],
    ),
    Text("o = tract_core_scatter_nd(x, [[2, 3]], [7.0]);", [X], [with_element(X, (2, 3), 7)]),
    Text("o = tract_core_scatter_nd(x, [[1]], y, 'max');", [X, X[:1]], [[X[0], np.maximum(X[0], X[1]), X[2]]]),
    Text(
        "o = tract_core_grid_sample(x, [[[[0.0, 0.0], [-1.0, 1.0]]]], align_corners = true);", [IMAGE], [[[[[2.5, 3]]]]]
    ),
    Text(
        "o = tract_onnx_grid_sample(x, [[[[-2.0, -2.0]]]], 'nearest', 'border');",
        [IMAGE],
        [[[[[0]]]]],
        registry="tract_onnx",
    ),
    Text("o = tract_core_rms_norm(x, axis = 1, eps = 0.5);", [X], [X / np.sqrt((X * X).mean(1, keepdims=True) + 0.5)]),
    Text("o = tract_transformers_rms_norm(x, 0);", [X], [X / np.sqrt((X * X).mean(0) + 1e-6)]),
    Text("o = tract_core_one_hot(x, axis = 1, dim = 3);", [FEW], [np.eye(3)[FEW]], ["I64[N]"]),
    Text("o = tract_core_one_hot(x, 0, 2, -1.0, 4.5);", [integers(1, 5)], [[[-1, -1], [4.5, -1]]]),
    Text("o = tract_core_range(0, 7, 3);", [], [[0, 3, 6]]),
    Text("o = tract_core_range(1.0, 0.0, -0.25);", [], [[1, 0.75, 0.5, 0.25]]),
    Text("o = tract_core_range(x, 5, 2);", [np.array(1, np.int64)], [[1, 3]]),
    Text("o = tract_core_range(3, x, 1);", [np.array(1, np.int64)], [np.zeros(0)]),
    Text("(v, o) = tract_core_topk(x, 2, axis = 1, largest = true);", [X], [np.argsort(-X, 1)[:, :2]]),
    Text("(o, i) = tract_core_topk(x, y, axis = 0, largest = false);", [X, integers(2)], [np.sort(X, 0)[:2]]),
    Text("o = tract_core_trilu(x, 1, upper = true);", [X], [np.triu(X, 1)], ["F32[A, B]"]),
    Text("o = tract_core_trilu(x, y, upper = false);", [X, np.array(-1, np.int64)], [np.tril(X, -1)]),
    Text("o = tract_core_dyn_slice(x, y, 4, len = L, axis = 1);", [X, np.array(1, np.int64)], [X[:, 1:4]]),
    Text("o = tract_core_shape_of(x);", [X], [[3, 5]], ["F32[A, B]"]),
    Text("o = tract_core_gather(x, tract_core_shape_of(x)[0] - 1, axis = 0);", [X], [X[2]], ["F32[A, B]"]),
    Text(
        "(o, c) = tract_core_lstm_epilogue(x, y, hidden = 2);",
        [floats(3, 8), floats(3, 2)],
        [lstm(floats(3, 8), floats(3, 2))[0]],
    ),
    Text(
        "(h, o) = tract_core_lstm_epilogue(x, y, hidden = H);",
        [floats(3, 8), floats(3, 2)],
        [lstm(floats(3, 8), floats(3, 2))[1]],
        ["F32[3, 4*H]", "F32[3, H]"],
    ),
    Text(
        "o = tract_core_gru_epilogue(x, y, z, hidden = 2);",
        [floats(3, 6), -floats(3, 6), floats(3, 2)],
        [gru(floats(3, 6), -floats(3, 6), floats(3, 2))],
    ),
    Text(
        "o = tract_core_resize(x, scales = [1.0, 1.0, 2.0, 1.0], coord_transformer = 'asymmetric');",
        [IMAGE],
        [IMAGE.repeat(2, 2)],
    ),
    Text(
        "o = tract_core_resize(x, sizes = [1, 1, 4, 3], nearest_mode = 'round_prefer_ceil', axes = [2]);",
        [IMAGE],
        [IMAGE.repeat(2, 2)],
    ),
    Text(
        "o = tract_core_resize(x, sizes = [1, 1, 2, 5], coord_transformer = 'align_corners', interpolator = 'linear');",
        [IMAGE],
        [[[[[0, 0.5, 1, 1.5, 2], [3, 3.5, 4, 4.5, 5]]]]],
    ),
    Text(
        "o = tract_core_resize(x, sizes = y, nearest_mode = 'round_prefer_ceil');",
        [IMAGE, integers(1, 1, 4, 6)],
        [IMAGE.repeat(2, 2).repeat(2, 3)],
    ),
    Text(
        "o = tract_onnx_resize(x, [1.0, 1.0, 1.0, 2.0], nearest_mode = 'ceil', coord_transformer = 'asymmetric');",
        [IMAGE],
        [IMAGE[..., [0, 1, 1, 2, 2, 2]]],
        registry="tract_onnx",
    ),
    Text(
        "o = tract_onnx_lrn(x, alpha = 0.3, beta = 0.5, bias = 2.0, size = 1);",
        [X],
        [X / np.sqrt(2 + 0.3 * X.astype(np.float64) ** 2)],
        registry="tract_onnx",
    ),
    Text(
        "o = tract_onnx_non_zero(x, count_symbol = 'n');",
        [integers((0, 2), (3, 0))],
        [[[0, 1], [1, 0]]],
        registry="tract_onnx",
    ),
]


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_a_text_means_what_numpy_computes(text) -> None:
    shapes = text.shapes or [shape_of(array) for array in text.inputs]
    graph = document(text.body, shapes, ["o"], registries=[text.registry, "tract_core"], symbols=list("SNABHL"))
    (found,) = run_text(graph, *text.inputs)
    wanted = np.asarray(text.wanted[0])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


WRONG = [
    ("o = tract_core_downsample(x, axis = 2, stride = 2);", "axis 2"),
    ("o = tract_core_downsample(x, axis = 0, stride = 0);", "stride 0"),
    (
        "o = tract_core_scatter_nd(x, [[2, 3]], [7.0], reduction = 'mean');",
        "argument 'reduction' of tract_core_scatter_nd is 'mean', wanted one of 'none'",
    ),
    ("o = tract_core_stft(x, axis = 0, frame = 2, stride = 1, window = x);", "'window'.*which is computed"),
    ("o = tract_core_range(0, 5, 1, announced = [1, 2]);", "announced has 2 sizes, wanted 1"),
    ("o = tract_core_one_hot(x, axis = 0, dim = x);", "dim"),
    ("o = tract_core_resize(x);", "either 'scales' or 'sizes'"),
    ("o = tract_core_resize(x, scales = [1.0], sizes = [1]);", "either 'scales' or 'sizes'"),
    ("o = tract_core_resize(x, scales = [1.0]);", "'scales' of tract_core_resize has 1 elements, wanted 2"),
    (
        "o = tract_core_resize(x, scales = [1.0, 2.0], interpolator = 'spline');",
        "argument 'interpolator' of tract_core_resize is 'spline', wanted one of",
    ),
    ("o = tract_core_gather(x, [9], axis = 0);", "index 9"),
    ("o = tract_core_gather_elements(x, [0], axis = 0);", "rank"),
    (
        "o = tract_core_grid_sample(x, x, mode = 'cubic');",
        "argument 'mode' of tract_core_grid_sample is 'cubic', wanted one of 'bilinear'",
    ),
    ("o = tract_core_force_eval(x);", "there is no operator 'tract_core_force_eval'"),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_what_is_wrong_is_refused_with_its_line(body, message) -> None:
    with pytest.raises(errors.TractError, match=rf"(?s)line 6.*{message}"):
        load(document(body, ["F32[3, 5]"], ["o"]))


def cases() -> list[Case]:
    families = ("downsample", "fft", "gather", "grid_sample", "lrn", "non_zero", "norm", "one_hot", "range")
    more = ("recurrent", "resize", "scatter", "topk", "trilu")
    table = default_registry()[CASES]
    return [case for family in (*families, *more) for case in table.find(family) or ()]


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_case_comes_back_or_is_refused(case, symbolic, tmp_path) -> None:
    model = case.model(symbolic=symbolic)
    try:
        NnefWriter(how=Writing(frozenset({"tract_core", "tract_onnx"}))).write(model, tmp_path / "m.tar")
    except errors.Unsupported:
        if type(case.op).__name__ in REFUSED:
            return
        raise
    found = NnefLoader().load(tmp_path / "m.tar")
    if comes_back_as_others(case.op):
        (one,) = tract.Model.from_typed(found).into_runnable().run(case.given())
        np.testing.assert_allclose(one.to_numpy(), case.outputs()[0], rtol=2e-3 if "f16" in case.name else 1e-5)
        return
    assert same_model(found, model)


def comes_back_as_others(op) -> bool:
    """Whether other engines are told something else that computes the same.

    They make numbers of f32, and convert them; and they read coordinates from the front only.
    """
    numbers = isinstance(op, OneHot) and op.off.datum_type is not DatumType.F32
    return numbers or isinstance(op, GatherNd | ScatterNd)


REFUSED = {"DynOneHot", "DynResize", "Lrn", "NonZero", "OneHot", "Resize"}
"""Operators that these registries cannot say in all of their forms."""
