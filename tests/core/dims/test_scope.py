"""The symbols of a model: names, assertions, scenarios, and what follows from them."""

from __future__ import annotations

import pickle
import time

import pytest

from tract_core.dims import Assertion, Interval, SymbolScope, parse_assertion, parse_dim, symbol
from tract_core.dims.scope import MAX_ASSERTIONS
from tract_core.errors import DimError

S, P = symbol("S"), symbol("P")


def scope_with(*assertions: str) -> SymbolScope:
    scope = SymbolScope()
    for assertion in assertions:
        scope.add_assertion(assertion)
    return scope


def test_names_keep_their_order() -> None:
    scope = SymbolScope(["S", "B"])
    assert scope.add("P") == P
    scope.parse("A+S")
    assert scope.names == ("S", "B", "P", "A")
    assert "P" in scope
    assert "X" not in scope


def test_new_symbols_are_new() -> None:
    scope = SymbolScope(["n", "n_2"])
    assert [str(scope.new_symbol(prefix)) for prefix in ("n", "n", "m", "m", "n")] == ["n_1", "n_3", "m", "m_1", "n_4"]


def test_new_symbol_needs_a_name() -> None:
    with pytest.raises(DimError, match="a symbol has no name"):
        SymbolScope().new_symbol("")


@pytest.mark.parametrize("op", ["==", "<=", ">=", "<", ">"])
def test_assertion_text(op: str) -> None:
    assertion = parse_assertion(f"2*S {op} P+1")
    assert assertion == Assertion(2 * S, assertion.op, P + 1)
    assert str(assertion) == f"2*S{op}P+1"
    assert parse_assertion(str(assertion)) == assertion


@pytest.mark.parametrize("text", ["decode: S==1", 'i"two words": S<2', 'i"a:b">=1'])
def test_assertion_of_a_scenario(text: str) -> None:
    assertion = parse_assertion(text)
    assert parse_assertion(str(assertion)) == assertion
    assert str(assertion) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S", "'S', character 2: found the end, wanted one of == <= >= < >"),
        ("S=1", "character 2: found '='"),
        ("S>=", "character 4: found the end, wanted a symbol"),
        ("S>=1>=0", "character 5: found '>=', wanted an operator or the end"),
        ("a: b: S>=1", "found ':'"),
    ],
)
def test_unreadable_assertions(text: str, message: str) -> None:
    with pytest.raises(DimError) as caught:
        SymbolScope().add_assertion(text)
    assert message in str(caught.value)


def test_assertions_bring_their_symbols() -> None:
    assert scope_with("S<=P").names == ("P", "S")


def test_without_assertions_simplify_is_the_identity() -> None:
    dim = parse_dim("max(S,P)+(S+1)/2")
    assert SymbolScope().simplify(dim) is dim
    assert SymbolScope().simplify(3) == 3


@pytest.mark.parametrize(
    ("assertions", "text", "expected"),
    [
        (["S>=1"], "max(S,1)", "S"),
        (["S>=1"], "min(S,1)", "1"),
        (["S>=1"], "(S>=1)", "1"),
        (["S>=1"], "(S==0)", "0"),
        (["S<4"], "(S+12)/16", "0"),
        (["S<4", "S>=1"], "(S+15)/16", "1"),
        (["S<4"], "min(P,S+1)", "min(P,S+1)"),
        (["S<=P"], "min(P,S)", "S"),
        (["S<P"], "max(P,S+1)", "P"),
        (["S+P<=10"], "min(S+P,20)", "S+P"),
        (["T==S+P"], "T-S", "P"),
        (["S==1"], "2*S+1", "3"),
        (["2*S==P"], "P/2", "S"),
        (["2*S==4"], "S", "2"),
        (["S==T", "T==3"], "S*T", "9"),
        (["S+P==T", "T==S+2"], "P", "2"),
        (["S<=3", "S>=3"], "S+P", "P+3"),
        (["S==P/2"], "S+P/2", "2*(P/2)"),
        (["S*P==6"], "S*P", "6"),
        (["S*P<=6", "S==2"], "min(P,3)", "P"),
        (["S>=2", "S*P<=6", "S<=2"], "min(P,3)", "P"),
        (["S<=P", "P<=5", "S==T+1"], "min(T,4)", "T"),
        (["S>=3", "S==T/2"], "max(T/2,3)", "T/2"),
        (["S>=1"], "S+P", "S+P"),
    ],
)
def test_simplify(assertions: list[str], text: str, expected: str) -> None:
    assert scope_with(*assertions).simplify(parse_dim(text)) == parse_dim(expected)


