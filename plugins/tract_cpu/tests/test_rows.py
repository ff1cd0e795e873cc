"""Programs for rows: reductions, norms and their like, on every instruction set of this machine, against NumPy."""

from __future__ import annotations

from itertools import chain, product

import ml_dtypes
import numpy as np
import pytest
from tract_cpu.kernels.rows import Lanes
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_llvm.isa import ISAS, Isa, of_this_machine
from tract_llvm.language.types import element_type

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add, Div, Mul, Sub
from tract_core.ops.cast import Cast
from tract_core.ops.cumsum import CumLogSumExp, CumMax, CumMin, CumProd
from tract_core.ops.elementwise import Exp, Sqrt, Square
from tract_core.ops.norm import RmsNorm, wire_layer_norm
from tract_core.ops.reduce import Reduce, Reducer, reference
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.plugins import default_registry
from tract_core.plugins.keys import REFERENCE
from tract_core.testing.case import CASES, Case

SHAPES = [(0, 3), (3, 0), (1, 1), (5, 67), (150, 3), (3, 70, 2), (2, 3, 4, 37)]


def one_node(op, fact: str) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    model.set_outputs(model.wire_node("y", op, [x]))
    return model


def run(model: TypedModel, isa: Isa, *inputs: np.ndarray) -> np.ndarray:
    """The output, computed by one kernel."""
    plan = CpuPlan(model, isa)
    assert [placement.how for placement in plan.explain().placements] == ["rows"]
    (found,) = plan.spawn().run(list(inputs))
    return found


def text(shape, dtype: str) -> str:
    return ",".join([*map(str, shape), dtype])


