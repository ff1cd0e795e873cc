"""Minima, maxima, broadcasts and comparisons: what is decided, and what stays."""

from __future__ import annotations

import pytest

from tract_core.dims import Comparison, Dim, broadcast, comparison, dim_max, dim_min, parse_dim, symbol
from tract_core.errors import DimError

B, S, P = symbol("B"), symbol("S"), symbol("P")


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (dim_max(0, S), S),
        (dim_min(0, S), 0),
        (dim_min(S, S + 1), S),
        (dim_max(S, S + 1), S + 1),
        (dim_max(S, S + P), S + P),
        (dim_max(S), S),
        (dim_max(3, 5), 5),
        (dim_min(3, 5, 4), 3),
        (dim_max(S, S // 2), S),
        (dim_min(S, S // 2), S // 2),
        (dim_min(S, (S + 1) // 2), (S + 1) // 2),
        (dim_max(B * S, S * B), B * S),
        (dim_min(S * B, S * B + S), S * B),
        (dim_min(S, dim_max(S, P)), S),
        (dim_max(S, dim_min(S, P)), S),
        (dim_max(S, dim_max(P, B)), dim_max(S, P, B)),
        (dim_max(S, P, S), dim_max(P, S)),
        (dim_min(dim_min(S, 3), 5), dim_min(S, 3)),
        (dim_max(S + 2, 1), S + 2),
        (dim_min(comparison(S, ">=", P), 1), comparison(S, ">=", P)),
    ],
    ids=repr,
)
def test_dominated_arguments_go_away(dim: Dim, expected: Dim) -> None:
    assert dim == expected
    assert hash(dim) == hash(expected)


def test_always_equal_arguments_of_two_forms_give_the_same_choice() -> None:
    one, other = S - S // 2, (S + 1) // 2
    assert dim_max(one, other, P) == dim_max(other, P, one)


@pytest.mark.parametrize(
    ("dim", "text"),
    [(dim_min(S, P), "min(S,P)"), (dim_max(S, 3), "max(S,3)"), (dim_max(S - 1, 0), "max(S-1,0)")],
    ids=repr,
)
def test_what_is_not_certain_stays(dim: Dim, text: str) -> None:
    assert str(dim) == text


def test_minimum_of_nothing() -> None:
    with pytest.raises(DimError, match=r"min\(\) has no arguments\n  hint: give it one size or more, as in min\(S,4\)"):
        dim_min()


def test_arguments_are_limited() -> None:
    with pytest.raises(DimError, match="max of 33 sizes, at most 32 are allowed"):
        dim_max(*(symbol(f"s{number}") for number in range(33)))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1, S, S),
        (S, 1, S),
        (1, 1, 1),
        (4, 1, 4),
        (1, 0, 0),
        (4, 4, 4),
        (S, S, S),
        (S + P, P + S, S + P),
        (3, S, 3),
        (S, 3, 3),
        (S, 0, 0),
        (S - P, 0, 0),
        (broadcast(S, P), S, broadcast(P, S)),
        (broadcast(S, P), 3, 3),
        (broadcast(S, P), 1, broadcast(S, P)),
        (broadcast(S, P), B, broadcast(S, broadcast(P, B))),
    ],
    ids=repr,
)
def test_broadcast(a: Dim, b: Dim, expected: Dim) -> None:
    assert broadcast(a, b) == expected
    assert broadcast(b, a) == expected


def test_broadcast_of_different_numbers() -> None:
    with pytest.raises(DimError, match="cannot broadcast sizes 3 and 4: they differ and neither is 1\n  hint: reshape"):
        broadcast(3, 4)


def test_nested_broadcast_of_different_numbers() -> None:
    with pytest.raises(DimError, match="cannot broadcast sizes 3 and 4"):
        broadcast(broadcast(3, S), 4)


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (comparison(S, ">=", 0), 1),
        (comparison(S, "<", 0), 0),
        (comparison(S, ">", -1), 1),
        (comparison(S, "<=", S), 1),
        (comparison(S, "<", S + P), comparison(P, ">=", 1)),
        (comparison(S, "==", S), 1),
        (comparison(S, "==", S + 1), 0),
        (comparison(2 * S, "==", 2 * P + 1), 0),
        (comparison(2 * S, "==", 2 * P), comparison(P, "==", S)),
        (comparison(2 * S, ">=", 3), comparison(S, ">=", 2)),
        (comparison(S, ">", P), comparison(P, "<", S)),
        (comparison(S, "<=", P), comparison(P, ">=", S)),
        (comparison(3, "<", 4), 1),
        (comparison(3, "==", 4), 0),
        (comparison(S, ">=", P) * comparison(S, ">=", P), comparison(S, ">=", P)),
        (comparison(S // 2, "<=", S), 1),
        (comparison(S % 4, "<", 4), 1),
        (comparison(S % 4, ">=", 0), 1),
    ],
    ids=repr,
)
def test_comparisons(dim: Dim, expected: Dim) -> None:
    assert dim == expected
    assert hash(dim) == hash(expected)


@pytest.mark.parametrize("op", ["==", "<=", ">=", "<", ">"])
def test_undecided_comparisons_can_be_printed_and_read(op: Comparison) -> None:
    dim = comparison(2 * S, op, P + 3)
    assert parse_dim(str(dim)) == dim


def test_unknown_comparison() -> None:
    with pytest.raises(DimError, match="found the comparison '!='\n  hint: known comparisons are == <= >= < >"):
        comparison(S, "!=", P)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("dim", [S + 4, -S, 2 * (S + 2)], ids=repr)
def test_broadcast_of_a_size_that_can_never_fit(dim: Dim) -> None:
    with pytest.raises(DimError, match=r"cannot broadcast sizes .* and 3: they cannot be equal, and neither can be 1"):
        broadcast(dim, 3)
