"""Bounds and comparisons with three answers."""

from __future__ import annotations

import pytest

from tract_core.dims import (
    Dim,
    Interval,
    bounds,
    broadcast,
    comparison,
    dim_max,
    dim_min,
    less_or_equal,
    not_negative,
    positive,
    same_dim,
    symbol,
)

B, S, P = symbol("B"), symbol("S"), symbol("P")


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (4, (4, 4)),
        (S, (2, 10)),
        (P, (0, None)),
        (2 * S + 1, (5, 21)),
        (-S, (-10, -2)),
        (S - P, (None, 10)),
        (S * P, (0, None)),
        (S * S, (4, 100)),
        ((S + 3) // 4, (1, 3)),
        (S % 4, (0, 3)),
        (S - S // 2, (1, 5)),
        (dim_min(S, P), (0, 10)),
        (dim_max(S, P), (2, None)),
        (dim_min(S, 4), (2, 4)),
        (broadcast(S, P), (0, None)),
        (comparison(S, ">=", 5), (0, 1)),
        (P - S * P, (None, 0)),
    ],
    ids=repr,
)
def test_bounds(dim: Dim, expected: Interval) -> None:
    assert bounds(dim, {"S": (2, 10)}) == expected


def test_bounds_of_negative_symbols() -> None:
    intervals: dict[str, Interval] = {"S": (-3, 2), "P": (None, -1)}
    assert bounds(S * S, intervals) == (-6, 9)
    assert bounds(S * P, intervals) == (None, None)
    assert bounds(P * P, intervals) == (0, None)
    assert bounds(S // 2, intervals) == (-2, 1)


def test_bounds_without_any_knowledge() -> None:
    assert bounds(S + 1) == (1, None)
    assert bounds(S - P) == (None, None)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (3, 3, True),
        (3, 4, False),
        (S, S, True),
        (S + P, P + S, True),
        (S, S + 1, False),
        (S, P, None),
        (S, 2 * S, None),
        (S, 3, None),
        (2 * S, 3, False),
        (2 * S + 2 * P, 2 * B + 1, False),
        (S + 1, 0, False),
        (S // 2 + (S + 1) // 2, S, True),
        (3 * S // 4, S - (S + 3) // 4, True),
        (S // 2, S, None),
        (2 * (S // 2) + 1, 2 * P, False),
        (S // 3 + (S + 1) // 3 + (S + 2) // 3, S + 1, False),
        ((S + P) // 2 + (S + P + 1) // 2, S + P, True),
        (dim_max(S, P), dim_max(P, S), True),
        (dim_max(S, P) + 1, S, False),
        (S * P, P * S, True),
        (S * P + 1, 0, False),
    ],
    ids=repr,
)
def test_same_dim(a: Dim, b: Dim, expected: bool | None) -> None:
    assert same_dim(a, b) is expected
    assert same_dim(b, a) is expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (3, 4, True),
        (S, S, True),
        (S, S + P, True),
        (S + 1, S, False),
        (S, P, None),
        (S // 2, S, True),
        ((S + 3) // 4, S + 1, True),
        ((S + 3) // 4, S, True),
        ((S + 4) // 4, S, None),
        (dim_min(S, P), P, True),
        (broadcast(S, P), dim_max(S, P), True),
        (S * P, S * P + P, True),
    ],
    ids=repr,
)
def test_less_or_equal(a: Dim, b: Dim, expected: bool | None) -> None:
    assert less_or_equal(a, b) is expected


@pytest.mark.parametrize(
    ("dim", "expected"),
    [(1, True), (0, False), (S, None), (S + 1, True), (-S, False), (S * P + 1, True), (S - P, None)],
    ids=repr,
)
def test_positive(dim: Dim, expected: bool | None) -> None:
    assert positive(dim) is expected


@pytest.mark.parametrize(
    ("dim", "expected"), [(0, True), (-1, False), (S, True), (S - 1, None), (-S - 1, False)], ids=repr
)
def test_not_negative(dim: Dim, expected: bool | None) -> None:
    assert not_negative(dim) is expected