def all_axes(rank: int) -> list[tuple[int, ...]]:
    return [tuple(a for a in range(rank) if bits >> a & 1) for bits in range(1 << rank)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_sums_products_and_means_over_any_axes(isa, shape, dtype) -> None:
    kind = DatumType[dtype.upper()]
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(kind.numpy)
    wide = x.astype("f8")
    eps = float(ml_dtypes.finfo(kind.numpy).eps)
    for axes in all_axes(len(shape)):
        for reducer, wanted in (
            (Reducer.SUM, np.sum(wide, axes, keepdims=True)),
            (Reducer.PROD, np.prod(wide, axes, keepdims=True)),
        ):
            found = run(one_node(Reduce(axes, reducer), text(shape, dtype)), isa, x)
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found.astype("f8"), wanted, rtol=200 * eps if eps < 1e-3 else eps)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "i64", "u64"])
@pytest.mark.parametrize("reducer", [Reducer.SUM, Reducer.PROD, Reducer.MIN, Reducer.MAX])
def test_integers_are_exact_and_wrap(isa, reducer, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    ends = np.iinfo(kind)
    for shape in [(3, 5), (130, 3), (2, 70), (0, 2)]:
        x = np.random.default_rng(1).integers(ends.min, ends.max, shape, kind, endpoint=True)
        for axes in all_axes(2):
            op = Reduce(axes, reducer)
            np.testing.assert_array_equal(run(one_node(op, text(shape, dtype)), isa, x), reference(op, x))


@pytest.mark.parametrize(
    "reducer", [one for one in Reducer if one.name.startswith(("ARG", "MIN", "MAX"))], ids=lambda one: one.value
)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bool"])
def test_extremes_and_their_places_with_ties_and_specials(isa, reducer, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    for shape in [(1, 1), (4, 37), (37, 4), (2, 150)]:
        x = np.random.default_rng(2).integers(0, 4 if dtype != "bool" else 2, shape).astype(kind)
        variants = [x]
        if kind.kind == "f":
            infinite = np.where(x == 0, -np.inf, np.where(x == 3, np.inf, x)).astype(kind)
            variants += [infinite, np.where(x == 1, np.nan, infinite).astype(kind), np.full(shape, -np.inf, kind)]
        for values in variants:
            for axis in (0, 1):
                op = Reduce((axis,), reducer)
                np.testing.assert_array_equal(run(one_node(op, text(shape, dtype)), isa, values), reference(op, values))


@pytest.mark.parametrize("reducer", [Reducer.ALL, Reducer.ANY, Reducer.MIN, Reducer.MAX])
def test_booleans(isa, reducer) -> None:
    for shape in [(0, 2), (3, 70), (70, 3)]:
        x = np.random.default_rng(3).integers(0, 20, shape) > 0
        for values in (x, ~x):
            for axes in all_axes(2):
                op = Reduce(axes, reducer)
                wanted = reference(op, values)
                np.testing.assert_array_equal(run(one_node(op, text(shape, "bool")), isa, values), wanted)


def test_one_plan_reduces_any_size_and_of_nothing_gives_the_neutral_element(isa) -> None:
    plan = CpuPlan(one_node(Reduce((1,), Reducer.SUM), "B,S,f32"), isa)
    for shape in [(0, 3), (2, 0), (1, 1), (3, 17), (2, 1000)]:
        x = np.random.default_rng(4).standard_normal(shape).astype("f4")
        np.testing.assert_allclose(plan.spawn().run([x])[0], x.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


def layer_norm(fact: str) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    size = int(model.outlet_fact(x).shape[-1])
    weights = [model.add_const(n, np.linspace(0.5, 2, size).astype("f4")[np.newaxis]) for n in ("scale", "bias")]
    model.set_outputs([wire_layer_norm(model, "norm", x, 1, eps=1e-5, scale=weights[0], bias=weights[1])])
    return model.declutter()


@pytest.mark.parametrize("size", [1, 2, 17, 768])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_layer_norm_written_in_operators_is_one_kernel(isa, size, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    for rows in (0, 1, 5):
        x = (np.random.default_rng(size).standard_normal((rows, size)) * 3 + 1).astype(kind)
        found = run(layer_norm(f"B,{size},{dtype}"), isa, x).astype("f8")
        wide, weight = x.astype("f8"), np.linspace(0.5, 2, size)
        centred = wide - wide.mean(1, keepdims=True)
        wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * weight + weight
        np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "f32" else 8e-3, atol=2e-5)


def test_a_norm_and_what_stands_around_it_are_one_kernel_that_writes_what_others_read(isa) -> None:
    model = TypedModel()
    a, b = (model.add_source(name, parse_typed_fact("B,70,f32", model.symbols)) for name in "ab")
    (total,) = model.wire_node("total", Add(), [a, b])
    (square,) = model.wire_node("square", Square(), [total])
    (summed,) = model.wire_node("summed", Reduce((1,), Reducer.SUM), [square])
    (length,) = model.wire_node("length", Sqrt(), [summed])
    (unit,) = model.wire_node("unit", Div(), [total, length])
    (shifted,) = model.wire_node("shifted", Sub(), [unit, b])
    model.set_outputs([total, shifted, length])
    plan = CpuPlan(model, isa)
    (placement,) = plan.explain().placements
    assert placement.ops == ("Add", "Square", "Reduce", "Sqrt", "Div", "Sub")
    x, y = np.random.default_rng(5).standard_normal((2, 3, 70)).astype("f4")
    found = plan.spawn().run([x, y])
    norm = np.sqrt(((x + y).astype("f8") ** 2).sum(1, keepdims=True))
    for one, wanted in zip(found, (x + y, (x + y) / norm - y, norm), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 70, 5), (2, 5, 70), (4, 1, 3), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_root_mean_square_norms_along_any_axis(isa, shape, axis) -> None:
    x = np.random.default_rng(6).standard_normal(shape).astype("f4")
    found = run(one_node(RmsNorm(axis, 1e-6), text(shape, "f32")), isa, x)
    with np.errstate(all="ignore"):
        squares = np.sum(x.astype("f8") ** 2, axis, keepdims=True)
        wanted = x / np.sqrt(squares / np.float64(shape[axis]) + 1e-6)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_narrow_floats_are_summed_in_f32_and_rounded_once(isa) -> None:
    x = np.array([[256, 1, 1]], ml_dtypes.bfloat16)
    assert run(one_node(Reduce((1,), Reducer.SUM), "1,3,bf16"), isa, x)[0, 0] == 258
    model = one_node(Cast(DatumType.F32), "1,3,bf16")
    model.set_outputs(model.wire_node("z", Reduce((1,), Reducer.SUM), model.outputs))
    assert run(model, isa, x)[0, 0] == 258


def test_a_sum_that_is_read_once_more_than_its_row_is_not_computed_twice() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("4,9,f32"))
    (y,) = model.wire_node("y", Mul(), [x, x])
    sums = [model.wire_node(f"sum{axis}", Reduce((axis,), Reducer.SUM), [y])[0] for axis in (0, 1)]
    model.set_outputs(sums)
    plan = CpuPlan(model, of_this_machine()[-1])
    assert [placement.ops for placement in plan.explain().placements] == [("Mul", "Reduce"), ("Reduce",)]
    data = np.arange(36, dtype="f4").reshape(4, 9)
    for found, axis in zip(plan.spawn().run([data]), (0, 1), strict=True):
        np.testing.assert_array_equal(found, (data**2).sum(axis, keepdims=True))


FAMILIES = ("reduce", "norm", "pool", "softmax", "cumsum")
WITHOUT_KERNEL = (CumProd, CumMax, CumMin, CumLogSumExp)
"""Operators of these families that are left to the host: networks run the others."""


def _known(case: Case) -> bool:
    """Types that kernels do not know, or only move, are left to the host."""
    elements = [element_type(parse_typed_fact(arg.fact).datum_type) for arg in case.args]
    return all(element is not None and not element.is_carried for element in elements)


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
def test_no_case_is_left_to_the_host(symbolic) -> None:
    cases = chain.from_iterable(default_registry()[CASES].rows()[family] for family in FAMILIES)
    for case in filter(_known, cases):
        if isinstance(case.op, WITHOUT_KERNEL):
            continue
        plan = CpuPlan(case.model(symbolic=symbolic), of_this_machine()[-1])
        assert all(placement.how != "numpy" for placement in plan.explain().placements), case.name


def powers_of(x: np.ndarray, axes) -> tuple[np.ndarray, np.ndarray]:
    shifted = x.astype("f8") - x.astype("f8").max(axes, keepdims=True, initial=-1e9)
    total = np.exp(shifted).sum(axes, keepdims=True)
    with np.errstate(divide="ignore"):  # of no elements
        return np.exp(shifted) / total, shifted - np.log(total)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 130), (130, 3), (2, 3, 70)], ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_softmax_and_its_logarithm_over_any_axes(isa, shape, dtype) -> None:
    kind = DatumType[dtype.upper()].numpy
    x = (np.random.default_rng(7).standard_normal(shape) * 20).astype(kind)
    eps = float(ml_dtypes.finfo(kind).eps)
    for axes in all_axes(len(shape))[1:]:
        for op, wanted in zip((Softmax(axes), LogSoftmax(axes)), powers_of(x, axes), strict=True):
            found = run(one_node(op, text(shape, dtype)), isa, x).astype("f8")
            shifted = x.astype("f8") - x.astype("f8").max(axes, keepdims=True, initial=-np.inf)
            # The difference to the largest element is rounded, by up to half a unit; its power is off by as much.
            bound = np.abs(wanted) * eps * (8 + np.abs(shifted)) + 1e-37 + (op.name == "LogSoftmax") * 8 * eps
            assert np.all(np.abs(found - wanted) <= bound)


