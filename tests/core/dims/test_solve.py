"""Values of symbols from observed sizes."""

from __future__ import annotations

import pytest

from tract_core.dims import bind, parse_dim
from tract_core.errors import DimError


def bind_texts(sizes: dict[str, int], bound: dict[str, int] | None = None) -> dict[str, int]:
    return bind([parse_dim(text) for text in sizes], list(sizes.values()), bound or {})


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"B": 2, "S": 7, "64": 64}, {"B": 2, "S": 7}),
        ({"S+P": 5, "S": 3}, {"S": 3, "P": 2}),
        ({"S": 3, "S+P": 5}, {"S": 3, "P": 2}),
        ({"2*S": 8}, {"S": 4}),
        ({"2*S+3": 7}, {"S": 2}),
        ({"10-S": 4}, {"S": 6}),
        ({"S": 0}, {"S": 0}),
        ({"A+B": 3, "B+C": 5, "C": 4}, {"A": 2, "B": 1, "C": 4}),
        ({"B*S": 12, "B": 3}, {"B": 3, "S": 4}),
        ({"S*S": 49}, {"S": 7}),
        ({"S*S+S": 12}, {"S": 3}),
        ({"3*S/2": 4}, {"S": 3}),
        ({"S+S/2": 4}, {"S": 3}),
        ({"S/2": 3}, {}),
        ({"S/2": 3, "S": 7}, {"S": 7}),
        ({"min(S,4)": 3}, {"S": 3}),
        ({"min(S,4)": 4}, {}),
        ({"max(S,4)": 9}, {"S": 9}),
        ({"max(S,4)": 4}, {}),
        ({"S+P": 3}, {}),
        ({"S-S/2": 3}, {}),
        ({"S#P": 3, "P": 1}, {"S": 3, "P": 1}),
        ({"S#P": 3, "P": 3}, {"P": 3}),
        ({"-S-S/2": -6}, {"S": 4}),
        ({"S": 2**40}, {"S": 2**40}),
        ({"S+S/2": 3 * 2**50}, {"S": 2**51}),
    ],
    ids=str,
)
def test_bind(sizes: dict[str, int], expected: dict[str, int]) -> None:
    assert bind_texts(sizes) == expected


def test_values_that_are_known_are_used_and_returned() -> None:
    bound = {"P": 2, "Q": 9}
    assert bind_texts({"S+P": 5}, bound) == {"P": 2, "Q": 9, "S": 3}
    assert bound == {"P": 2, "Q": 9}


@pytest.mark.parametrize(
    ("sizes", "bound", "message"),
    [
        ({"4": 5}, {}, "4 is 5 here, but 4 was expected"),
        ({"S+P": 6}, {"S": 2, "P": 3}, "S+P is 6 here, but 5 was expected with P=3, S=2"),
        ({"S": 3, "2*S": 7}, {}, "2*S is 7 here, but 6 was expected with S=3"),
        ({"2*S": 7}, {}, "2*S is 7 here, but no whole value of S gives that"),
        ({"S+P": 2}, {"P": 3}, "S+P is 2 here, but no non-negative value of S gives that with P=3"),
        ({"S*S": 8}, {}, "S*S is 8 here, but no non-negative value of S gives that"),
        ({"3*S/2": 5}, {}, "3*S/2 is 5 here, but no non-negative value of S gives that"),
        ({"S/2": -1}, {}, "S/2 is -1 here, but no non-negative value of S gives that"),
        ({"min(S,4)": 5}, {}, "min(S,4) is 5 here, but no non-negative value of S gives that"),
        ({"max(S,4)": 3}, {}, "max(S,4) is 3 here, but no non-negative value of S gives that"),
        ({"S/2": 3, "S": 8}, {}, "S/2 is 3 here, but 4 was expected with S=8"),
        ({"S#P": 3, "P": 4}, {}, "(S#P) is 3 here, but 4 was expected with P=4"),
        ({"S#P": 3}, {"S": 3, "P": 4}, "(S#P) is 3 here, but cannot broadcast sizes 3 and 4"),
    ],
    ids=str,
)
def test_contradictions(sizes: dict[str, int], bound: dict[str, int], message: str) -> None:
    with pytest.raises(DimError) as caught:
        bind_texts(sizes, bound)
    assert message in str(caught.value)
    assert "hint: give arrays whose sizes agree" in str(caught.value)


def test_one_symbol_cannot_have_two_values() -> None:
    with pytest.raises(DimError, match="S is 2 here, but 3 was expected with S=3"):
        bind([parse_dim("S"), parse_dim("S")], [3, 2], {})


def test_sizes_and_axes_must_match() -> None:
    with pytest.raises(DimError, match="found 1 sizes for 2 axes"):
        bind([parse_dim("S"), 3], [3], {})