@pytest.mark.parametrize(
    ("assertions", "text", "expected"),
    [
        ([], "S+1", (1, None)),
        (["S>=2"], "S+1", (3, None)),
        (["S>=2", "S<8"], "S/2", (1, 3)),
        (["S+P<=10"], "S", (0, 10)),
        (["S+P<=10", "P>=4"], "S", (0, 6)),
        (["S+P<=10"], "S+P", (0, 10)),
        (["S+P<=10"], "2*S+2*P+1", (1, 21)),
        (["S<=P", "P<=7"], "S", (0, 7)),
        (["S<=P"], "P-S", (0, None)),
        (["T==S+3"], "T", (3, None)),
        (["S*P<=12"], "S*P+1", (1, 13)),
    ],
)
def test_bounds(assertions: list[str], text: str, expected: Interval) -> None:
    assert scope_with(*assertions).bounds(parse_dim(text)) == expected


@pytest.mark.parametrize(
    ("assertions", "a", "b", "expected"),
    [
        ([], "S", "S", True),
        ([], "S", "P", None),
        (["S==P"], "S+1", "P+1", True),
        (["S<P"], "S", "P", False),
        (["S>=1"], "S", "0", False),
        (["S<=P", "P<=S"], "S", "P", True),
        (["S-4*(S/4)==0"], "(S+3)/4", "S/4", True),
        (["S<=3"], "(S+1)/2+S/2", "S", True),
        (["S>=2", "S<=2"], "S", "2", True),
        (["T==S*P"], "T", "P*S", True),
    ],
)
def test_same(assertions: list[str], a: str, b: str, expected: bool | None) -> None:
    assert scope_with(*assertions).same(parse_dim(a), parse_dim(b)) is expected


@pytest.mark.parametrize(
    ("assertions", "a", "b", "expected"),
    [
        ([], "S", "P", None),
        (["S<=P"], "S", "P", True),
        (["S>P"], "S", "P", False),
        (["S<=P", "P<=T"], "S", "T", True),
        (["P+S<=4096"], "P+S", "5000", True),
        (["P+S<=4096", "Q<=S"], "P+Q", "4096", True),
        (["S>=1"], "P", "S*P", True),
    ],
)
def test_less_or_equal(assertions: list[str], a: str, b: str, expected: bool | None) -> None:
    assert scope_with(*assertions).less_or_equal(parse_dim(a), parse_dim(b)) is expected


def test_a_lone_scenario_is_not_always_true() -> None:
    scope = scope_with("tg: S==1")
    size = parse_dim("2*S+1")
    assert scope.scenarios == ("tg",)
    assert scope.simplify(size) is size
    assert scope.same(S, 1) is None
    assert scope.bounds(S) == (0, None)
    assert scope.simplify(size, "tg") == 3
    assert scope.same(S, 1, "tg") is True
    assert scope.bounds(S, "tg") == (1, 1)


def test_scenarios_add_to_what_always_holds() -> None:
    scope = scope_with("S>=1", "pp: P==0", "tg: S==1")
    assert scope.less_or_equal(1, S, "pp") is True
    assert scope.simplify(S + P, "pp") == S
    assert [str(found) for found in scope.assertions()] == ["S>=1"]
    assert [str(found) for found in scope.assertions("tg")] == ["S>=1", "tg: S==1"]
    assert len(list(scope)) == 3


def test_scenarios_may_contradict_each_other() -> None:
    assert scope_with("pp: S>=2", "tg: S==1").scenarios == ("pp", "tg")


def test_unknown_scenario() -> None:
    scope = scope_with("tg: S==1")
    with pytest.raises(DimError, match="there is no scenario 'pp'; known scenarios: tg"):
        scope.simplify(S, "pp")
    with pytest.raises(DimError, match="known scenarios: none"):
        SymbolScope().bounds(S, "pp")


def test_a_scenario_needs_no_assertion() -> None:
    scope = SymbolScope(["S"])
    scope.add_scenario("tg")
    assert scope.simplify(S, "tg") == S