def test_softmax_of_what_is_infinite_or_not_a_number(isa) -> None:
    x = np.array([[-np.inf, 0, -np.inf], [np.inf, 0, 1], [-np.inf] * 3, [np.nan, 0, 1], [3e38, -3e38, 0]], "f4")
    for op in (Softmax((1,)), LogSoftmax((1,))):
        with np.errstate(all="ignore"):
            wanted = run_reference(op, x)
        np.testing.assert_allclose(run(one_node(op, "5,3,f32"), isa, x), wanted, rtol=1e-6)


def run_reference(op, x: np.ndarray) -> np.ndarray:
    return default_registry()[REFERENCE].find(type(op))(op, x)


def test_softmax_written_in_operators_is_the_same_kernel(isa) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,130,f32", model.symbols))
    (most,) = model.wire_node("most", Reduce((1,), Reducer.MAX), [x])
    (shifted,) = model.wire_node("shifted", Sub(), [x, most])
    (powers,) = model.wire_node("powers", Exp(), [shifted])
    (total,) = model.wire_node("total", Reduce((1,), Reducer.SUM), [powers])
    model.set_outputs(model.wire_node("share", Div(), [powers, total]))
    data = np.random.default_rng(8).standard_normal((3, 130)).astype("f4")
    np.testing.assert_allclose(run(model, isa, data), powers_of(data, (1,))[0], rtol=1e-6)


