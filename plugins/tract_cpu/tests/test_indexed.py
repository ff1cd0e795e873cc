"""Elements that indices name, paddings, and parts put together: bit by bit against NumPy; and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import Isa, of_this_machine

from tract_core.data import Constant, DatumType
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Neg
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.one_hot import OneHot
from tract_core.ops.pad import Pad, PadConstant, PadEdge, PadReflect, PadWrap
from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.ops.tile import Tile
from tract_core.ops.trilu import Trilu
from tract_core.plugins.keys import Array
from tract_core.runtime.parts import Part
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.reference import ReferenceRuntime
from tract_core.testing.outcomes import outcome_of

BEST = of_this_machine()[-1]


def model_of(op: TypedOp, *facts: str) -> TypedModel:
    model = TypedModel()
    outlets = [model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols)) for slot, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("op", op, outlets))
    return model


def run(isa: Isa, model: TypedModel, *inputs: np.ndarray) -> np.ndarray:
    """By native code alone, and on a plan that runs a second time."""
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    state = plan.spawn()
    state.run(list(inputs))
    return state.run(list(inputs))[0]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.parametrize("inner", [1, 2, 15, 64, 67])
@pytest.mark.parametrize("index", ["i32", "i64", "u8"])
def test_rows_are_gathered_from_both_ends(isa, inner, index) -> None:
    dtype = DatumType[index.upper()].numpy
    table, places = np.random.default_rng(0).standard_normal((9, inner)).astype("f4"), np.array([[0, 8, 3], [2, 2, 0]])
    if index != "u8":
        places = places - 9 * (places > 2)
    found = run(isa, model_of(Gather(0), f"9,{inner},f32", f"2,K,{index}"), table, places.astype(dtype))
    assert same_bits(found, table[places])


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_one_plan_gathers_any_number(isa, count) -> None:
    table, places = np.arange(40, dtype="i2").reshape(4, 10), np.random.default_rng(0).integers(-10, 10, count)
    assert same_bits(run(isa, model_of(Gather(1), "4,10,i16", "K,i64"), table, places), table[:, places])


def test_a_table_that_is_turned_is_gathered_from(isa) -> None:
    model = TypedModel()
    table, places = (
        model.add_source(name, parse_typed_fact(text)) for name, text in (("t", "5,7,f64"), ("i", "4,i64"))
    )
    (turned,) = model.wire_node("turned", MoveAxis(0, 1), [table])
    model.set_outputs(model.wire_node("rows", Gather(0), [turned, places]))
    x, numbers = np.random.default_rng(0).standard_normal((5, 7)), np.array([6, 0, -1, 3])
    assert same_bits(run(isa, model, x, numbers), x.T[numbers])


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "c16"])
@pytest.mark.parametrize(
    ("op", "shape", "places"),
    [
        (Gather(0), (9, 5), [[0, 8], [-1, 3]]),
        (Gather(0), (9, 40, 3), [7]),
        (Gather(1), (3, 7, 11), [6, 0, -7]),
        (Gather(1), (3, 7), [2, 3]),
        (Gather(0), (9, 0), [1, 1]),
        (Gather(0), (9, 5), []),
        (GatherNd(0), (4, 5, 3), [[3, 0], [-1, 4], [0, 0]]),
        (GatherNd(1), (2, 5, 3), [[4], [0]]),
    ],
)
def test_a_table_is_read_where_it_lies(isa: Isa, op: TypedOp, shape: Any, places: Any, kind: str) -> None:
    """As one of the model that begins anywhere in a file: it is not copied."""
    content = np.random.default_rng(0).integers(0, 100, shape).astype(kind)
    memory = np.zeros(content.nbytes + 8, np.uint8)
    table = memory[1:][: content.nbytes].view(kind).reshape(shape)
    table[...] = content
    numbers = np.array(places, np.int64)
    model = TypedModel()
    held = model.add_const("table", table)
    index = model.add_source("places", parse_typed_fact(",".join(map(str, (*numbers.shape, "i64")))))
    model.set_outputs(model.wire_node("op", op, [held, index]))
    (wanted,) = TypedSimplePlan(model).run([numbers])
    assert same_bits(run(isa, model, numbers), wanted)
    read = [one for one in CpuPlan(model, isa).program.constants if one.size]
    assert all(np.shares_memory(one, memory) for one in read)
    if numbers.size and content.size:
        with pytest.raises(RunError, match="outside"):
            CpuPlan(model, isa).spawn().run([numbers + 100])


def test_one_known_index_is_a_view(isa) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("4,3,f32", model.symbols))
    model.set_outputs(model.wire_node("last", Gather(0), [x, model.add_const("i", np.array(-1))]))
    plan = CpuPlan(model, isa)
    assert [one.how for one in plan.explain().placements] == ["view"]
    rows = np.arange(12, dtype="f4").reshape(4, 3)
    assert same_bits(plan.spawn().run([rows])[0], rows[-1])


REFUSED = [
    (Gather(1), ["2,3,f32", "4,i64"], np.array([0, -3, 3, 5]), "index 3 is outside axis 1, which has size 3"),
    (Gather(0), ["0,3,f32", "1,i64"], np.array([0]), "index 0 is outside axis 0, which has size 0"),
    (GatherElements(0), ["2,3,f32", "1,3,i32"], np.array([[0, -3, 0]], "i4"), "index -3 is outside axis 0"),
    (GatherNd(0), ["2,3,f32", "2,2,i64"], np.array([[1, 2], [1, 3]]), "index 3 is outside axis 1"),
    (ScatterElements(1), ["2,3,f32", "1,2,i64", "1,2,f32"], np.array([[0, 9]]), "index 9 is outside axis 1"),
    (ScatterNd(), ["2,3,f32", "1,1,i64", "1,3,f32"], np.array([[-3]]), "index -3 is outside axis 0"),
]


@pytest.mark.parametrize(("op", "facts", "places", "problem"), REFUSED, ids=lambda one: getattr(one, "name", ""))
def test_an_index_outside_gives_the_error_of_the_reference(isa, op, facts, places, problem) -> None:
    model = model_of(op, *facts[:1], facts[1].replace("4,", "K,"), *facts[2:])
    (negated,) = model.wire_node("after", Neg(), list(model.outputs))
    model.set_outputs([negated])
    shapes = [tuple(map(int, fact.split(",")[:-1])) for fact in facts]
    inputs = [np.ones(shapes[0], "f4"), places, *(np.ones(shape, "f4") for shape in shapes[2:])]
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    state = plan.spawn()
    for _ in range(2):
        with pytest.raises(RunError) as error:
            state.run(inputs)
        assert problem in str(error.value)
        assert "node 'op'" in str(error.value)
        with pytest.raises(RunError) as wanted:
            ReferenceRuntime().prepare(model).spawn().run(inputs)
        assert str(error.value) == str(wanted.value)
    if 0 not in shapes[0]:
        inputs[1] = np.zeros_like(places)
        np.testing.assert_array_equal(state.run(inputs)[0], ReferenceRuntime().prepare(model).spawn().run(inputs)[0])


def test_what_is_refused_between_other_nodes_is_told_when_somebody_looks_on() -> None:
    model = model_of(Gather(0), "3,f32", "2,i64")
    model.set_outputs(model.wire_node("after", Neg(), list(model.outputs)))
    seen: list[object] = []

    def look(part: Part, outputs: Mapping[OutletId, Array]) -> Mapping[OutletId, Array]:
        seen.append(part)
        return {}

    with pytest.raises(RunError, match="index 7"):
        CpuPlan(model, BEST).spawn_observed(look).run([np.ones(3, "f4"), np.array([0, 7])])
    assert seen == []


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("kind", ["f2", "f4", "i4", "u1"])
def test_several_writes_to_one_place_hold_in_order(isa, reduction, kind) -> None:
    rng = np.random.default_rng(3)
    name = {"f2": "f16", "f4": "f32", "i4": "i32", "u1": "u8"}[kind]
    x, numbers = rng.integers(0, 9, (5, 6)).astype(kind), rng.integers(-5, 5, (9, 6))
    updates = rng.integers(0, 9, (9, 6)).astype(kind)
    if kind == "f2":  # sums of these are rounded once
        x, updates = x / x.dtype.type(7), updates / x.dtype.type(7)
    if kind == "f4":
        updates[3, 2], updates[4, 4] = np.nan, -0.0
    model = model_of(ScatterElements(0, reduction), f"5,6,{name}", "N,6,i64", f"N,6,{name}")
    wanted = ReferenceRuntime().prepare(model).spawn().run([x, numbers, updates])[0]
    np.testing.assert_array_equal(run(isa, model, x, numbers, updates), wanted)
    rows = model_of(ScatterNd(reduction), f"5,6,{name}", "N,1,i64", f"N,6,{name}")
    inputs = [x, numbers[:, :1].copy(), updates]
    wanted = ReferenceRuntime().prepare(rows).spawn().run(inputs)[0]
    np.testing.assert_array_equal(run(isa, rows, *inputs), wanted)


MODES = {
    "constant": PadConstant(Constant(np.array(7, "u2"))),
    "edge": PadEdge(),
    "reflect": PadReflect(),
    "wrap": PadWrap(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "pads", [((1, 2), (0, 0), (3, 0)), ((0, 5), (2, 1), (0, 0)), ((9, 9), (0, 7), (30, 11))], ids=str
)
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (2, 3, 40)], ids=str)
def test_pads_are_those_of_numpy(isa, mode, pads, shape) -> None:
    x = np.random.default_rng(2).integers(0, 1 << 16, shape).astype("u2")
    found = run(isa, model_of(Pad(pads, MODES[mode]), "A,B,C,u16"), x)
    further = {"constant_values": np.array(7, "u2")} if mode == "constant" else {}
    assert same_bits(found, np.pad(x, pads, mode=mode, **further))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_parts_of_any_size_are_put_together(isa, axis) -> None:
    sizes = [3, 0, 1, 17]
    shapes = [tuple(size if place == axis else 5 for place in range(3)) for size in sizes]
    facts = [",".join("ABCD"[slot] if place == axis else "5" for place in range(3)) + ",i16" for slot in range(4)]
    rng = np.random.default_rng(0)
    parts = [rng.integers(-9, 9, shape).astype("i2") for shape in shapes]
    assert same_bits(run(isa, model_of(TypedConcat(axis), *facts), *parts), np.concatenate(parts, axis))


@pytest.mark.parametrize("counts", [(2, 3), (1, 4), (5, 1), (0, 2), (1, 1)], ids=str)
@pytest.mark.parametrize("shape", [(3, 17), (1, 4), (2, 1), (0, 3)], ids=str)
def test_repeated_tensors_are_those_of_numpy(isa, counts, shape) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    assert same_bits(run(isa, model_of(Tile(counts), "N,M,f64"), x), np.tile(x, counts))


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("diagonal", [-(2**63), -70, -2, 0, 1, 33, 66, 67, 2**63 - 1])
def test_triangles_are_those_of_numpy(isa, upper, diagonal) -> None:
    x = np.random.default_rng(0).standard_normal((2, 35, 67)).astype("f4")
    found = run(isa, model_of(Trilu(upper), "B,35,67,f32", "i64"), x, np.array(diagonal))
    clipped = int(np.clip(diagonal, -100, 100))
    assert same_bits(found, np.triu(x, clipped) if upper else np.tril(x, clipped))


def test_numbers_outside_are_nowhere(isa) -> None:
    op = OneHot(1, 3, Constant(np.array(0.5, "f4")), Constant(np.array(-1, "f4")))
    numbers = np.array([[0, 1, 2, 3], [-1, -3, -4, 2**40]])
    wanted = np.full((2, 3, 4), 0.5, "f4")
    for i, j in np.ndindex(2, 4):
        if -3 <= numbers[i, j] < 3:
            wanted[i, numbers[i, j], j] = -1
    assert same_bits(run(isa, model_of(op, "N,4,i64"), numbers), wanted)


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_any_thread_may_refuse(threads) -> None:
    model = model_of(Gather(0), "9,512,f32", "K,i64")
    model.set_outputs(model.wire_node("after", Neg(), list(model.outputs)))
    state = CpuPlan(model, BEST, threads).spawn()
    table, places = np.random.default_rng(0).standard_normal((9, 512)).astype("f4"), np.arange(4096) % 9
    for outside in (0, 1000, 2048, 4095):
        wrong = places.copy()
        wrong[outside] = 9
        with pytest.raises(RunError, match="index 9 is outside axis 0"):
            state.run([table, wrong])
        np.testing.assert_array_equal(state.run([table, places])[0], -table[places])


@pytest.mark.parametrize(("axis", "fact"), [(0, "S,3,f32"), (1, "B,S,f32"), (1, "B,7,f32")])
@pytest.mark.parametrize("index", [2, -3, 5, -6])
def test_one_known_index_is_inside_or_refused_whatever_the_sizes(isa: Isa, axis: int, fact: str, index: int) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    at = model.add_const("at", np.array([index]))
    model.set_outputs(model.wire_node("pick", Gather(axis), [x, at]))
    for sizes in ((0, 4), (2, 4), (3, 4), (6, 4), (0, 0)):
        values = dict(zip(("B", "S"), sizes, strict=True)) if axis else {"S": sizes[0]}
        shape = [values.get(token, 0) if token in "BS" else int(token) for token in fact.split(",")[:-1]]
        given = [np.arange(np.prod(shape), dtype="f4").reshape(shape)]
        wanted = outcome_of(partial(TypedSimplePlan(model).run, given))
        found = outcome_of(partial(CpuPlan(model, isa).spawn().run, given))
        assert isinstance(found, str) == isinstance(wanted, str), (shape, found, wanted)
        if not isinstance(found, str):
            np.testing.assert_array_equal(found[0], wanted[0])
