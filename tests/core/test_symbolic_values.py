"""Sizes that are computed by the model itself: known while it is wired, or found in the middle of a run."""

from __future__ import annotations

import numpy as np
import pytest

from tract_core.data import Constant, DatumType, SymbolicArray
from tract_core.dims import Dim, dim_max, symbol
from tract_core.errors import DimError, FactError, RunError, UntypableModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity, PinConst
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape
from tract_core.ops.binary import Add, Div, Gt, Max, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import CumSum
from tract_core.ops.downsample import Downsample
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.iff import Iff
from tract_core.ops.non_zero import NonZero
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.range import Range
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.reshape import DynReshape
from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.ops.slice import DynSlice, Slice, wire_dyn_slice, wire_slice
from tract_core.ops.tile import Tile
from tract_core.ops.trilu import Trilu
from tract_core.ops.wiring import wire_one
from tract_core.ops.wiring_dyn import (
    wire_compress,
    wire_dyn_pad,
    wire_dyn_reshape,
    wire_expand,
    wire_eye,
    wire_fill,
    wire_non_zero,
    wire_one_hot,
    wire_pad,
    wire_range,
    wire_tile,
    wire_topk,
)
from tract_core.runtime.plan import TypedSimplePlan

B, S, P = symbol("B"), symbol("S"), symbol("P")


def _model(*facts: str) -> tuple[TypedModel, list[OutletId]]:
    model = TypedModel()
    return model, [model.add_source(f"x{i}", parse_typed_fact(fact, model.symbols)) for i, fact in enumerate(facts)]


def _dims(model: TypedModel, outlet: OutletId) -> tuple[Dim, ...] | None:
    return model.outlet_fact(outlet).dims


def _run(model: TypedModel, *arrays: object) -> list[np.ndarray]:
    return TypedSimplePlan(model).run([np.asarray(array) for array in arrays])


