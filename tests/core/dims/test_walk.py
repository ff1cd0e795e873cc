"""Symbols, substitution and values."""

from __future__ import annotations

import pytest

from tract_core.dims import Dim, broadcast, dim_max, evaluate, is_symbolic, parse_dim, substitute, symbol, symbols_of
from tract_core.errors import DimError

B, S, P = symbol("B"), symbol("S"), symbol("P")


def test_is_symbolic() -> None:
    assert is_symbolic(S)
    assert not is_symbolic(3)


def test_symbols_of() -> None:
    assert symbols_of(3) == frozenset()
    assert symbols_of(dim_max(S, P) * 2 + (S + B) // 2) == {"B", "P", "S"}


@pytest.mark.parametrize(
    ("dim", "mapping", "expected"),
    [
        (3, {"S": 4}, 3),
        (S, {"S": 4}, 4),
        (S, {"P": 4}, S),
        (S + P, {"S": P, "P": S}, S + P),
        (S - P, {"S": P, "P": S}, P - S),
        ((S + 3) // 4, {"S": 4 * P}, P),
        (dim_max(S, P), {"P": S + 1}, S + 1),
        (broadcast(S, P), {"P": 1}, S),
        (S * S, {"S": P + 1}, P * P + 2 * P + 1),
        (S * (S // 2), {"S": 2 * P}, 2 * P * P),
    ],
    ids=repr,
)
def test_substitute(dim: Dim, mapping: dict[str, Dim], expected: Dim) -> None:
    assert substitute(dim, mapping) == expected


def test_substitution_keeps_the_written_order() -> None:
    assert str(substitute(S + P, {"S": symbol("T")})) == "T+P"
    assert str(substitute(S + P + B, {"B": symbol("A")})) == "S+P+A"


def test_substitution_without_effect_returns_the_same_object() -> None:
    dim = (S + 3) // 4 + P
    assert substitute(dim, {"B": 3}) is dim


def test_substitution_of_sizes_that_do_not_broadcast() -> None:
    with pytest.raises(DimError, match="cannot broadcast sizes 3 and 4"):
        substitute(broadcast(S, P), {"S": 3, "P": 4})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2*S+1", 11),
        ("S*P", 15),
        ("3*S/2", 7),
        ("-S/2", -3),
        ("-(S/2)", -2),
        ("min(S,P)", 3),
        ("max(S,P,4)", 5),
        ("(S>=P)", 1),
        ("(S<P)", 0),
        ("(S==P+2)", 1),
        ("S#(P-2)", 5),
    ],
)
def test_evaluate(text: str, expected: int) -> None:
    assert evaluate(parse_dim(text), {"S": 5, "P": 3}) == expected


def test_evaluate_names_every_missing_symbol() -> None:
    with pytest.raises(DimError) as caught:
        evaluate(S + P // 2 + B, {"S": 3})
    assert str(caught.value) == "S+P/2+B needs values for B, P; values given: S=3\n  hint: give a value to B, P"


def test_evaluate_without_any_value() -> None:
    with pytest.raises(DimError, match="S needs values for S; values given: none"):
        evaluate(S, {})


def test_evaluate_sizes_that_do_not_broadcast() -> None:
    with pytest.raises(DimError, match="cannot broadcast sizes 5 and 3"):
        evaluate(broadcast(S, P), {"S": 5, "P": 3})