@pytest.mark.parametrize(
    ("earlier", "new", "message"),
    [
        (["S>=1"], "S<1", "the assertion S<1 contradicts S>=1"),
        (["B>=1", "S>=4", "P<=9"], "S<=3", "the assertion S<=3 contradicts S>=4"),
        (["S==2"], "S==3", "the assertion S==3 contradicts S==2"),
        (["S==2"], "S>=3", "the assertion S>=3 contradicts S==2"),
        (["S<=P", "P<=T"], "S>T", "the assertion S>T contradicts S<=P, P<=T"),
        (["P+S<=10"], "S>=11", "the assertion S>=11 contradicts P+S<=10"),
        (["S<=P"], "S==P+1", "the assertion S==P+1 contradicts S<=P"),
        ([], "S<0", "the assertion S<0 cannot hold: symbols stand for integers that are 0 or more"),
        ([], "2*S==5", "the assertion 2*S==5 cannot hold"),
        ([], "1==2", "the assertion 1==2 cannot hold"),
        (["tg: S==1"], "S>=2", "the assertion S>=2 contradicts tg: S==1"),
        (["S>=2"], "tg: S==1", "the assertion tg: S==1 contradicts S>=2"),
    ],
)
def test_contradictions(earlier: list[str], new: str, message: str) -> None:
    scope = scope_with(*earlier)
    before = repr(scope), scope.scenarios
    with pytest.raises(DimError) as caught:
        scope.add_assertion(new)
    assert message in str(caught.value)
    assert caught.value.hint
    assert (repr(scope), scope.scenarios) == before


def test_assertions_are_limited() -> None:
    scope = scope_with(*(f"S>={number}" for number in range(MAX_ASSERTIONS)))
    with pytest.raises(DimError, match="one too many: at most 128 are allowed"):
        scope.add_assertion("S>=1000")
    assert scope.bounds(S) == (MAX_ASSERTIONS - 1, None)


@pytest.mark.parametrize(
    "pattern",
    [
        "S{i}<=S{j}",
        "S{i}==S{j}+1",
        "max(S{i}/3,S{j}/5,S7/7,P-S{i})<=4{i}",
        "S{i}*P-min(S{j},P)/2>=S{i}/3",
        "{i}: S{i}>={j}",
    ],
)
def test_many_assertions_are_taken_soon(pattern: str) -> None:
    scope = SymbolScope()
    start = time.perf_counter()
    for number in range(MAX_ASSERTIONS):
        text = pattern.format(i=number, j=number + 1)
        scope.add_assertion(f"s{text}" if text[0].isdigit() else text)
    scope.simplify(parse_dim("max(S0,S1,P)+min(S3/2,S4)"))
    assert time.perf_counter() - start < 10


def test_check() -> None:
    scope = scope_with("P+S<=10", "S>=1", "tg: S==1")
    scope.check({"S": 3, "P": 7})
    scope.check({"S": 3})
    with pytest.raises(DimError, match=r"P\+S<=10 does not hold for P=8, S=3"):
        scope.check({"S": 3, "P": 8})
    with pytest.raises(DimError, match="tg: S==1 does not hold for S=3"):
        scope.check({"S": 3}, "tg")


def test_copies_change_on_their_own() -> None:
    scope = scope_with("S>=1")
    other = scope.copy()
    other.add_assertion("S<=4")
    other.add("Q")
    assert scope.bounds(S) == (1, None)
    assert other.bounds(S) == (1, 4)
    assert "Q" not in scope


def test_pickle() -> None:
    scope = scope_with("S>=1", "tg: S==1")
    scope.bounds(S)
    other = pickle.loads(pickle.dumps(scope))
    assert repr(other) == repr(scope)
    assert other.simplify(S, "tg") == 1


def test_merge() -> None:
    scope = scope_with("S>=1")
    scope.merge(scope_with("P<=4", "S>=1", "tg: S==1"))
    assert scope.as_text() == "S>=1\nP<=4\ntg: S==1"
    assert scope.names == ("S", "P")
    assert scope.scenarios == ("tg",)


def test_merge_of_scopes_that_contradict_each_other() -> None:
    scope = scope_with("S>=1")
    with pytest.raises(DimError, match="the assertion S==0 contradicts S>=1"):
        scope.merge(scope_with("P<=4", "S==0"))
    assert scope.as_text() == "S>=1"
    assert "P" not in scope


def test_restrict() -> None:
    scope = scope_with("S>=1", "P+S<=10", "tg: P==0")
    part = scope.restrict(["S", "Q"])
    assert part.names == ("S",)
    assert part.as_text() == "S>=1"
    assert part.scenarios == ("tg",)


def test_text_can_be_read_again() -> None:
    scope = scope_with("S>=1", "P+S<=4096", 'i"two words": P==0')
    assert scope_with(*scope.as_text().splitlines()).as_text() == scope.as_text()
