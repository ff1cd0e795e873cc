"""What must hold for every expression, with sympy as an independent judge.

An expression is drawn as a small program, which is run twice: on sizes, and on sympy's numbers and symbols.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tract_core.dims import (
    Comparison,
    Dim,
    SymbolScope,
    bind,
    bounds,
    broadcast,
    ceil_div,
    comparison,
    dim_max,
    dim_min,
    evaluate,
    exact_div,
    less_or_equal,
    parse_dim,
    same_dim,
    substitute,
    symbol,
    symbols_of,
)

# sympy has no types that strict checking could use.
sympy: Any = pytest.importorskip("sympy")
Expr = Any

NAMES = ("S", "P", "two words", "min")
SYMBOLS: dict[str, Expr] = {
    name: sympy.Symbol(f"x{place}", integer=True, nonnegative=True) for place, name in enumerate(NAMES)
}
FEW = settings(max_examples=60, deadline=None)
MANY = settings(max_examples=150, deadline=None)


@dataclass(frozen=True)
class Pair:
    """One expression, twice."""

    dim: Dim
    expr: Expr


def floor(expr: Expr, divisor: int) -> Expr:
    return sympy.floor(expr / divisor)


def truth(op: Comparison) -> Callable[[Expr, Expr], Expr]:
    relations: dict[str, Expr] = {"==": sympy.Eq, ">=": sympy.Ge, "<=": sympy.Le, ">": sympy.Gt, "<": sympy.Lt}
    return lambda a, b: sympy.Piecewise((1, relations[op](a, b)), (0, True))


integers = st.integers(-9, 9)
divisors = st.integers(1, 6)
values = st.fixed_dictionaries({name: st.integers(0, 30) for name in NAMES})
leaves = st.one_of(
    integers.map(lambda number: Pair(number, sympy.Integer(number))),
    st.sampled_from(NAMES).map(lambda name: Pair(symbol(name), SYMBOLS[name])),
)


comparisons: st.SearchStrategy[Comparison] = st.sampled_from(("==", "<=", ">=", "<", ">"))


def both(
    inner: st.SearchStrategy[Pair], dim: Callable[[Dim, Dim], Dim], expr: Callable[[Expr, Expr], Expr]
) -> st.SearchStrategy[Pair]:
    return st.tuples(inner, inner).map(lambda two: Pair(dim(two[0].dim, two[1].dim), expr(two[0].expr, two[1].expr)))


def divided(
    inner: st.SearchStrategy[Pair], dim: Callable[[Dim, int], Dim], expr: Callable[[Expr, int], Expr]
) -> st.SearchStrategy[Pair]:
    return st.tuples(inner, divisors).map(lambda two: Pair(dim(two[0].dim, two[1]), expr(two[0].expr, two[1])))


def compared(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.tuples(inner, comparisons, inner).map(
        lambda three: Pair(
            comparison(three[0].dim, three[1], three[2].dim), truth(three[1])(three[0].expr, three[2].expr)
        )
    )


def grow_polynomials(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.one_of(
        both(inner, lambda x, y: x + y, lambda x, y: x + y),
        both(inner, lambda x, y: x - y, lambda x, y: x - y),
        both(inner, lambda x, y: x * y, lambda x, y: x * y),
        inner.map(lambda one: Pair(-one.dim, -one.expr)),
    )


def grow(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.one_of(
        grow_polynomials(inner),
        divided(inner, lambda x, n: x // n, floor),
        divided(inner, lambda x, n: x % n, lambda x, n: x - n * floor(x, n)),
        divided(inner, ceil_div, lambda x, n: -floor(-x, n)),
        both(inner, dim_min, sympy.Min),
        both(inner, dim_max, sympy.Max),
        compared(inner),
    )


def grow_dims(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    """As ``grow``, without sympy, so that larger expressions are cheap."""
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(lambda args: args[0] + args[1]),
        two.map(lambda args: args[0] - args[1]),
        two.map(lambda args: args[0] * args[1]),
        st.tuples(inner, divisors).map(lambda args: args[0] // args[1]),
        st.lists(inner, min_size=1, max_size=3).map(lambda args: dim_min(*args)),
        st.lists(inner, min_size=1, max_size=3).map(lambda args: dim_max(*args)),
        st.tuples(inner, comparisons, inner).map(lambda args: comparison(*args)),
    )


polynomials = st.recursive(leaves, grow_polynomials, max_leaves=6)
pairs = st.recursive(leaves, grow, max_leaves=6)
dims = pairs.map(lambda pair: pair.dim)
large_dims = st.recursive(st.one_of(integers, st.sampled_from(NAMES).map(symbol)), grow_dims, max_leaves=14)
broadcasts: st.SearchStrategy[Dim] = st.lists(st.sampled_from(NAMES).map(symbol), min_size=1, max_size=3).map(
    lambda sizes: reduce(broadcast, sizes)
)
dims_with_broadcasts = st.recursive(st.one_of(integers, broadcasts), grow_dims, max_leaves=10)


def sympy_value(expr: Expr, assignment: dict[str, int]) -> int:
    return int(expr.subs({SYMBOLS[name]: value for name, value in assignment.items()}))


@FEW
@given(pairs, values)
def test_values_are_those_of_sympy(pair: Pair, assignment: dict[str, int]) -> None:
    assert evaluate(pair.dim, assignment) == sympy_value(pair.expr, assignment)


@FEW
@given(polynomials, polynomials)
def test_equal_polynomials_have_one_form(a: Pair, b: Pair) -> None:
    equal = sympy.expand(a.expr - b.expr) == 0
    assert (a.dim == b.dim) == equal
    if equal:
        assert hash(a.dim) == hash(b.dim)


@FEW
@given(polynomials)
def test_expanding_gives_the_same_polynomial(pair: Pair) -> None:
    rebuilt: Dim = 0
    for exponents, factor in sympy.Poly(pair.expr, *SYMBOLS.values()).terms():
        term: Dim = int(factor)
        for name, exponent in zip(NAMES, exponents, strict=True):
            for _ in range(exponent):
                term = term * symbol(name)
        rebuilt = rebuilt + term
    assert pair.dim == rebuilt
    assert hash(pair.dim) == hash(rebuilt)


@FEW
@given(polynomials, polynomials)
def test_exact_division_undoes_multiplication(a: Pair, b: Pair) -> None:
    assume(b.dim != 0)
    assert exact_div(a.dim * b.dim, b.dim) == a.dim


@FEW
@given(polynomials, polynomials)
def test_exact_division_agrees_with_sympy(a: Pair, b: Pair) -> None:
    assume(b.dim != 0)
    quotient = exact_div(a.dim, b.dim)
    expected, rest = sympy.div(sympy.Poly(a.expr, *SYMBOLS.values()), sympy.Poly(b.expr, *SYMBOLS.values()))
    whole = rest.is_zero and all(factor.is_integer for factor in expected.coeffs())
    assert (quotient is not None) == whole
    if quotient is not None:
        assert quotient * b.dim == a.dim


@MANY
@given(large_dims)
def test_what_is_printed_can_be_read(dim: Dim) -> None:
    again = parse_dim(str(dim))
    assert again == dim
    assert hash(again) == hash(dim)
    assert str(again) == str(dim)


@MANY
@given(large_dims)
def test_pickles_are_equal(dim: Dim) -> None:
    assert pickle.loads(pickle.dumps(dim)) == dim


@MANY
@given(large_dims, st.dictionaries(st.sampled_from(NAMES), st.integers(0, 30)), values)
def test_substitution_and_evaluation_commute(dim: Dim, some: dict[str, int], assignment: dict[str, int]) -> None:
    part: dict[str, Dim] = {**some}
    assert evaluate(substitute(dim, part), assignment) == evaluate(dim, assignment | some)


@MANY
@given(large_dims, st.dictionaries(st.sampled_from(NAMES), dims, max_size=2), values)
def test_substitution_of_expressions(dim: Dim, mapping: dict[str, Dim], assignment: dict[str, int]) -> None:
    replaced = assignment | {name: evaluate(size, assignment) for name, size in mapping.items()}
    # Symbols are never negative, and simplification relies on it.
    assume(all(value >= 0 for value in replaced.values()))
    assert evaluate(substitute(dim, mapping), assignment) == evaluate(dim, replaced)


@MANY
@given(large_dims, st.data())
def test_bounds_hold_every_value(dim: Dim, data: st.DataObject) -> None:
    intervals: dict[str, tuple[int | None, int | None]] = {}
    assignment: dict[str, int] = {}
    for name in NAMES:
        low, high = data.draw(st.integers(0, 9)), data.draw(st.integers(9, 20))
        assignment[name] = data.draw(st.integers(low, high))
        intervals[name] = low, data.draw(st.sampled_from([high, None]))
    low, high = bounds(dim, intervals)
    value = evaluate(dim, assignment)
    assert low is None or low <= value
    assert high is None or value <= high


@MANY
@given(large_dims, large_dims, values)
def test_definite_answers_are_true(a: Dim, b: Dim, assignment: dict[str, int]) -> None:
    left, right = evaluate(a, assignment), evaluate(b, assignment)
    assert same_dim(a, b) in (None, left == right)
    assert less_or_equal(a, b) in (None, left <= right)


@MANY
@given(st.sampled_from(NAMES), integers, integers, divisors, values)
def test_sums_of_floors_are_compared(name: str, m: int, c: int, n: int, assignment: dict[str, int]) -> None:
    dim = m * symbol(name) + c
    parts: Dim = sum((dim + shift) // n for shift in range(n))
    assert same_dim(parts, dim) is True
    assert evaluate(parts, assignment) == evaluate(dim, assignment)


@MANY
@given(large_dims, large_dims, values)
def test_broadcast_is_what_the_sizes_allow(a: Dim, b: Dim, assignment: dict[str, int]) -> None:
    left, right = evaluate(a, assignment), evaluate(b, assignment)
    allowed = left == right or 1 in (left, right)
    if allowed:
        assert evaluate(broadcast(a, b), assignment) == (right if left == 1 else left)


@MANY
@given(dims_with_broadcasts, dims_with_broadcasts, st.integers(0, 9), st.frozensets(st.sampled_from(NAMES)))
def test_expressions_with_broadcasts(a: Dim, b: Dim, size: int, ones: frozenset[str]) -> None:
    assignment = {name: 1 if name in ones else size for name in NAMES}
    x, y = evaluate(a, assignment), evaluate(b, assignment)
    assert parse_dim(str(a)) == a
    assert evaluate(substitute(a, dict.fromkeys(ones, 1)), assignment) == x
    assert same_dim(a, b) in (None, x == y)
    assert less_or_equal(a, b) in (None, x <= y)


@MANY
@given(st.lists(large_dims, min_size=1, max_size=4), values)
def test_bind_finds_nothing_but_the_values(sizes: list[Dim], assignment: dict[str, int]) -> None:
    found = bind(sizes, [evaluate(size, assignment) for size in sizes], {})
    assert found.items() <= assignment.items()


@MANY
@given(st.permutations(NAMES), st.data(), values)
def test_bind_solves_triangular_systems(order: list[str], data: st.DataObject, assignment: dict[str, int]) -> None:
    sizes: list[Dim] = []
    for place, name in enumerate(order):
        earlier: Dim = sum(data.draw(integers) * symbol(other) for other in order[:place])
        sizes.append(earlier + data.draw(st.integers(1, 9)) * symbol(name) + data.draw(integers))
    observed = [evaluate(size, assignment) for size in sizes]
    shuffled = data.draw(st.permutations(list(zip(sizes, observed, strict=True))))
    assert bind([size for size, _ in shuffled], [value for _, value in shuffled], {}) == assignment


@MANY
@given(st.lists(st.tuples(large_dims, large_dims), max_size=4), large_dims, large_dims, values)
def test_scopes_answer_truly(sides: list[tuple[Dim, Dim]], a: Dim, b: Dim, assignment: dict[str, int]) -> None:
    scope = SymbolScope(NAMES)
    for left, right in sides:
        difference = evaluate(left, assignment) - evaluate(right, assignment)
        op: Literal["==", ">=", "<"] = "==" if difference == 0 else ">=" if difference > 0 else "<"
        scope.add_assertion(f"{left}{op}{right}")
    x, y = evaluate(a, assignment), evaluate(b, assignment)
    assert evaluate(scope.simplify(a), assignment) == x
    assert scope.same(a, b) in (None, x == y)
    assert scope.less_or_equal(a, b) in (None, x <= y)
    low, high = scope.bounds(a)
    assert low is None or low <= x
    assert high is None or x <= high
    scope.check(assignment)


@MANY
@given(large_dims)
def test_rebuilding_changes_nothing(dim: Dim) -> None:
    """Every expression is its own simplest form: putting each symbol in its own place builds it anew."""
    same: dict[str, Dim] = {name: symbol(name) for name in symbols_of(dim)}
    assert substitute(dim, same) == dim
