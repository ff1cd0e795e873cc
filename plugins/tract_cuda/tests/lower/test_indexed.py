"""Elements that indices name, read and written, bit by bit against NumPy; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from on_virtual import device, model_of, run, same_bits, turned_first, wanted
from tract_cuda.language.arch import ARCHS
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_pulse.ops.delay import Delay

from tract_core.data import Constant, DatumType
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.one_hot import OneHot
from tract_core.ops.scatter import ScatterElements, ScatterNd

RNG = np.random.default_rng(0)
TARGET = Target(ARCHS[0], 4)


@pytest.mark.parametrize("inner", [1, 2, 15, 64, 67])
@pytest.mark.parametrize("kind", ["f16", "f64", "bool", "complex_f64"])
def test_rows_are_gathered_from_both_ends(inner: int, kind: str) -> None:
    table = (RNG.standard_normal((9, inner)) * 9).astype(DatumType[kind.upper()].numpy)
    places = np.array([[0, 8, -3], [2, -9, 0]])
    (found,) = run(model_of(Gather(0), f"9,{inner},{kind}", "2,K,i64"), table, places)
    assert same_bits(found, table[places])


@pytest.mark.parametrize("index", ["i8", "i32", "u64"])
def test_columns_are_gathered_by_numbers_of_any_type(index: str) -> None:
    table, places = np.arange(600, dtype="i2").reshape(4, 150), RNG.integers(0, 120, 300)
    numbers = places.astype(DatumType[index.upper()].numpy)
    (found,) = run(model_of(Gather(1), "4,150,i16", f"K,{index}"), table, numbers)
    assert same_bits(found, table[:, places])


def test_a_table_that_is_turned_is_gathered_from_where_it_lies() -> None:
    table, places = RNG.standard_normal((5, 7, 6)).astype("f4"), np.array([6, 0, 3])
    (found,) = run(turned_first(Gather(0), "5,7,6,f32", "3,i64"), table, places)
    assert same_bits(found, np.moveaxis(table, 0, 2)[places])


@pytest.mark.parametrize("op", [Gather(0), GatherElements(0), GatherNd(0)], ids=lambda op: op.name)
@pytest.mark.parametrize("place", [-4, 3])
def test_a_place_outside_is_refused_by_name(op: Gather, place: int) -> None:
    model = model_of(op, "3,2,f32", "1,1,i64")
    with pytest.raises(RunError, match=f"index {place} is outside axis 0, which has size 3"):
        run(model, np.zeros((3, 2), "f4"), np.array([[place]]))
    found = run(model, np.ones((3, 2), "f4"), np.array([[place % 2]]))
    assert found[0].all()


def test_a_place_outside_is_refused_where_nothing_is_moved() -> None:
    with pytest.raises(RunError, match="index 3 is outside axis 0"):
        run(model_of(Gather(0), "3,W,f32", "1,i64"), np.zeros((3, 0), "f4"), np.array([3]))


def test_a_refusal_is_told_of_what_the_host_had_kept_before_the_turn() -> None:
    model = TypedModel()
    table, x = model.add_const("table", np.arange(5.0)), model.add_source("x", parse_typed_fact("3,i64", model.symbols))
    (late,) = model.wire_node("late", Delay(0, 2, 0), [x])
    model.set_outputs(model.wire_node("y", Gather(0), [table, late]))
    state = CudaPlan(model, device(0), TARGET).spawn()
    assert state.run([np.array([1, 2, 9])])[0].tolist() == [0, 0, 1]
    with pytest.raises(RunError, match=r"node 'y' .*index 9 is outside axis 0, which has size 5"):
        state.run([np.array([3, 3, 3])])


def test_numbers_name_places_of_several_axes() -> None:
    x, numbers = RNG.integers(0, 99, (4, 5, 6, 3)), RNG.integers(-5, 5, (4, 7, 2))
    (found,) = run(model_of(GatherNd(1), "4,5,6,3,i64", "4,7,2,i64"), x, numbers)
    assert same_bits(found, wanted(GatherNd(1), x, numbers))


@pytest.mark.parametrize("count", [1, 65, 700])
def test_the_last_of_several_writes_holds(count: int) -> None:
    x, numbers = np.zeros((50, 3), "i4"), RNG.integers(-20, 20, (count, 1))
    updates = np.arange(count * 3, dtype="i4").reshape(count, 3)
    right = x.copy()
    for number, update in zip(numbers[:, 0], updates, strict=True):
        right[number] = update
    (found,) = run(model_of(ScatterNd(), "50,3,i32", "N,1,i64", "N,3,i32"), x, numbers, updates)
    assert same_bits(found, right)


@pytest.mark.parametrize("kind", ["f32", "f16", "i8", "u64"])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("places", [1, 7, 400])
def test_updates_are_combined_in_their_order(places: int, reduction: str, kind: str) -> None:
    """Every sum of floats depends on the order, and all updates may meet in one place."""
    dtype = DatumType[kind.upper()].numpy
    x, updates = (RNG.uniform(0.5, 1.5, shape).astype(dtype) for shape in ((400, 2), (80, 2)))
    numbers, op = RNG.integers(0, places, (80, 2)), ScatterElements(0, reduction)
    (found,) = run(model_of(op, f"400,2,{kind}", "80,2,i64", f"80,2,{kind}"), x, numbers, updates)
    right = wanted(op, x, numbers, updates)
    if reduction in ("min", "max", "none") or dtype.kind != "f":
        assert same_bits(found, right)
    else:
        np.testing.assert_allclose(found.astype("f8"), right.astype("f8"), rtol=1e-3)
        loop = x.astype("f4")
        for (row, column), number in np.ndenumerate(numbers):
            loop[number, column] = getattr(np, {"add": "add", "mul": "multiply"}[reduction])(
                loop[number, column], updates[row, column].astype("f4")
            )
        assert same_bits(found, loop.astype(dtype))


def test_a_write_outside_is_refused_by_name() -> None:
    inputs = [np.zeros(3, "f4"), np.array([[5]]), np.ones(1, "f4")]
    with pytest.raises(RunError, match="index 5 is outside axis 0, which has size 3"):
        run(model_of(ScatterNd(), "3,f32", "1,1,i64", "1,f32"), *inputs)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_one_hot_counts_from_both_ends(axis: int) -> None:
    numbers = RNG.integers(-12, 12, (20, 30))
    op = OneHot(axis, 10, Constant(np.array(-1.5, "f2")), Constant(np.array(2, "f2")))
    (found,) = run(model_of(op, "A,B,i64"), numbers)
    assert same_bits(found, wanted(op, numbers))
