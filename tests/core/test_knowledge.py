"""What operators want of sizes is known of all sizes of their model, in whichever order they were wired."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tract_core.dims import Dim, SymbolScope, dim_max, dim_min, evaluate, parse_dim, substitute, symbol
from tract_core.dims.assuming import Assuming
from tract_core.dims.intervals import at_least
from tract_core.dims.known import KnownSizes
from tract_core.model.conditions import Condition, Relation
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.knowledge import Conditions
from tract_core.model.refine import simplify_sizes
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv
from tract_core.ops.elementwise import Tanh
from tract_core.ops.pool_spec import DataFormat, PoolSpec, Valid
from tract_core.ops.slice import Slice, wire_slice
from tract_core.ops.wiring import wire_one
from tract_core.runtime.plan import TypedSimplePlan

KERNEL, CHANNELS = 3, 2
VALID = PoolSpec(DataFormat.NCHW, (KERNEL,), Valid(), (1,), (1,))


def _conv(model: TypedModel, name: str, x: OutletId) -> OutletId:
    weights = model.add_const(f"{name}.w", np.full((CHANNELS, CHANNELS, KERNEL), 0.1, np.float32))
    bias = model.add_const(f"{name}.b", np.zeros(CHANNELS, np.float32))
    return wire_one(model, name, Conv(VALID), x, weights, bias)


def _layer(model: TypedModel, name: str, x: OutletId, *, cut_first: bool, swapped: bool) -> OutletId:
    """What a valid convolution gives, and what is left of its input, added: the block of a WaveNet."""

    def cut() -> OutletId:
        return wire_slice(model, f"{name}.cut", x, 2, start=KERNEL - 1, end=None)

    parts = [cut(), _conv(model, f"{name}.conv", x)] if cut_first else [_conv(model, f"{name}.conv", x), cut()]
    both = wire_one(model, f"{name}.sum", Add(), *(reversed(parts) if swapped else parts))
    return wire_one(model, name, Tanh(), both)


def _residual(layers: int, *, cut_first: bool = False, swapped: bool = False) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"1,{CHANNELS},S,f32", model.symbols))
    for number in range(layers):
        x = _layer(model, f"layer{number}", x, cut_first=cut_first, swapped=swapped)
    model.set_outputs([x])
    return model


def _residual_from_the_end(layers: int) -> TypedModel:
    """As `_residual`, but what is left of an input is written as ``x[-n:]``: all of it, where n is 0."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"1,{CHANNELS},S,f32", model.symbols))
    for number in range(layers):
        convolved = _conv(model, f"layer{number}.conv", x)
        length = model.outlet_fact(convolved).shape[2]
        kept = wire_slice(model, f"layer{number}.cut", x, 2, start=-length, end=None)
        x = wire_one(model, f"layer{number}", Add(), kept, convolved)
    model.set_outputs([x])
    return model


def _sizes(model: TypedModel) -> Iterator[Dim]:
    for node in model.live_nodes():
        for outlet in node.outputs:
            yield from outlet.fact.shape


