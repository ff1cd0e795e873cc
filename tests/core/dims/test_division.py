"""Products, exact division and division rounded up."""

from __future__ import annotations

import pytest

from tract_core.dims import Dim, ceil_div, exact_div, product, symbol
from tract_core.errors import DimError

B, S, P = symbol("B"), symbol("S"), symbol("P")


def test_product() -> None:
    assert product([]) == 1
    assert product([2, 3]) == 6
    assert product([B, S, 64]) == 64 * B * S
    assert product([B, 0]) == 0


@pytest.mark.parametrize(
    ("a", "n", "expected"),
    [(7, 4, 2), (8, 4, 2), (0, 4, 0), (4 * S, 4, S), (S, 4, (S + 3) // 4), (S + 1, 4, S // 4 + 1)],
    ids=repr,
)
def test_ceil_div(a: Dim, n: int, expected: Dim) -> None:
    assert ceil_div(a, n) == expected


@pytest.mark.parametrize("a", [7, S], ids=repr)
@pytest.mark.parametrize("n", [0, -1])
def test_ceil_div_by_nothing(a: Dim, n: int) -> None:
    with pytest.raises(DimError, match=r"cannot divide .* by (0|-1)"):
        ceil_div(a, n)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (6, 3, 2),
        (7, 3, None),
        (6, 0, None),
        (0, S, 0),
        (6, S, None),
        (S, 0, None),
        (6 * S + 4, 2, 3 * S + 2),
        (6 * S + 3, 2, None),
        (6 * S, -2, -3 * S),
        (S, S, 1),
        (2 * S * P, 2 * S, P),
        (2 * S * P, 4 * S, None),
        (S * S + S, S, S + 1),
        (S * S + S, S + 1, S),
        (S * S - P * P, S + P, S - P),
        (S * S + P * P, S + P, None),
        ((S + 1) * (P + 2) * (B + 3), (P + 2) * (S + 1), B + 3),
        (S + 1, S, None),
        (S, S * S, None),
        (S // 2 * P, S // 2, P),
        (S // 2 * P, S, None),
        (12 * B * S * S, 3 * S * B, 4 * S),
    ],
    ids=repr,
)
def test_exact_div(a: Dim, b: Dim, expected: Dim | None) -> None:
    assert exact_div(a, b) == expected