def kernel_of(op, fact: str, isa: Isa):
    (step,) = CpuPlan(one_node(op, fact), isa).program.steps
    assert isinstance(step, NativeStep)
    return step


def test_the_plan_of_softmax_lays_powers_down_and_computes_all_else_again() -> None:
    step = kernel_of(Softmax((1,)), "B,128,f32", of_this_machine()[-1])
    most, powers, share = step.kernel.passes
    assert [len(one.folds) for one in (most, powers, share)] == [1, 1, 0]
    assert [len(one.writes) for one in (most, powers, share)] == [0, 1, 1]
    assert [one for one, _ in share.reloads] == [one for one, _ in powers.writes]
    assert [one.vectors for one in (most, powers, share)] == [4, 2, 4]
    assert (step.kernel.outer, step.kernel.inner) == (1, 1)
    assert step.scratch == 128 * 4


def test_lanes_are_neighbouring_rows_where_rows_do_not_lie_in_one_piece() -> None:
    isa = next(one for one in ISAS if one.name == "avx512")
    plans = {axes: kernel_of(Reduce(axes, Reducer.SUM), "32,64,16,f32", isa).kernel for axes in all_axes(3)[1:]}
    assert {axes: plan.lanes.across for axes, plan in plans.items()} == {
        (0,): True,
        (1,): True,
        (2,): False,
        (0, 1): True,
        (0, 2): False,
        (1, 2): False,
        (0, 1, 2): False,
    }
    assert {axes: (plan.outer, plan.inner) for axes, plan in plans.items()} == {
        (0,): (1, 1),
        (1,): (2, 1),
        (2,): (1, 1),
        (0, 1): (1, 1),
        (0, 2): (1, 2),
        (1, 2): (1, 1),
        (0, 1, 2): (0, 1),
    }
    assert plans[(0,)].lanes == Lanes(16, 16, masked=True, across=True)


def turned(op: object, fact: str) -> TypedModel:
    """An operator on rows that are columns in memory."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    (rows,) = model.wire_node("rows", MoveAxis(0, 1), [x])
    model.set_outputs(model.wire_node("y", op, [rows]))
    return model


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("op", [Softmax((1,)), RmsNorm(1, 1e-6)], ids=str)
def test_rows_that_are_columns_are_copied_where_they_are_gone_through_several_times(isa, op, kind) -> None:
    plan = CpuPlan(turned(op, f"C,R,{kind}"), isa)
    (kernel,) = (step.kernel for step in plan.steps if step.kernel.name == "rows")
    assert kernel.lanes.count
    state, rng = plan.spawn(), np.random.default_rng(12)
    for columns, rows in product((0, 1, 2, 17, 70), (0, 1, 2, 19)):
        x = rng.standard_normal((columns, rows)).astype(DatumType[kind.upper()].numpy)
        (plain,) = CpuPlan(one_node(op, text((rows, columns), kind)), isa).spawn().run([np.ascontiguousarray(x.T)])
        np.testing.assert_array_equal(state.run([x])[0], plain)


def test_rows_that_are_columns_are_read_where_they_are_where_they_are_read_once(isa) -> None:
    plan = CpuPlan(turned(Reduce((1,), Reducer.SUM), "C,R,f32"), isa)
    assert [step.kernel.name for step in plan.steps] == ["rows"]


@pytest.mark.parametrize("op", [Softmax((1,)), Reduce((0,), Reducer.SUM), Reduce((1,), Reducer.ARG_MAX_FIRST)], ids=str)
def test_any_number_of_threads_gives_the_same_bits(op) -> None:
    x = np.random.default_rng(9).standard_normal((301, 1003)).astype("f4")
    isa = of_this_machine()[-1]
    one, three = (CpuPlan(one_node(op, "B,S,f32"), isa, threads=count).spawn().run([x])[0] for count in (1, 3))
    np.testing.assert_array_equal(one, three)
