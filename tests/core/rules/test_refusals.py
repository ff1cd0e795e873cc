"""What a model refuses, it refuses when it is simplified as well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.errors import TractError
from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather, GatherElements
from tract_core.ops.pool_spec import DataFormat, PoolSpec
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.declutter import operators, same_outputs, sources, unaware

Build = Callable[[TypedModel, list[OutletId]], OutletId]


def _slice_of_a_slice(model: TypedModel, given: list[OutletId]) -> OutletId:
    """x[1:-1][0:1]"""
    size = model.outlet_fact(given[0]).shape[0]
    return wire_one(model, "out", Slice(0, 0, 1), wire_one(model, "inner", Slice(0, 1, size - 1), given[0]))


def _scatter_over_all(model: TypedModel, given: list[OutletId]) -> OutletId:
    """Every row of a tensor of three rows is replaced by one of the input."""
    data = model.add_const("data", np.zeros((3,), np.float32))
    places = model.add_const("places", np.arange(3).reshape(3, 1))
    return wire_one(model, "out", ScatterNd(), data, places, given[0])


def _rejoined(model: TypedModel, given: list[OutletId]) -> OutletId:
    """x[0:3] and x[3:S]"""
    first = wire_one(model, "first", Slice(0, 0, 3), given[0])
    rest = wire_one(model, "rest", Slice(0, 3, model.outlet_fact(given[0]).shape[0]), given[0])
    return wire_one(model, "out", TypedConcat(0), first, rest)


def _gathered(model: TypedModel, given: list[OutletId]) -> OutletId:
    return wire_one(model, "out", Gather(0), given[0], model.add_const("places", np.array([1, 2])))


def _picked_and_removed(model: TypedModel, given: list[OutletId]) -> OutletId:
    """The axis must have one element."""
    return wire_one(model, "out", RmAxis(0), wire_one(model, "sum", Add(), given[0], given[0]))


CASES: list[tuple[Build, list[int], list[int]]] = [
    (_slice_of_a_slice, [3, 4, 5], [0, 1, 2]),
    (_scatter_over_all, [3], [0, 1, 2, 4]),
    (_rejoined, [3, 4], [0, 1, 2]),
    (_gathered, [3, 4], [0, 1, 2]),
    (_picked_and_removed, [1], [0, 2, 3]),
]


@pytest.mark.parametrize(("build", "run", "refused"), CASES, ids=[build.__name__ for build, *_ in CASES])
def test_sizes_that_are_refused_stay_refused(build: Build, run: list[int], refused: list[int]) -> None:
    model, given = sources("S,f32")
    model.set_outputs([build(model, given)])
    simple = declutter(model.clone())
    for size in run:
        same_outputs(simple, model, [np.arange(size, dtype=np.float32)])
    for size in refused:
        for one in (model, simple):
            with pytest.raises(TractError):
                TypedSimplePlan(one).run([np.arange(size, dtype=np.float32)])


def _square(model: TypedModel, x: OutletId) -> OutletId:
    """B by S as B by B, which also fits where B is 0, in a row of axis operators."""
    first = wire_one(model, "first", AddAxis(0), x)
    b, s = symbol("B"), symbol("S")
    return wire_one(model, "out", RmAxis(0), wire_one(model, "square", Reshape(1, (b, s), (b, b)), first))


def _none_of_what_is_stretched(model: TypedModel, x: OutletId) -> OutletId:
    """Nothing of the axis of size B."""
    wide = wire_one(model, "wide", MultiBroadcastTo((symbol("B"), 4)), x)
    total = wire_one(model, "total", Reduce((1,), Reducer.SUM), wide)
    return wire_one(model, "out", Slice(0, 2, 2), wire_one(model, "twice", Add(), total, total))


@pytest.mark.parametrize(
    ("build", "fact", "shapes"),
    [
        (_square, "B,S,f32", [(0, 5), (3, 3), (0, 0)]),
        (_none_of_what_is_stretched, "B,1,f32", [(2, 1), (3, 1), (4, 1)]),
    ],
)
def test_sizes_that_are_fine_stay_fine(
    build: Callable[[TypedModel, OutletId], OutletId], fact: str, shapes: list[tuple[int, int]]
) -> None:
    model, (x,) = sources(fact)
    model.set_outputs([build(model, x)])
    simple = declutter(model.clone(), check=True)
    for shape in shapes:
        same_outputs(simple, model, [np.ones(shape, np.float32)])


def test_a_convolution_wants_its_channels_as_an_einsum_too() -> None:
    model, (x,) = sources("1,C,5,f32")
    kernel, bias = model.add_const("k", np.ones((2, 4, 1), np.float32)), model.add_const("b", np.array(0, np.float32))
    model.set_outputs([wire_one(model, "out", Conv(PoolSpec(DataFormat.NCHW, (1,))), x, kernel, bias)])
    simple = declutter(model.clone())
    assert operators(simple) == ["EinSum"]
    same_outputs(simple, model, [np.ones((1, 4, 5), np.float32)])
    with pytest.raises(TractError, match="4"):
        TypedSimplePlan(simple).run([np.ones((1, 1, 5), np.float32)])


def _product_with_nothing(model: TypedModel, x: OutletId, places: OutletId) -> OutletId:
    picked = wire_one(model, "picked", Gather(0), x, places)
    return wire_one(model, "out", Mul(), picked, model.add_const("zero", np.array([0], np.int32)))


def _part_of_what_was_picked(model: TypedModel, x: OutletId, places: OutletId) -> OutletId:
    return wire_one(model, "out", Slice(0, 0, 1), wire_one(model, "picked", Gather(0), x, places))


def _part_of_elements(model: TypedModel, x: OutletId, places: OutletId) -> OutletId:
    return wire_one(model, "out", Slice(0, 0, 1), wire_one(model, "picked", GatherElements(0), x, places))


def _part_of_a_row(model: TypedModel, x: OutletId, places: OutletId) -> OutletId:
    picked = wire_one(model, "picked", Gather(0), x, places)
    joined = wire_one(model, "joined", TypedConcat(0), x, picked)
    return wire_one(model, "out", Slice(0, 0, 2), joined)


@pytest.mark.parametrize("build", [_product_with_nothing, _part_of_what_was_picked, _part_of_elements, _part_of_a_row])
def test_positions_outside_are_refused_even_where_nobody_needs_what_is_there(
    build: Callable[[TypedModel, OutletId, OutletId], OutletId],
) -> None:
    model, (x, places) = sources("3,i32", "2,i64")
    model.set_outputs([build(model, x, places)])
    simple = declutter(model.clone())
    values = np.array([7, 8, 9], np.int32)
    same_outputs(simple, model, [values, np.array([2, 1])])
    for one in (model, simple):
        with pytest.raises(TractError, match="index 3 is outside"):
            TypedSimplePlan(one).run([values, np.array([0, 3])])


def test_positions_are_still_judged_when_the_data_is_cut() -> None:
    """Gather(x, places)[:, 0:1] -> Gather(x[:, 0:1], places)"""
    model, (x, places) = sources("3,4,f32", "2,i64")
    picked = wire_one(model, "picked", Gather(0), x, places)
    model.set_outputs([wire_one(model, "out", Slice(1, 0, 1), picked)])
    simple = declutter(model.clone())
    assert operators(simple) == ["Slice", "Gather"]
    with pytest.raises(TractError, match="index 5 is outside"):
        TypedSimplePlan(simple).run([np.zeros((3, 4), np.float32), np.array([0, 5])])


def test_a_node_that_is_refused_while_it_is_wired_leaves_no_condition_behind() -> None:
    """2 * B may be 6; it can be no 5, which is told after it was noted what B must be for the scatter."""
    model, (x,) = sources("B,f32")
    mapping = AxesMapping(("a", "ab"), ("b",))
    weights = model.add_const("weights", np.ones((3, 2), np.float32))
    model.set_outputs([wire_one(model, "total", EinSum(mapping, DatumType.F32), x, weights)])
    before = list(model.conditions)
    data, places = model.add_const("data", np.zeros(4, np.float32)), model.add_const("places", np.array([[0], [1]]))
    with pytest.raises(TractError, match="contradicts"):
        wire_one(model, "other", ScatterNd(), data, places, x)
    assert list(model.conditions) == before


def test_what_no_run_can_satisfy_is_left_as_it_is_and_refuses() -> None:
    """B is 1 or 2 for the first product, B + 1 is 1 or 2 for the second, and 1 or 3 for the third."""
    model, (x,) = sources("B,f32")
    two, three = (model.add_const(str(n), np.ones(n, np.float32)) for n in (2, 3))
    longer = wire_one(model, "longer", TypedConcat(0), x, model.add_const("one", np.ones(1, np.float32)))
    first, second = wire_one(model, "first", Mul(), two, x), wire_one(model, "second", Mul(), two, longer)
    with unaware(model):
        third = wire_one(model, "third", Mul(), three, longer)
    model.set_outputs([first, second, third])
    simple = declutter(model.clone(), check=True)
    for one in (model, simple):
        for size in range(5):
            with pytest.raises(TractError):
                TypedSimplePlan(one).run([np.ones(size, np.float32)])