@pytest.mark.parametrize(
    ("op", "others", "wanted"),
    [
        (Gather(0), [np.array([2, 0, -1])], (S + P, B, S + P)),
        (Gather(0), [np.array(1)], (S,)),
        (GatherElements(0), [np.array([1, 1])], (S, S)),
        (GatherNd(0), [np.array([[2], [0]])], (S + P, B)),
        (Slice(0, 1, 3), [], (S, S + P)),
        (DynSlice(0, 2), [np.array(0), np.array(2)], (B, S)),
        (Downsample(0, -1), [], (S + P, S, B)),
        (Downsample(0, 2), [], (B, S + P)),
        (Pad(((1, 0),), PadConstant(Constant(np.array(7)))), [], (7, B, S, S + P)),
        (Tile((2,)), [], (B, S, S + P, B, S, S + P)),
        (TypedConcat(0), [np.array([-1])], (B, S, S + P, -1)),
        (ScatterElements(0), [np.array([1]), np.array([9])], (B, 9, S + P)),
        (ScatterNd("add"), [np.array([[0], [0]]), np.array([1, 2])], (B + 3, S, S + P)),
        (CumSum(0), [], (B, B + S, B + 2 * S + P)),
        (CumSum(0, exclusive=True, reverse=True), [], (2 * S + P, S + P, 0)),
        (DynReshape((3, 1)), [np.array([3, -1])], (B, S, S + P)),
        (MultiBroadcastTo((2, 3)), [], (B, S, S + P, B, S, S + P)),
        (Identity(), [], (B, S, S + P)),
        (Cast(DatumType.I32), [], (B, S, S + P)),
        (AddAxis(0), [], (B, S, S + P)),
        (Add(), [np.array([1, 2, 3])], (B + 1, S + 2, S + P + 3)),
        (Mul(), [np.array([0, 1, 2])], (0, S, 2 * S + 2 * P)),
        (Div(), [np.array([1, 2, 4])], (B, S // 2, (S + P) // 4)),
        (Max(), [np.array([0, 0, 4])], (B, S, dim_max(4, S + P))),
    ],
    ids=lambda value: str(value) if hasattr(value, "output_facts") else "",
)
def test_operator_on_sizes(op: object, others: list[np.ndarray], wanted: tuple[Dim, ...]) -> None:
    model = TypedModel()
    shape = model.add_const("shape", [B, S, S + P])
    inputs = [model.add_const(f"other{slot}", array) for slot, array in enumerate(others)]
    assert _dims(model, wire_one(model, "op", op, shape, *inputs)) == wanted


def test_choice_between_sizes() -> None:
    model = TypedModel()
    a, b = model.add_const("a", [S, S]), model.add_const("b", [P, P])
    known = model.add_const("known", np.array([True, False]))
    assert _dims(model, wire_one(model, "iff", Iff(), known, a, b)) == (S, P)
    positive = wire_one(model, "positive", Gt(), model.add_const("c", [S + 1, -S]), model.add_const("zero", [0, 0]))
    assert _dims(model, wire_one(model, "decided", Iff(), positive, a, b)) == (S, P)


def test_division_of_sizes_is_towards_zero() -> None:
    model = TypedModel()
    values = [model.add_const("a", [S, -5, 5, -6]), model.add_const("b", np.array([2, 2, -2, 4]))]
    assert _dims(model, wire_one(model, "op", Div(), *values)) == (S // 2, -2, -2, -1)


def test_triangle_of_sizes() -> None:
    model = TypedModel()
    matrix = model.add_const("m", SymbolicArray(np.array([[S, P], [B, S]], dtype=object)))
    outlet = wire_one(model, "op", Trilu(True), matrix, model.add_const("k", 0))
    assert _dims(model, outlet) == (S, P, 0, S)


def test_range_of_sizes() -> None:
    model = TypedModel()
    ends = [model.add_const(name, dim) for name, dim in (("start", S), ("end", S + 3), ("step", 1))]
    assert _dims(model, wire_range(model, "range", *ends)) == (S, S + 1, S + 2)
    symbolic = wire_range(model, "long", model.add_const("zero", 0), ends[0], ends[2])
    assert model.outlet_fact(symbolic).shape == (S,)
    assert _dims(model, symbolic) is None


def test_shape_gather_concat_reshape_resolves_while_it_is_wired() -> None:
    model, (x,) = _model("B,S,4,6,f32")
    shape = model.add_const("shape", list(model.outlet_fact(x).shape))
    batch = wire_one(model, "batch", Gather(0), shape, model.add_const("zero", np.array([0])))
    heads = wire_one(model, "heads", Slice(0, 2, 4), shape)
    first = wire_one(model, "first", Gather(0), heads, model.add_const("i", 0))
    half = wire_one(model, "half", Div(), first, model.add_const("two", 2))
    half = wire_one(model, "half.list", AddAxis(0), half)
    wanted = wire_one(model, "wanted", TypedConcat(0), batch, half, model.add_const("rest", np.array([-1])))
    assert _dims(model, wanted) == (B, 2, -1)
    y = wire_dyn_reshape(model, "y", x, wanted)
    assert isinstance(model.producer(y).op, Reshape)
    assert model.outlet_fact(y).shape == (B, 2, 12 * S)
    model.set_outputs([y])
    for batch_size, length in ((2, 3), (1, 5)):
        array = np.arange(batch_size * length * 24, dtype=np.float32).reshape(batch_size, length, 4, 6)
        (found,) = _run(model, array)
        assert found.shape == (batch_size, 2, 12 * length)
        assert found.ravel().tolist() == array.ravel().tolist()


@pytest.mark.parametrize("declutter", [False, True])
def test_non_zero_then_gather_on_one_state(declutter: bool) -> None:
    model, (x, table) = _model("S,f32", "S,2,f32")
    places = wire_non_zero(model, "found", x)
    row = wire_one(model, "row", Gather(0), places, model.add_const("zero", 0))
    rows = wire_one(model, "rows", Gather(0), table, row)
    (count,) = model.outlet_fact(row).shape
    many = model.add_const("many", [count, count + 1])
    model.set_outputs([rows, many])
    if declutter:
        model.declutter()
    state = TypedSimplePlan(model).spawn()
    for values in ([0, 1, 0, 2], [0, 0, 0], [5], [3, 1, 0, 0, 7, 1]):
        array = np.array(values, dtype=np.float32)
        data = np.arange(2 * len(values), dtype=np.float32).reshape(-1, 2)
        wanted = [i for i, value in enumerate(values) if value]
        found, sizes = state.run([array, data])
        assert found.tolist() == [[2.0 * i, 2.0 * i + 1] for i in wanted]
        assert sizes.tolist() == [len(wanted), len(wanted) + 1]


def test_a_size_is_found_before_what_needs_it_though_it_is_read_later() -> None:
    model, (x, y) = _model("S,f32", "T,f32")
    rows, columns = wire_non_zero(model, "rows", x), wire_non_zero(model, "columns", y)
    count = model.outlet_fact(rows).shape[1]
    tall = wire_one(model, "tall", MultiBroadcastTo((count, *model.outlet_fact(columns).shape)), columns)
    tall = wire_one(model, "same_size", Identity(), tall)  # it has the size of ``rows``, and must not stand for it
    model.set_outputs([tall, rows])
    found, places = TypedSimplePlan(model).run([np.float32([0, 1, 2]), np.float32([4, 0, 0, 5])])
    assert found.tolist() == [[[0, 3]], [[0, 3]]]
    assert places.tolist() == [[1, 2]]


def test_a_size_is_not_found_by_what_was_computed_with_it() -> None:
    model, (x,) = _model("S,f32")
    places = wire_non_zero(model, "found", x)
    count = model.outlet_fact(places).shape[1]
    ends = [model.add_const(f"end{slot}", value) for slot, value in enumerate((0, count, 1))]
    numbers = wire_one(model, "numbers", Range(count), *ends)  # announces its length, and could not run without it
    model.set_outputs([numbers, places])
    found, places_found = TypedSimplePlan(model).run([np.float32([0, 1, 0, 2, 3])])
    assert found.tolist() == [0, 1, 2]
    assert places_found.tolist() == [[1, 3, 4]]


def test_sizes_that_need_each_other_are_refused() -> None:
    model, (x,) = _model("1,f32")
    for size, other in ((S, P), (P, S)):
        wide = wire_one(model, f"wide_{size}", MultiBroadcastTo((other,)), x)
        places = wire_one(model, f"found_{size}", NonZero(size), wide)
        model.set_outputs([*model.outputs, places])
    with pytest.raises(UntypableModel, match="sizes that only come out of each other: wide_S, found_S, wide_P"):
        TypedSimplePlan(model)


def test_the_same_question_has_one_symbol() -> None:
    model, (x,) = _model("S,f32")
    first, second = wire_non_zero(model, "a", x), wire_non_zero(model, "b", x)
    assert first == second


def test_operator_that_mentions_a_fresh_symbol_waits_for_it() -> None:
    """The stretched tensor does not read what was found, and was wired before it: only the size connects them."""
    model, (one, x) = _model("1,f32", "S,f32")
    count = model.symbols.new_symbol("count")
    stretched = wire_one(model, "stretched", MultiBroadcastTo((count,)), one)
    found = wire_one(model, "found", NonZero(count), x)
    model.set_outputs([stretched, found])
    plan = TypedSimplePlan(model)
    for values in ([1, 0, 1], [0, 0]):
        wide, _ = plan.run([np.ones(1, dtype=np.float32), np.array(values, dtype=np.float32)])
        assert wide.shape == (sum(values),)


def test_an_announced_size_that_does_not_come_is_refused() -> None:
    model, (x,) = _model("S,i64")
    ends = [model.add_const(name, value) for name, value in (("start", 0), ("step", 1))]
    end = wire_one(model, "end", Gather(0), x, model.add_const("first", 0))
    model.set_outputs([wire_one(model, "range", Range(S), ends[0], end, ends[1])])
    assert _run(model, np.array([2, 0]))[0].tolist() == [0, 1]
    with pytest.raises(RunError, match=r"node 'range' \(Range\): the output has shape \(5,\), S,i64 was announced"):
        _run(model, np.array([5, 0]))


def test_dynamic_reshape_expand_fill_and_tile() -> None:
    model, (x, shape) = _model("S,f32", "2,i64")
    reshaped = wire_dyn_reshape(model, "reshaped", x, shape)
    expanded = wire_expand(model, "expanded", wire_one(model, "row", AddAxis(0), x), shape)
    filled = wire_fill(model, "filled", shape, Constant(np.array(7, dtype=np.int8)))
    tiled = wire_tile(model, "tiled", wire_one(model, "column", AddAxis(1), x), shape)
    model.set_outputs([reshaped, filled, tiled])
    plan = TypedSimplePlan(model)
    array = np.arange(6, dtype=np.float32)
    for wanted in ((2, 3), (3, 2), (6, 1)):
        found, seven, repeated = plan.run([array, np.array(wanted)])
        assert found.tolist() == array.reshape(wanted).tolist()
        assert seven.tolist() == [[7] * wanted[1]] * wanted[0]
        assert repeated.shape == (6 * wanted[0], wanted[1])
    model.set_outputs([expanded])
    (found,) = _run(model, array, np.array([3, 6]))
    assert found.tolist() == [array.tolist()] * 3


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_dynamic_slice_means_what_python_means(step: int) -> None:
    model, (x, start, end) = _model("S,f32", "i64", "i32")
    model.set_outputs([wire_dyn_slice(model, "y", x, 0, start=start, end=end, step=step)])
    plan = TypedSimplePlan(model)
    array = np.arange(7, dtype=np.float32)
    for first in (-99, -7, -3, 0, 2, 6, 7, 99):
        for last in (-99, -8, -7, -2, 0, 1, 5, 7, 99):
            (found,) = plan.run([array, np.array(first), np.array(last, dtype=np.int32)])
            assert found.tolist() == array[first:last:step].tolist(), (first, last)


@pytest.mark.parametrize("size", range(8))
@pytest.mark.parametrize("step", [1, 3, -1, -2])
def test_static_slice_means_what_python_means(step: int, size: int) -> None:
    array = np.arange(size, dtype=np.float32)
    for start in (None, -99, -7, -3, -1, 0, 2, 6, 7, 99, 2**40):
        for end in (None, -(2**40), -99, -8, -2, 0, 1, 5, 7, 99):
            for symbolic in (False, True):
                model, (x,) = _model("S,f32" if symbolic else f"{size},f32")
                y = wire_slice(model, "y", x, 0, start=start, end=end, step=step)
                model.set_outputs([y, model.add_const("size", model.outlet_fact(y).shape)])
                found, (claimed,) = _run(model, array)
                assert found.tolist() == array[start:end:step].tolist(), (start, end)
                assert claimed == len(found), (start, end)


@pytest.mark.parametrize(
    ("start", "end", "step", "wanted"),
    [
        (None, None, 1, "S"),
        (None, None, -1, "S"),
        (0, 2**63 - 1, 1, "S"),
        (-1, None, 1, "min(1,S)"),
        (None, -1, 1, "max(0,S-1)"),
        (2, None, 1, "max(0,S-2)"),
        (None, 1, 1, "min(1,S)"),
        (None, 10, 1, "min(10,S)"),
        (-10, None, 1, "min(10,S)"),
        (S - 1, S, 1, "1"),
        (0, P, 1, "P"),
        (None, None, 2, "(S+1)/2"),
        (3, 3, 1, "0"),
        (5, 2, 1, "0"),
    ],
)
def test_slice_of_a_symbolic_axis(start: Dim | None, end: Dim | None, step: int, wanted: str) -> None:
    model, (x,) = _model("S,f32")
    y = wire_slice(model, "y", x, 0, start=start, end=end, step=step)
    assert str(model.outlet_fact(y).shape) == wanted


def test_slice_uses_what_is_asserted() -> None:
    model, (x,) = _model("S,f32")
    model.symbols.add_assertion("S>=16")
    assert model.outlet_fact(wire_slice(model, "y", x, 0, start=None, end=10)).shape == (10,)
    assert model.outlet_fact(wire_slice(model, "z", x, 0, start=-10, end=None)).shape == (10,)


def test_dynamic_pads() -> None:
    model, (x, pads, value) = _model("S,f32", "2,i64", "f32")
    mode = PadConstant(Constant(np.array(0, dtype=np.float32)))
    model.set_outputs([wire_dyn_pad(model, "y", x, pads, mode, value=value)])
    plan = TypedSimplePlan(model)
    array, nine = np.array([1, 2, 3], dtype=np.float32), np.array(9, dtype=np.float32)
    assert plan.run([array, np.array([1, 2]), nine])[0].tolist() == [9, 1, 2, 3, 9, 9]
    assert plan.run([array, np.array([-1, 0]), nine])[0].tolist() == [2, 3]


def test_negative_pads_cut() -> None:
    model, (x,) = _model("S,4,f32")
    mode = PadConstant(Constant(np.array(0, dtype=np.float32)))
    y = wire_pad(model, "y", x, [(-1, 2), (0, -1)], mode)
    assert str(model.outlet_fact(y)) == "S+1,3,f32"
    assert wire_pad(model, "z", x, [(0, 0), (0, 0)], mode) == x
    model.set_outputs([y])
    (found,) = _run(model, np.arange(8, dtype=np.float32).reshape(2, 4))
    assert found.tolist() == [[4, 5, 6], [0, 0, 0], [0, 0, 0]]


def test_dynamic_range() -> None:
    model, (start, end, step) = _model("f32", "f32", "f32")
    model.set_outputs([wire_range(model, "y", start, end, step)])
    plan = TypedSimplePlan(model)
    for values, wanted in (((0, 2, 0.5), [0, 0.5, 1, 1.5]), ((3, 0, -1), [3, 2, 1]), ((1, 0, 1), [])):
        assert plan.run([np.array(v, dtype=np.float32) for v in values])[0].tolist() == wanted


def test_dynamic_count_of_the_largest() -> None:
    model, (x, k) = _model("S,f32", "i64")
    model.set_outputs(wire_topk(model, "y", x, k, 0, largest=True))
    plan = TypedSimplePlan(model)
    array = np.array([3, 9, 5, 9], dtype=np.float32)
    for count, values, places in ((1, [9], [1]), (3, [9, 9, 5], [1, 3, 2])):
        found, positions = plan.run([array, np.array(count)])
        assert (found.tolist(), positions.tolist()) == (values, places)


def test_dynamic_one_hot() -> None:
    model, (x, depth) = _model("S,i64", "i64")
    off, on = (Constant(np.array(value, dtype=np.int32)) for value in (0, 1))
    model.set_outputs([wire_one_hot(model, "y", x, depth, axis=1, off=off, on=on)])
    plan = TypedSimplePlan(model)
    assert plan.run([np.array([1, -1]), np.array(3)])[0].tolist() == [[0, 1, 0], [0, 0, 1]]
    assert plan.run([np.array([0]), np.array(2)])[0].tolist() == [[1, 0]]


def test_compress() -> None:
    model, (x, mask) = _model("S,f32", "S,bool")
    model.set_outputs([wire_compress(model, "y", x, mask, 0)])
    plan = TypedSimplePlan(model)
    assert plan.run([np.array([1, 2, 3], dtype=np.float32), np.array([True, False, True])])[0].tolist() == [1, 3]
    assert plan.run([np.array([4], dtype=np.float32), np.array([False])])[0].tolist() == []


@pytest.mark.parametrize("diagonal", [-1, 0, 2])
def test_eye(diagonal: int) -> None:
    model, (x,) = _model("S,f32")
    eye = wire_eye(model, "eye", rows=S, columns=4, diagonal=diagonal, to=DatumType.F32)
    assert str(model.outlet_fact(eye)) == "S,4,f32"
    model.set_outputs([eye, x])
    (found, _) = _run(model, np.zeros(3, dtype=np.float32))
    assert found.tolist() == [[float(column - row == diagonal) for column in range(4)] for row in range(3)]


@pytest.mark.parametrize(
    ("fact", "shape", "wanted"),
    [
        ("B,S,64,f32", [0, 0, 8, 8], "B,S,8,8,f32"),
        ("B,S,64,f32", [B, S, 8, -1], "B,S,8,8,f32"),
        ("B,S,64,f32", [-1, 64], "B*S,64,f32"),
        ("B,S,64,f32", [-1], "64*B*S,f32"),
        ("7*S,f32", [-1, 14], "S/2,14,f32"),
        ("0,S,f32", [0, -1], "0,S,f32"),
    ],
)
def test_known_reshape(fact: str, shape: list[Dim], wanted: str) -> None:
    model, (x,) = _model(fact)
    found = wire_dyn_reshape(model, "y", x, model.add_const("shape", shape))
    assert str(model.outlet_fact(found)) == wanted


def test_reshape_that_has_no_expression_waits_for_the_run() -> None:
    model, (x, y) = _model("S,P,f32", "P,f32")
    shape = model.add_const("shape", [P + 1, -1])
    model.set_outputs([wire_dyn_reshape(model, "z", x, shape), y])
    plan = TypedSimplePlan(model)
    zeros = np.zeros((6, 2), dtype=np.float32)
    assert plan.run([zeros, zeros[0]])[0].shape == (3, 4)
    assert plan.run([zeros[:, :1], zeros[0, :1]])[0].shape == (2, 3)


@pytest.mark.parametrize(
    ("fact", "shape", "message"),
    [
        ("2,3,f32", [-1, 4], r"\[2,3\] has 6 elements, which cannot be divided into sizes \[4\]"),
        ("2,3,f32", [-1, -1], r"\[2,3\] as \[-1,-1\]: -1 may stand for one size only"),
        ("2,3,f32", [2, 3, 0], r"\[2,3\] as \[2,3,0\]: 0 asks for axis 2, which is not there"),
    ],
)
def test_reshape_that_cannot_be(fact: str, shape: list[int], message: str) -> None:
    model, (x,) = _model(fact)
    with pytest.raises(FactError, match=message):
        wire_dyn_reshape(model, "y", x, model.add_const("shape", np.array(shape)))


def test_pinned_constant_is_not_folded() -> None:
    model = TypedModel()
    pinned = wire_one(model, "pin", PinConst(), model.add_const("c", np.array([1, 2])))
    assert model.outlet_fact(pinned).value is None
    model.set_outputs([wire_one(model, "sum", Add(), pinned, pinned)])
    model.declutter()
    assert [node.op.name for node in model.live_nodes()] == ["Const", "PinConst", "Add"]
    assert _run(model)[0].tolist() == [2, 4]


def test_identity_is_folded() -> None:
    model = TypedModel()
    same = wire_one(model, "same", Identity(), model.add_const("c", np.array([1, 2])))
    model.set_outputs([wire_one(model, "sum", Add(), same, same)])
    model.declutter()
    assert [node.op.name for node in model.live_nodes()] == ["Const"]


def test_what_only_binds_a_symbol_is_kept() -> None:
    """A constant of sizes mentions how many elements are not zero: the node that counts them must run, read or not."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    count = model.symbols.new_symbol("n")
    model.wire_node("found", NonZero(count), [x])
    size = model.add_const("size", [count * 2])
    model.set_outputs([size])
    for one in (model, model.clone().declutter()):
        plan = TypedSimplePlan(one)
        for values in ([0, 1, 2, 0], [1, 1, 1]):
            (found,) = plan.run([np.array(values, np.float32)])
            assert found.tolist() == [2 * np.count_nonzero(values)]


def test_what_has_no_symbolic_meaning_stays_unknown() -> None:
    model, (x,) = _model("B,S,f32")
    shape = model.add_const("shape", list(model.outlet_fact(x).shape))
    place = wire_one(model, "place", Reduce((0,), Reducer.ARG_MAX_FIRST), shape)
    assert model.outlet_fact(place).value is None


def test_no_size_has_more_than_64_bits() -> None:
    with pytest.raises(DimError, match="one has more than 64 bits"):
        TypedModel().add_const("size", [2**70])
