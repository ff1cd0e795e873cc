"""Programs for rows: reductions, norms and their like, on the emulator, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from executed import kernels_of, one_node, run, text

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Div, Sub
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Exp, Sqrt, Square
from tract_core.ops.norm import RmsNorm, wire_layer_norm
from tract_core.ops.reduce import Reduce, Reducer, reference
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.plugins import default_registry
from tract_core.plugins.keys import REFERENCE

SHAPES = [(0, 3), (3, 0), (1, 1), (5, 67), (150, 3), (3, 70, 2), (2, 3, 4, 37)]


def run_rows(model: TypedModel, *inputs: np.ndarray, **symbols: int) -> np.ndarray:
    """The output, computed by one kernel."""
    (kernel,) = kernels_of(model)
    assert kernel.name == "rows"
    (found,) = run(model, *inputs, symbols=symbols)
    return found


def all_axes(rank: int) -> list[tuple[int, ...]]:
    return [tuple(a for a in range(rank) if bits >> a & 1) for bits in range(1 << rank)]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [*((shape, "f32") for shape in SHAPES), ((5, 67), "f64"), ((3, 70, 2), "bf16"), ((130, 16), "f16")],
    ids=str,
)
def test_sums_and_products_over_any_axes(shape, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(kind)
    wide = x.astype("f8")
    eps = float(ml_dtypes.finfo(kind).eps)
    for axes in all_axes(len(shape)):
        for reducer, wanted in (
            (Reducer.SUM, np.sum(wide, axes, keepdims=True)),
            (Reducer.PROD, np.prod(wide, axes, keepdims=True)),
        ):
            found = run_rows(one_node(Reduce(axes, reducer), text(shape, dtype)), x)
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found.astype("f8"), wanted, rtol=200 * eps if eps < 1e-4 else eps)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i64"])
@pytest.mark.parametrize("reducer", [Reducer.SUM, Reducer.PROD, Reducer.MIN, Reducer.MAX])
def test_integers_are_exact_and_wrap(reducer, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    ends = np.iinfo(kind)
    for shape in [(3, 5), (130, 3), (0, 2)]:
        x = np.random.default_rng(1).integers(ends.min, ends.max, shape, kind, endpoint=True)
        for axes in all_axes(2):
            op = Reduce(axes, reducer)
            np.testing.assert_array_equal(run_rows(one_node(op, text(shape, dtype)), x), reference(op, x))


@pytest.mark.parametrize(
    "reducer", [one for one in Reducer if one.name.startswith(("ARG", "MIN", "MAX"))], ids=lambda one: one.value
)
@pytest.mark.parametrize("dtype", ["f32", "i8", "bool"])
def test_extremes_and_their_places_with_ties_and_specials(reducer, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    for shape in [(4, 37), (37, 4)] if dtype != "f32" else [(1, 1), (4, 37), (37, 4), (2, 150)]:
        x = np.random.default_rng(2).integers(0, 4 if dtype != "bool" else 2, shape).astype(kind)
        variants = [x]
        if kind.kind == "f":
            infinite = np.where(x == 0, -np.inf, np.where(x == 3, np.inf, x)).astype(kind)
            variants += [infinite, np.where(x == 1, np.nan, infinite).astype(kind), np.full(shape, -np.inf, kind)]
        for values in variants:
            for axis in (0, 1):
                op = Reduce((axis,), reducer)
                found = run_rows(one_node(op, text(shape, dtype)), values)
                np.testing.assert_array_equal(found, reference(op, values))


@pytest.mark.parametrize("reducer", [Reducer.MIN, Reducer.MAX], ids=lambda one: one.value)
def test_the_sign_of_a_zero_that_is_an_extreme(reducer) -> None:
    x = np.array([[0.0, -0.0, 0.0], [-0.0, -0.0, -0.0], [0.0, 0.0, 0.0]], "f4")
    op = Reduce((1,), reducer)
    found = run_rows(one_node(op, "3,3,f32"), x)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(reference(op, x)))


@pytest.mark.parametrize("reducer", [Reducer.ALL, Reducer.ANY, Reducer.MIN, Reducer.MAX])
def test_booleans(reducer) -> None:
    for shape in [(0, 2), (3, 70), (70, 3)]:
        x = np.random.default_rng(3).integers(0, 20, shape) > 0
        for values in (x, ~x):
            for axes in all_axes(2):
                op = Reduce(axes, reducer)
                found = run_rows(one_node(op, text(shape, "bool")), values)
                np.testing.assert_array_equal(found, reference(op, values))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (1, 1), (3, 17), (2, 128), (2, 129), (2, 513), (1, 5000)], ids=str)
@pytest.mark.parametrize("op", [Reduce((1,), Reducer.SUM), Reduce((0,), Reducer.SUM), Softmax((1,))], ids=str)
def test_one_plan_takes_any_size(op, shape) -> None:
    x = np.random.default_rng(4).standard_normal(shape).astype("f4")
    found = run_rows(one_node(op, "B,S,f32"), x, B=shape[0], S=shape[1])
    np.testing.assert_allclose(found, run_reference(op, x.astype("f8")), rtol=1e-4, atol=1e-4)


def layer_norm(fact: str) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    size = int(model.outlet_fact(x).shape[-1])
    weights = [model.add_const(n, np.linspace(0.5, 2, size).astype("f4")[np.newaxis]) for n in ("scale", "bias")]
    model.set_outputs([wire_layer_norm(model, "norm", x, 1, eps=1e-5, scale=weights[0], bias=weights[1])])
    return model.declutter()


@pytest.mark.parametrize("size", [1, 2, 17, 768, 5000])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_layer_norm_written_in_operators_is_one_kernel(size, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    for rows in (0, 1, 5):
        x = (np.random.default_rng(size).standard_normal((rows, size)) * 3 + 1).astype(kind)
        found = run_rows(layer_norm(f"B,{size},{dtype}"), x, B=rows).astype("f8")
        wide, weight = x.astype("f8"), np.linspace(0.5, 2, size)
        centred = wide - wide.mean(1, keepdims=True)
        wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * weight + weight
        np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "f32" else 8e-3, atol=2e-5)


def test_a_norm_and_what_stands_around_it_are_one_kernel_that_writes_what_others_read() -> None:
    model = TypedModel()
    a, b = (model.add_source(name, parse_typed_fact("B,70,f32", model.symbols)) for name in "ab")
    (total,) = model.wire_node("total", Add(), [a, b])
    (square,) = model.wire_node("square", Square(), [total])
    (summed,) = model.wire_node("summed", Reduce((1,), Reducer.SUM), [square])
    (length,) = model.wire_node("length", Sqrt(), [summed])
    (unit,) = model.wire_node("unit", Div(), [total, length])
    (shifted,) = model.wire_node("shifted", Sub(), [unit, b])
    model.set_outputs([total, shifted, length])
    assert [kernel.name for kernel in kernels_of(model)] == ["rows"]
    x, y = np.random.default_rng(5).standard_normal((2, 3, 70)).astype("f4")
    norm = np.sqrt(((x + y).astype("f8") ** 2).sum(1, keepdims=True))
    for one, wanted in zip(run(model, x, y, symbols={"B": 3}), (x + y, (x + y) / norm - y, norm), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 70, 5), (2, 5, 70), (4, 1, 3), (2, 0, 3), (2, 40, 64)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_root_mean_square_norms_along_any_axis(shape, axis) -> None:
    x = np.random.default_rng(6).standard_normal(shape).astype("f4")
    found = run_rows(one_node(RmsNorm(axis, 1e-6), text(shape, "f32")), x)
    with np.errstate(all="ignore"):
        squares = np.sum(x.astype("f8") ** 2, axis, keepdims=True)
        wanted = x / np.sqrt(squares / np.float64(shape[axis]) + 1e-6)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_narrow_floats_are_summed_in_f32_and_rounded_once() -> None:
    x = np.array([[256, 1, 1]], ml_dtypes.bfloat16)
    assert run_rows(one_node(Reduce((1,), Reducer.SUM), "1,3,bf16"), x)[0, 0] == 258
    model = one_node(Cast(DatumType.F32), "1,3,bf16")
    model.set_outputs(model.wire_node("z", Reduce((1,), Reducer.SUM), model.outputs))
    assert run_rows(model, x)[0, 0] == 258


def powers_of(x: np.ndarray, axes) -> tuple[np.ndarray, np.ndarray]:
    shifted = x.astype("f8") - x.astype("f8").max(axes, keepdims=True, initial=-1e9)
    total = np.exp(shifted).sum(axes, keepdims=True)
    with np.errstate(divide="ignore"):  # of no elements
        return np.exp(shifted) / total, shifted - np.log(total)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *((shape, "f32") for shape in [(0, 3), (3, 0), (1, 1), (5, 130), (130, 3), (2, 3, 70), (4, 64, 32)]),
        *((shape, dtype) for shape in [(5, 130), (40, 3)] for dtype in ("f64", "bf16")),
    ],
    ids=str,
)
def test_softmax_and_its_logarithm_over_any_axes(shape, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    x = (np.random.default_rng(7).standard_normal(shape) * 20).astype(kind)
    eps = float(ml_dtypes.finfo(kind).eps)
    for axes in all_axes(len(shape))[1:]:
        for op, wanted in zip((Softmax(axes), LogSoftmax(axes)), powers_of(x, axes), strict=True):
            found = run_rows(one_node(op, text(shape, dtype)), x).astype("f8")
            shifted = x.astype("f8") - x.astype("f8").max(axes, keepdims=True, initial=-np.inf)
            # The difference to the largest element is rounded, by up to half a unit; its power is off by as much.
            bound = np.abs(wanted) * eps * (8 + np.abs(shifted)) + 1e-37 + (op.name == "LogSoftmax") * 8 * eps
            assert np.all(np.abs(found - wanted) <= bound)


def test_softmax_of_what_is_infinite_or_not_a_number() -> None:
    x = np.array([[-np.inf, 0, -np.inf], [np.inf, 0, 1], [-np.inf] * 3, [np.nan, 0, 1], [3e38, -3e38, 0]], "f4")
    for op in (Softmax((1,)), LogSoftmax((1,))):
        with np.errstate(all="ignore"):
            wanted = run_reference(op, x)
        np.testing.assert_allclose(run_rows(one_node(op, "5,3,f32"), x), wanted, rtol=1e-6)


def run_reference(op, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return default_registry()[REFERENCE].find(type(op))(op, x)


def test_softmax_written_in_operators_is_the_same_kernel() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,130,f32", model.symbols))
    (most,) = model.wire_node("most", Reduce((1,), Reducer.MAX), [x])
    (shifted,) = model.wire_node("shifted", Sub(), [x, most])
    (powers,) = model.wire_node("powers", Exp(), [shifted])
    (total,) = model.wire_node("total", Reduce((1,), Reducer.SUM), [powers])
    model.set_outputs(model.wire_node("share", Div(), [powers, total]))
    data = np.random.default_rng(8).standard_normal((3, 130)).astype("f4")
    np.testing.assert_allclose(run_rows(model, data, B=3), powers_of(data, (1,))[0], rtol=1e-6)


@pytest.mark.parametrize("op", [Softmax((1,)), Reduce((0,), Reducer.ARG_MAX_LAST), RmsNorm(1, 1e-6)], ids=str)
def test_the_variant_with_wide_positions(op) -> None:
    x = np.random.default_rng(9).standard_normal((9, 50)).astype("f4")
    (found,) = run(one_node(op, "9,50,f32"), x, wide=True)
    np.testing.assert_allclose(found, run_reference(op, x), rtol=1e-5)


PIECES = [
    ("f4", (1, 70001), (1,)),
    ("f4", (1, 131072), (1,)),
    ("i1", (1, 280000), (1,)),
    ("f4", (9000, 33), (0,)),
    ("f8", (9000, 64), (0,)),
    ("f4", (2, 40000), (0, 1)),
]


@pytest.mark.parametrize(
    ("kind", "shape", "axes", "reducer"),
    [
        (*case, reducer)
        for case in PIECES
        for reducer in (Reducer.SUM, Reducer.MAX, Reducer.ARG_MIN_LAST)
        if len(case[2]) == 1 or reducer is not Reducer.ARG_MIN_LAST  # places are along one axis
    ],
    ids=str,
)
def test_few_long_rows_are_reduced_in_pieces(kind, shape, axes, reducer) -> None:
    x = np.random.default_rng(10).integers(-100, 100, shape).astype(kind)
    if kind != "i1" and reducer is Reducer.MAX:
        x[0, 30] = np.nan
    model = one_node(Reduce(axes, reducer), text(shape, DatumType.from_numpy(x.dtype).short))
    assert [kernel.name for kernel in kernels_of(model)] == ["rows_pieces", "rows_merged"]
    np.testing.assert_array_equal(run(model, x)[0], reference(Reduce(axes, reducer), x))


def test_what_is_computed_with_a_long_row_is_computed_behind_its_pieces() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("100000,f32", model.symbols))
    (square,) = model.wire_node("square", Square(), [x])
    (summed,) = model.wire_node("summed", Reduce((0,), Reducer.SUM), [square])
    model.set_outputs(model.wire_node("length", Sqrt(), [summed]))
    assert [kernel.name for kernel in kernels_of(model)] == ["rows_pieces", "rows_merged"]
    data = np.random.default_rng(11).standard_normal(100000).astype("f4")
    np.testing.assert_allclose(run(model, data)[0], [np.sqrt((data.astype("f8") ** 2).sum())], rtol=1e-6)


def test_who_goes_through_which_part_of_a_row() -> None:
    def spread(op, fact: str) -> tuple[object, ...]:
        (plan,) = kernels_of(one_node(op, fact))
        return plan.spread.parts, plan.spread.rows, plan.spread.lanes, plan.spread.across, plan.slots

    assert spread(Softmax((1,)), "4096,768,f32") == (64, 2, 4, False, (3,))
    assert spread(Softmax((1,)), "4096,64,f32") == (16, 8, 4, False, (1,))
    assert spread(Softmax((1,)), "4096,5,f32") == (8, 16, 1, False, (1,))
    assert spread(Softmax((1,)), "1,4096,f32") == (1024, 1, 4, False, (1,))
    assert spread(Softmax((1,)), "B,S,f32") == (128, 1, 1, False, (1, 4))
    assert spread(Softmax((1,)), "8,100000,f32") == (1024, 1, 4, False, ())
    assert spread(Reduce((1,), Reducer.SUM), "32,49,2048,f32") == (4, 32, 4, True, ())