@pytest.mark.parametrize("cut_first", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_hundred_residual_layers_have_short_sizes(cut_first: bool, swapped: bool) -> None:
    model = _residual(100, cut_first=cut_first, swapped=swapped)
    simplify_sizes(model)
    assert str(model.outlet_fact(model.outputs[0])) == "1,2,S-200,f32"
    assert max(len(str(size)) for size in _sizes(model)) <= len("S-200")
    assert not len(model.symbols.definitions)
    slices = [node.op for node in model.live_nodes() if isinstance(node.op, Slice)]
    assert {(str(op.start), str(op.end)) for op in slices} == {
        ("2", str(symbol("S") - 2 * n)) for n in range(1, 100)
    } | {("2", "S")}
    model.declutter()
    assert str(model.outlet_fact(model.outputs[0])) == "1,2,S-200,f32"
    plan = TypedSimplePlan(model)
    (found,) = plan.run([np.ones((1, CHANNELS, 203), np.float32)])
    assert found.shape == (1, CHANNELS, 3)


def test_what_comes_after_all_sizes_were_simple_becomes_simple_too() -> None:
    """A node that was gone through is gone through again when it gets another operator, or another fact."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    (y,) = model.wire_node("y", Slice(0, 1, symbol("S")), [x])
    model.set_outputs([y])
    model.symbols.add_assertion("S>=3")
    simplify_sizes(model)
    long = dim_max(symbol("S"), 2)
    model.rewire(model.node(y.node), Slice(0, 1, long), [x])
    simplify_sizes(model)
    assert model.node(y.node).op == Slice(0, 1, symbol("S"))
    model.set_outlet_fact(y, parse_typed_fact(f"{long - 1},f32", model.symbols))
    simplify_sizes(model)
    assert str(model.outlet_fact(y)) == "S-1,f32"


def _count(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], *counted: tuple[object, str]) -> int:
    """How often functions are called while something is done."""
    calls = 0
    with monkeypatch.context() as patched:
        for owner, name in counted:
            original = getattr(owner, name)

            def counting(*args: object, original: Callable[..., object] = original, **more: object) -> object:
                nonlocal calls
                calls += 1
                return original(*args, **more)

            patched.setattr(owner, name, counting)
        work()
    return calls


@pytest.mark.parametrize("cut_first", [False, True])
def test_the_work_grows_with_the_number_of_layers(cut_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(layers: int) -> int:
        return _count(
            monkeypatch,
            lambda: simplify_sizes(_residual(layers, cut_first=cut_first)),
            (KnownSizes, "sums_with"),
            (Assuming, "add"),
            (Conditions, "known"),
        )

    few, many = work(50), work(200)
    assert 0 < many <= 4.5 * few


def test_a_condition_counts_for_facts_that_were_wired_before() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,2,S,f32", model.symbols))
    cut = wire_slice(model, "cut", x, 2, start=2, end=None)
    assert str(model.outlet_fact(cut).shape) == "1,2,max(0,S-2)"
    _conv(model, "conv", x)
    simplify_sizes(model)
    assert str(model.outlet_fact(cut).shape) == "1,2,S-2"
    assert model.nodes[cut.node].op == Slice(2, 2, symbol("S"))


def test_an_assertion_counts_for_facts_that_were_wired_before() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,2,S,f32", model.symbols))
    cut = wire_slice(model, "cut", x, 2, start=2, end=None)
    assert not simplify_sizes(model)
    model.symbols.add_assertion("S>=2")
    assert simplify_sizes(model) == [cut.node]
    assert str(model.outlet_fact(cut).shape) == "1,2,S-2"
    assert not simplify_sizes(model)


def test_what_a_retired_operator_wanted_is_still_known_and_checked() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,2,S,f32", model.symbols))
    _conv(model, "conv", x)  # nobody reads it
    model.set_outputs([wire_slice(model, "cut", x, 2, start=2, end=None)])
    model.declutter()
    assert str(model.outlet_fact(model.outputs[0])) == "1,2,S-2,f32"
    plan = TypedSimplePlan(model)
    assert plan.run([np.ones((1, 2, 2), np.float32)])[0].shape == (1, 2, 0)
    with pytest.raises(Exception, match=r"node 'conv' \(Conv\): size S-2 must be 0 or more; S-2 is -1 and S is 1"):
        plan.run([np.ones((1, 2, 1), np.float32)])


def _after(conditions: Sequence[str], text: str, assertions: Sequence[str] = ()) -> str:
    """How a size is told under conditions such as ``S->T``."""
    scope, found = SymbolScope(["S", "T", "U"]), Conditions()
    for assertion in assertions:
        scope.add_assertion(assertion)
    for one in conditions:
        relation = next(relation for relation in ("0->0", "->", "==", "<=", "#") if relation in one)
        left, right = one.split(relation)
        found.add(Condition(parse_dim(left), relation, parse_dim(right)), "node")
    found.review(scope)
    return str(found.known(scope).simplify(parse_dim(text)))


@pytest.mark.parametrize(
    ("conditions", "text", "expected"),
    [
        (["0<=S-2"], "max(0,S-2)", "S-2"),
        (["0<=S-2"], "(S-2#max(0,S-2))", "S-2"),
        (["0<=S-2"], "(S>=1)", "1"),
        (["S<=T"], "min(S,T)", "S"),
        (["S<=T", "T<=U"], "max(S,U)", "U"),
        (["3<=S/2-1"], "max(7,S)", "S"),
        (["S/2<=3"], "min(S,7)", "S"),
        (["max(0,S-2)==S-2"], "max(0,S-5)", "max(0,S-5)"),
        (["max(0,S-2)==S-2"], "max(1,S)", "S"),
        (["max(S,T)==U"], "max(S,T)+1", "U+1"),
        (["min(S,4)==4"], "min(S,3)", "3"),
        (["2*(S/2)==S"], "2*((S+1)/2)", "S"),
        (["2*(S/2)==S"], "(S+1)/2", "S/2"),
        (["4*(S/4)==S"], "(S+3)/4+2*(S/2)", "S/4+S"),
        (["4*(S/4)==S", "3*(S/3)==S"], "(S+11)/12", "S/12"),
        (["3*(S/6)==S/2"], "(3*(S/6))/4", "S/8"),
        (["S#T"], "(S#T)", "(S#T)"),
        (["S#T", "2<=S"], "(S#T)", "S"),
        (["S#T", "2<=S", "2<=T"], "S-T", "0"),
        (["S#T", "2<=S"], "max(S,T)", "S"),
        (["S->T", "2<=S"], "T", "S"),
        (["S->T", "1<=T"], "max(S,T)", "T"),
        (["S->T"], "max(S,T)", "max(S,T)"),
        (["S 0->0 T", "1<=T"], "max(S,1)", "S"),
        (["T+1==2*S"], "(T+1#2*S)", "2*S"),
        (["6<=(2*S-S*(S>=2)-1#S-1)", "2<=S"], "max(6,S-1)", "S-1"),
        (["S==T", "T==U"], "S+T+U", "3*S"),
        (["S==T", "T==5"], "S+T", "10"),
        (["(S+1)/2==7"], "min(S,20)", "S"),
        (["(S+1)/2==7", "S/2==7"], "S", "14"),
    ],
)
def test_what_conditions_say_is_used(conditions: list[str], text: str, expected: str) -> None:
    for order in permutations(conditions):
        assert _after(order, text) == expected


def test_what_is_asserted_later_is_used_with_conditions() -> None:
    scope, conditions = SymbolScope(["S", "T"]), Conditions()
    conditions.add(Condition(symbol("S"), "#", symbol("T")), "node")
    both = parse_dim("(S#T)")
    assert conditions.known(scope).simplify(both) == both
    scope.add_assertion("S>=2")
    conditions.review(scope)
    assert conditions.known(scope).simplify(both) == symbol("S")


def test_what_is_taken_back_is_no_longer_known() -> None:
    scope, conditions = SymbolScope(["S"]), Conditions()
    conditions.add(Condition(2, "<=", symbol("S")), "node")
    assert conditions.known(scope).simplify(dim_max(1, symbol("S"))) == symbol("S")
    conditions.rewind(0)
    assert conditions.known(scope).simplify(dim_max(1, symbol("S"))) == dim_max(1, symbol("S"))


def test_conditions_that_contradict_each_other_are_told_and_not_used() -> None:
    scope, conditions = SymbolScope(["S"]), Conditions()
    for low in range(1, 9):
        conditions.add(Condition(symbol("S"), "==", 10 * low), "node")
    assert conditions.contradict(scope)
    assert conditions.known(scope).simplify(symbol("S")) == 10


def test_a_model_without_runs_is_found_out_whichever_input_comes_first() -> None:
    model = TypedModel()
    inputs = [model.add_source(name, parse_typed_fact(fact)) for name, fact in (("a", "B,3,f32"), ("b", "3,B+1,f32"))]
    model.set_outputs(model.wire_node("sum", Add(), inputs))
    assert model.is_impossible()
    model.wire_node("turned", Add(), inputs[::-1])  # wants no more than the first one
    model.declutter()


def test_a_patch_knows_what_the_model_knows() -> None:
    scope, conditions = SymbolScope(["S"]), Conditions()
    conditions.add(Condition(2, "<=", symbol("S")), "node")
    layer = conditions.layer()
    assert layer.known(scope).simplify(dim_max(1, symbol("S"))) == symbol("S")
    layer.add(Condition(symbol("S"), "<=", 4), "node")
    assert layer.known(scope).simplify(dim_min(5, symbol("S"))) == symbol("S")
    assert conditions.known(scope).simplify(dim_min(5, symbol("S"))) == dim_min(5, symbol("S"))


NAMES = ("S", "T", "U")
numbers = st.integers(0, 12)


def _draw_size(draw: random.Random, depth: int) -> Dim:
    if depth == 0 or draw.random() < 0.2:
        return symbol(draw.choice(NAMES)) * draw.choice([1, 1, 1, 2, 3]) + draw.randint(-3, 3)
    a, b = _draw_size(draw, depth - 1), _draw_size(draw, depth - 1)
    kind = draw.random()
    if kind < 0.25:
        return a + b
    if kind < 0.35:
        return a - b
    if kind < 0.65:
        return (a + draw.randint(0, 3)) // draw.randint(2, 4) * draw.choice([1, 2, 3, 4])
    return dim_max(a, b) if kind < 0.85 else dim_min(a, b)


def _condition(draw: random.Random, values: dict[str, int]) -> Condition | None:
    """A condition that holds for these values."""
    a, b = _draw_size(draw, 2), _draw_size(draw, 2)
    x, y = evaluate(a, values), evaluate(b, values)
    for _ in range(6):
        relation: Relation = draw.choice(get_args(Relation))
        if relation == "==" and x != y:
            b, y = b + (x - y), x
        if Condition(x, relation, y).answer():
            return Condition(a, relation, b)
    return None


@given(st.integers(0, 2**32), st.fixed_dictionaries(dict.fromkeys(NAMES, numbers)))
def test_whatever_is_concluded_is_true(seed: int, values: dict[str, int]) -> None:
    """Of conditions that hold for certain values, nothing follows that does not hold for these."""
    draw = random.Random(seed)
    scope, conditions = SymbolScope(NAMES), Conditions()
    for _ in range(draw.randint(1, 6)):
        condition = _condition(draw, values)
        if condition is not None:
            assert conditions.answer(condition, scope) is not False
            conditions.add(condition, "node")
    conditions.review(scope)
    assert not conditions.contradict(scope)
    known = conditions.known(scope)
    for _ in range(12):
        a, b = _draw_size(draw, 3), _draw_size(draw, 3)
        x, y = evaluate(a, values), evaluate(b, values)
        assert evaluate(known.simplify(a), values) == x
        assert evaluate(known.with_values(a), values) == x
        assert known.same(a, b) in (None, x == y)
        assert known.less_or_equal(a, b) in (None, x <= y)
        low, high = known.bounds(a)
        assert low is None or low <= x
        assert high is None or x <= high


@given(st.integers(0, 2**32), st.fixed_dictionaries(dict.fromkeys(NAMES, numbers)))
def test_definitions_are_what_they_stand_for(seed: int, values: dict[str, int]) -> None:
    draw = random.Random(seed)
    scope = SymbolScope(NAMES)
    sizes: list[Dim] = []
    for _ in range(8):
        size = _draw_size(draw, 4) + (sizes[-1] if sizes and draw.random() < 0.5 else 0)
        sizes.append(scope.named(dim_max(size, 0), scope.theory()))
    told = dict(values)
    scope.definitions.complete(told)
    full = scope.definitions.in_full()
    for size in sizes:
        assert evaluate(size, told) == evaluate(substitute(size, full), values)
        low, high = scope.bounds(size)
        assert low is None or low <= evaluate(size, told)
        assert high is None or evaluate(size, told) <= high
        assert len(str(size)) <= 200


def test_bounds_of_names_are_those_of_what_they_stand_for() -> None:
    scope = SymbolScope(["S", "T"])
    name = scope.define("n", parse_dim("max(S,T)+3"))
    assert scope.bounds(name) == (3, None)
    assert scope.less_or_equal(symbol("S") + 3, name) is True
    assert at_least(name - symbol("S"), KnownSizes()) is None


@pytest.mark.parametrize("order", [1, -1])
def test_a_number_comes_to_the_end_of_a_long_chain(order: int) -> None:
    count = 200
    scope = SymbolScope([f"t{place}" for place in range(count + 1)])
    conditions = Conditions()
    for place in range(count)[::order]:
        conditions.add(Condition(symbol(f"t{place + 1}"), "==", symbol(f"t{place}") + 1), "step")
    conditions.add(Condition(symbol("t0"), "==", 5), "first")
    assert conditions.known(scope).simplify(symbol(f"t{count}")) == count + 5


def test_a_size_that_gets_a_name_is_what_was_found_of_the_name() -> None:
    scope = SymbolScope(["S", "T", "D"])
    long = dim_max(dim_max(symbol("S"), symbol("T")) * 2, symbol("D"))
    name = scope.define("size", long)
    conditions = Conditions()
    conditions.add(Condition(name, "==", symbol("D") * 3), "later")
    conditions.add(Condition(dim_max(symbol("S"), symbol("T")), "==", symbol("T")), "latest")
    conditions.review(scope)
    assert conditions.known(scope).same(dim_max(symbol("T") * 2, symbol("D")), symbol("D") * 3)


def test_the_last_elements_that_are_added_to_something_are_not_all_of_them():
    model = _residual_from_the_end(12)
    simplify_sizes(model)
    assert max(len(str(size)) for size in _sizes(model)) < 10
    assert str(model.outlet_fact(model.outputs[0]).shape[2]) == "S-24"
    assert not len(model.symbols.definitions)
    assert len(model.conditions) <= 2 * 12


def test_a_slice_from_the_end_of_unknown_length_stays_as_it_is():
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    kept = wire_slice(model, "kept", x, 0, start=-(symbol("S") // 2), end=None)
    size = model.outlet_fact(kept).shape[0]
    assert [evaluate(size, {"S": count}) for count in range(6)] == [len(range(n)[-(n // 2) :]) for n in range(6)]
