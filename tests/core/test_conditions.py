"""What operators want of sizes is checked in every run, whatever became of the operator."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.dims import Dim, SymbolScope, broadcast, evaluate, parse_dim, symbol
from tract_core.errors import FactError, InputError, RunError, TransformError
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import (
    Condition,
    may_be_at_most,
    may_broadcast,
    may_equal,
    may_stretch,
    noting,
)
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.knowledge import Conditions
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape, RmAxis
from tract_core.ops.binary import Add
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.non_zero import NonZero
from tract_core.ops.slice import Slice
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.transforms.float_precision import F32ToF16
from tract_core.transforms.select import SelectOutputs
from tract_core.transforms.set_symbols import SetSymbols

MATMUL = EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32)


def _wired(op: TypedOp, *facts: str, shape_only: bool = True) -> tuple[TypedModel, OutletId]:
    """A model of one operator, ``node``, that gives the shape of its result, or the result."""
    model = TypedModel()
    inputs = [model.add_source(f"x{i}", parse_typed_fact(fact, model.symbols)) for i, fact in enumerate(facts)]
    (y,) = model.wire_node("node", op, inputs)
    model.set_outputs([model.add_const("shape", model.outlet_fact(y).shape) if shape_only else y])
    return model, y


def _run(model: TypedModel, *shapes: tuple[int, ...]) -> list[list[int]]:
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    return [array.tolist() for array in TypedSimplePlan(model).run(arrays)]


@dataclass(frozen=True)
class Wanting:
    """An operator, the facts of its inputs, and shapes with which it may and may not run."""

    op: TypedOp
    facts: list[str]
    good: list[tuple[int, ...]]
    bad: list[tuple[int, ...]]
    message: str


HALVED = Reshape(0, (symbol("S"),), (2, symbol("S") // 2))

WANTING = [
    Wanting(MATMUL, ["2,S,f32", "T,3,f32"], [(2, 4), (4, 3)], [(2, 1), (4, 3)], "size S must be T; S is 1 and T is 4"),
    Wanting(MATMUL, ["2,S,f32", "4,3,f32"], [(2, 4), (4, 3)], [(2, 1), (4, 3)], "size S must be 4; S is 1"),
    Wanting(Add(), ["S,f32", "3,f32"], [(1,), (3,)], [(2,), (3,)], "S and 3 must be equal, or one of them 1; S is 2"),
    Wanting(Add(), ["S,f32", "T,f32"], [(2,), (1,)], [(2,), (0,)], "S and T must be equal, or one of them 1; S is 2"),
    Wanting(TypedConcat(0), ["2,S,f32", "4,T,f32"], [(2, 3), (4, 3)], [(2, 3), (4, 1)], "S is 3 and T is 1"),
    Wanting(RmAxis(0), ["S,3,f32"], [(1, 3)], [(0, 3)], "size S must be 1; S is 0"),
    Wanting(Slice(0, 1, 4), ["S,f32"], [(4,)], [(3,)], "size S must be 4 or more; S is 3"),
    Wanting(HALVED, ["S,f32"], [(4,)], [(3,)], "size S must be 2*(S/2); S is 3 and 2*(S/2) is 2"),
]


@pytest.mark.parametrize("decluttered", [False, True])
@pytest.mark.parametrize("shape_only", [False, True])
@pytest.mark.parametrize("case", WANTING, ids=lambda case: case.message)
def test_a_run_checks_what_an_operator_wants(case: Wanting, shape_only: bool, decluttered: bool) -> None:
    model, y = _wired(case.op, *case.facts, shape_only=shape_only)
    rank = model.outlet_fact(y).rank
    if decluttered:
        model.declutter()
    (found,) = _run(model, *case.good)
    assert np.ndim(found) == (1 if shape_only else rank)
    with pytest.raises(InputError) as caught:
        _run(model, *case.bad)
    assert caught.value.where == f"node 'node' ({case.op.name})"
    assert case.message in caught.value.problem


def test_a_number_may_be_stretched_where_a_symbol_may_not() -> None:
    model, _ = _wired(MATMUL, "2,1,f32", "S,3,f32", shape_only=False)
    assert _run(model, (2, 1), (4, 3)) == [[[4.0] * 3] * 2]
    assert not len(model.conditions)


def test_what_is_certain_is_no_condition() -> None:
    model, _ = _wired(MATMUL, "2,S,f32", "S,3,f32")
    assert not len(model.conditions)


def test_what_contradicts_is_refused_while_wiring() -> None:
    model = TypedModel()
    facts = {"x": "1,S,f32", "y": "3,1,f32", "z": "4,1,f32"}
    x, y, z = (model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items())
    model.wire_node("one", MATMUL, [x, y])
    with pytest.raises(FactError, match="size S must be 4, which contradicts what else is known of S"):
        model.wire_node("two", MATMUL, [x, z])
    model.symbols.add_assertion("P>=5")
    p = model.add_source("p", parse_typed_fact("1,P,f32", model.symbols))
    with pytest.raises(FactError, match="size P must be 3, which contradicts what else is known of P"):
        model.wire_node("three", MATMUL, [p, y])


def test_equal_symbols_share_the_name_that_came_first() -> None:
    model = TypedModel()
    a, b, c = (model.add_source(name, parse_typed_fact(f"{name},2,f32", model.symbols)) for name in "abc")
    model.wire_node("ab", TypedConcat(1), [b, a])
    model.wire_node("bc", TypedConcat(1), [c, b])
    (sum_of_all,) = model.wire_node("again", TypedConcat(1), [c, a])
    assert str(model.outlet_fact(sum_of_all).shape) == "a,4"
    assert len(model.conditions) == 2  # the third follows


def test_the_broadcast_of_equal_sizes_is_the_one_that_came_first() -> None:
    model = TypedModel()
    facts = {"a": "2*((H+1)/2),3,f32", "b": "H,3,f32", "c": "W+1,3,f32"}
    a, b, c = (model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items())
    model.wire_node("ab", TypedConcat(1), [b, a])
    model.wire_node("bc", TypedConcat(1), [a, c])
    for name, inputs in {"x": [a, b], "y": [b, a], "z": [c, b]}.items():
        (outlet,) = model.wire_node(name, Add(), inputs)
        assert model.outlet_fact(outlet).shape == (symbol("H"), 3)
    assert [condition.relation for condition, _ in model.conditions] == ["==", "=="]  # sums follow from them
    model.set_outputs([outlet])
    assert _run(model, (4, 3), (4, 3), (4, 3)) == [np.full((4, 3), 2.0).tolist()]
    with pytest.raises(InputError, match=r"size H must be 2\*\(\(H\+1\)/2\)"):
        _run(model, (4, 3), (3, 3), (3, 3))


def test_equal_sizes_may_contradict_each_other() -> None:
    scope = SymbolScope(["S", "T"])
    conditions = Conditions()
    for left, right in (("2*S", "2*T+1"), ("(S+1)/2", "7"), ("(S+1)/2", "T/3")):
        conditions.add(Condition(parse_dim(left), "==", parse_dim(right)), "node")
    assert conditions.contradict(scope)
    assert conditions.known(scope).simplify(broadcast(parse_dim("T/3"), parse_dim("P+1"))) == 7


def test_a_symbol_that_must_be_a_number_is_that_number() -> None:
    model = TypedModel()
    a, b = (model.add_source(n, parse_typed_fact(f, model.symbols)) for n, f in (("a", "S,f32"), ("b", "1,S,f32")))
    w = model.add_source("w", parse_typed_fact("7,1,f32", model.symbols))
    model.wire_node("product", MATMUL, [b, w])
    (y,) = model.wire_node("y", AddAxis(0), [a])
    assert model.outlet_fact(y).shape == (1, 7)


def test_sizes_that_come_up_in_the_middle_of_a_run() -> None:
    model = TypedModel()
    x, y = (model.add_source(n, parse_typed_fact(f, model.symbols)) for n, f in (("x", "4,f32"), ("y", "S,5,f32")))
    (places,) = model.wire_node("places", NonZero(model.symbols.new_symbol("count")), [x])
    (floats,) = model.wire_node("floats", Cast(DatumType.F32), [places])
    (z,) = model.wire_node("z", MATMUL, [floats, y])
    model.set_outputs([model.add_const("shape", model.outlet_fact(z).shape)])
    for simplified in (model, model.clone().declutter()):
        plan = TypedSimplePlan(simplified)
        given = np.array([0, 1, 1, 0], np.float32)
        assert plan.run([given, np.ones((2, 5), np.float32)])[0].tolist() == [1, 5]
        with pytest.raises(RunError, match=r"node 'z' \(EinSum\): size count must be S; count is 2 and S is 3"):
            plan.run([given, np.ones((3, 5), np.float32)])


def _branch(model: TypedModel, x: OutletId, op: TypedOp | None) -> tuple[TypedModel, list[OutletId]]:
    body = model.empty_like()
    source = body.add_source("x", model.outlet_fact(x))
    outlet = source if op is None else body.wire_node("inner", op, [source])[0]
    shape = body.outlet_fact(outlet).shape
    body.set_outputs(body.wire_node("flat", Reshape(0, tuple(shape), (shape.volume,)), [outlet]))
    return body, [x]


@pytest.mark.parametrize("decluttered", [False, True])
def test_a_branch_wants_only_when_it_is_taken(decluttered: bool) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,2,f32", model.symbols))
    condition = model.add_source("condition", parse_typed_fact("bool", model.symbols))
    model.set_outputs(wire_if(model, "if", condition, _branch(model, x, RmAxis(0)), _branch(model, x, None)))
    if decluttered:
        model.declutter()
    plan = TypedSimplePlan(model)
    for size, taken in ((1, True), (1, False), (3, False)):
        (found,) = plan.run([np.ones((size, 2), np.float32), np.array(taken)])
        assert found.shape == (2 * size,)
    with pytest.raises(
        InputError, match=r"node 'if' \(IfThenElse\): node 'inner' \(RmAxis\): size S must be 1; S is 3"
    ):
        plan.run([np.ones((3, 2), np.float32), np.array(True)])


def test_a_branch_that_is_known_hands_on_what_it_wants() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,2,f32", model.symbols))
    condition = model.add_const("condition", np.array(True))
    (y,) = wire_if(model, "if", condition, _branch(model, x, RmAxis(0)), _branch(model, x, None))
    model.set_outputs([model.add_const("shape", model.outlet_fact(y).shape), y])
    model.declutter()
    with pytest.raises(InputError, match="size S must be 1; S is 3"):
        _run(model, (3, 2))


def test_setting_a_symbol_checks_what_is_wanted() -> None:
    model, _ = _wired(MATMUL, "2,S,f32", "T,3,f32")
    fixed = SetSymbols({"S": 4}).apply(model)
    with pytest.raises(InputError, match="size 4 must be T; T is 5"):
        _run(fixed, (2, 4), (5, 3))
    with pytest.raises(TransformError, match="set_symbols with S=4, T=5 does not fit the model: size 4 must be 5"):
        SetSymbols({"S": 4, "T": 5}).apply(model)


def test_other_passes_keep_what_is_wanted() -> None:
    model, _ = _wired(MATMUL, "2,S,f32", "T,3,f32")
    for changed in (model.clone(), pickle.loads(pickle.dumps(model)), F32ToF16().apply(model)):
        kind = changed.outlet_fact(changed.inputs[0]).datum_type.numpy
        with pytest.raises(InputError, match="size S must be T; S is 4 and T is 5"):
            TypedSimplePlan(changed).run([np.ones((2, 4), kind), np.ones((5, 3), kind)])


def test_outputs_that_are_selected_need_no_others() -> None:
    model = TypedModel()
    x, y = (model.add_source(n, parse_typed_fact(f, model.symbols)) for n, f in (("x", "4,f32"), ("y", "S,f32")))
    (places,) = model.wire_node("places", NonZero(model.symbols.new_symbol("count")), [x])
    (row,) = model.wire_node("row", RmAxis(0), [places])
    more = model.add_const("more", np.zeros((1, 3), np.int64))
    (both,) = model.wire_node("both", TypedConcat(0), [places, more])
    (tail,) = model.wire_node("tail", Slice(0, 0, 2), [y])
    model.set_outputs([row, both, tail])
    only = SelectOutputs(["tail"]).apply(model)
    plan = TypedSimplePlan(only)
    assert [step.host.name for step in plan.steps] == ["tail"]
    assert plan.run([np.zeros(4, np.float32), np.ones(2, np.float32)])[0].shape == (2,)


def test_text_of_conditions() -> None:
    s, t = symbol("S"), symbol("T")
    assert [str(Condition(s, relation, t)) for relation in ("==", "<=", "->", "#")] == [
        "size S must be T",
        "size S must be at most T",
        "size S must be 1 or T",
        "sizes S and T must be equal, or one of them 1",
    ]
    assert Condition(s * 2, "==", t).broken({"S": 3, "T": 5}) == "size 2*S must be T; 2*S is 6, T is 5 and S is 3"
    strange = symbol("a\nb")
    assert Condition(strange, "==", t).broken({"a\nb": 3, "T": 5}) == (
        r'size i"a\nb" must be T; i"a\nb" is 3 and T is 5'
    )
    assert Condition(parse_dim("S#T"), "==", t).broken({"S": 3, "T": 5}) == (
        "size (S#T) must be T: cannot broadcast sizes 3 and 5: they differ and neither is 1"
    )


@pytest.mark.parametrize(
    ("relation", "holds"),
    [
        ("==", {(0, 0), (1, 1), (2, 2)}),
        ("<=", {(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)}),
        ("->", {(0, 0), (1, 0), (1, 1), (1, 2), (2, 2)}),
        ("#", {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)}),
    ],
)
def test_relations(relation: str, holds: set[tuple[int, int]]) -> None:
    condition = Condition(symbol("S"), relation, symbol("T"))  # pyright: ignore[reportArgumentType]: text from a table
    found = {(s, t) for s in range(3) for t in range(3) if condition.broken({"S": s, "T": t}) is None}
    assert found == holds


def test_nothing_is_noted_outside_of_wiring() -> None:
    assert may_equal(symbol("S"), 3)
    with noting() as conditions:
        assert may_equal(symbol("S"), 3)
        assert not may_equal(2, 3)
    assert [str(condition) for condition in conditions] == ["size S must be 3"]


@pytest.mark.parametrize("size", [3, symbol("S") + 1])
def test_sizes_that_are_alike_ask_for_no_condition(size: Dim, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(condition: Condition) -> bool:
        raise AssertionError(condition)

    monkeypatch.setattr(Condition, "answer", asked)
    also = size + 1 - 1
    assert may_equal(size, also)
    assert may_be_at_most(size, size)
    assert may_stretch(size, also)
    assert may_stretch(1, size)
    assert may_broadcast(size, also)
    assert may_broadcast(size, 1)
    assert may_broadcast(1, size)


def test_numbers_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Condition, "answer")
    assert may_be_at_most(2, 3)
    assert not may_be_at_most(3, 2)


def test_thousands_of_equal_expressions_take_linear_time() -> None:
    scope = SymbolScope()
    sizes = [scope.add(f"s{i}") // 2 for i in range(3000)]
    pairs = list(pairwise(sizes))
    for order in (pairs, pairs[::-1]):
        conditions = Conditions()
        for a, b in order:
            conditions.add(Condition(a, "==", b), "node")
            conditions.known(scope).simplify(broadcast(a, b))
        assert {conditions.known(scope).simplify(broadcast(a, b)) for a, b in pairs} == {sizes[0]}


def test_thousands_of_conditions_take_linear_time() -> None:
    scope = SymbolScope()
    names = [scope.add(f"s{i}") for i in range(4000)]
    pairs = list(pairwise(names))
    for order in (pairs, pairs[::-1]):
        conditions = Conditions()
        for a, b in order:
            conditions.add(Condition(a, "==", b), "node")
        assert {conditions.known(scope).simplify(name) for name in names} == {names[0]}


@pytest.mark.parametrize("relation", ["==", "<=", "->", "#", "0->0"])
def test_whether_a_condition_holds_is_a_size(relation) -> None:
    scope = SymbolScope()
    holds = Condition(scope.parse("A"), relation, scope.parse("B")).holds()
    for a, b in product(range(4), repeat=2):
        assert evaluate(holds, {"A": a, "B": b}) == int(Condition(a, relation, b).answer() is True)


@pytest.mark.parametrize("values", [{"B": "A"}, {"A": "B"}, {"B": "A", "A": "B"}, {"C": "A", "A": "C"}, {"A": "A+1"}])
def test_a_size_may_get_the_name_of_the_one_that_it_must_equal(values: dict[str, str]) -> None:
    """What stood for the other one is not defined by itself then, alone or in a circle."""
    model = TypedModel()
    facts = {"a": "2,A,f32", "b": "B,2,f32", "c": "C,3,f32"}
    a, b, c = (model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items())
    (first,) = model.wire_node("first", MATMUL, [a, b])
    (second,) = model.wire_node("second", EinSum(AxesMapping.parse("km,kn->mn"), DatumType.F32), [b, c])
    model.set_outputs([first, second])
    assert len(model.conditions) == 2
    renamed = SetSymbols(values).apply(model)
    for name in "ABC":
        assert renamed.known.simplify(symbol(name) + 1) is not None
