"""Sizes of one symbol are known for every value of it: compared with the value for each number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tract_core.dims import Dim, comparison, dim_max, dim_min, evaluate, parse_dim, symbol
from tract_core.dims.definitions import Definitions
from tract_core.dims.progression import IrregularError, Progression, Progressions, are_same, number, simplest

S = symbol("S")
SMALL = st.integers(-9, 9)
MANY = settings(max_examples=150, deadline=None)


def _grown(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.builds(lambda a, n, d: (a + n) // d, inner, SMALL, st.integers(1, 6)),
        pairs.map(lambda pair: dim_max(*pair)),
        pairs.map(lambda pair: dim_min(*pair)),
        st.builds(lambda pair, n: pair[0] + pair[1] * n, pairs, SMALL),
        st.builds(lambda a, b, n: a * comparison(b, ">=", n), inner, inner, st.integers(-20, 200)),
        st.builds(lambda a, b, n: a + comparison(b, "==", n) * 7, inner, inner, st.integers(-20, 200)),
    )


SIZES = st.recursive(
    st.one_of(SMALL, st.builds(lambda a, b: S * a + b, st.integers(1, 6), SMALL)), _grown, max_leaves=8
)


def _found(size: Dim) -> Progression:
    return Progressions("S").of(size)


def _places(found: Progression) -> list[int]:
    """Numbers from 0 to far behind the beginning, and each remainder there."""
    last = len(found.values) + 2 * found.period
    return sorted({*range(min(last, 60)), *range(max(0, last - 60), last), *range(0, last, 1 + last // 60)})


@MANY
@given(SIZES)
def test_every_value_is_that_of_the_size(size: Dim) -> None:
    found = _found(size)
    values = found.up_to(len(found.values) + 2 * found.period)
    assert [values[place] for place in _places(found)] == [evaluate(size, {"S": place}) for place in _places(found)]


@MANY
@given(SIZES, st.integers(0, 9))
def test_the_beginning_and_the_period_are_as_short_as_can_be(size: Dim, step: int) -> None:
    found, later = _found(size), _found(size).later(step)
    assert (later.up_to(50) == found.up_to(50 + step)[step:]).all()
    again = found.longer(found.start + 5, found.period * 6).shortest()
    assert (again.start, again.period) == (found.start, found.period)


@MANY
@given(SIZES, SIZES, SIZES)
def test_sizes_are_the_same_where_all_of_their_values_are(a: Dim, b: Dim, test: Dim) -> None:
    among = comparison(test, ">=", 3)
    one, other, where = map(_found, (a, b, among))
    places = {place for found in (one, other, where) for place in _places(found)}
    differing = [
        place
        for place in places
        if evaluate(among, {"S": place}) and evaluate(a, {"S": place}) != evaluate(b, {"S": place})
    ]
    same = are_same(one, other, where)
    assert not (same and differing)
    assert are_same(one, one, where)
    assert are_same(one, other, number(0))
    if not same:  # there is a place, not far away
        last = max(len(found.values) for found in (one, other, where)) + 2 * np.lcm.reduce(
            [found.period for found in (one, other, where)]
        )
        values = [found.up_to(int(last)) for found in (one, other, where)]
        assert ((values[0] != values[1]) & (values[2] != 0)).any()


@MANY
@given(SIZES, SIZES)
def test_the_simplest_size_is_the_same(size: Dim, test: Dim) -> None:
    among = comparison(test, ">=", 3)
    found = simplest(_found(size), _found(among), "S")
    if found is not None:
        assert are_same(_found(size), _found(found), _found(among))


@pytest.mark.parametrize(
    ("size", "among", "wanted"),
    [
        ("S-S", "1", "0"),
        ("max(0,S-2)", "(S>=3)", "S-2"),
        ("max(0,S-2)", "1", "max(0,S-2)"),
        ("max(0,max(0,S-2)-3)", "1", "max(0,S-5)"),
        ("(max(0,S-2)+2)/6-16", "(S>=100)", "S/6-16"),
        ("2*S-S*(S>=3)-2", "(S>=3)", "S-2"),
        ("min(2*min(max(0,S-2)/2,2*(max(0,S-2)/4)+1),max(0,S-2))/2", "(S>=2)", "(S-2)/2"),
        ("2*(S/2)", "(S-2*(S/2)==0)", "S"),
        ("2*(S/2)", "1", None),
        ("S", "(S==4)", None),
    ],
)
def test_what_is_simplest(size: str, among: str, wanted: str | None) -> None:
    found = simplest(_found(parse_dim(size)), _found(parse_dim(among)), "S")
    assert (None if found is None else str(found)) == (None if wanted is None else str(parse_dim(wanted)))


@pytest.mark.parametrize("size", ["S+P", "S*S", "S*(S/2)", f"S+{2**62}", f"S/{2**40}", "S/4099+S/4111"])
def test_what_is_not_found_out_is_said(size: str) -> None:
    with pytest.raises(IrregularError):
        _found(parse_dim(size))


def test_names_stand_for_their_sizes() -> None:
    definitions = Definitions()
    for name, text in (("a", "max(0,S-2)"), ("b", "max(0,a-3)/2")):
        size = parse_dim(text)
        assert not isinstance(size, int)
        definitions.add(name, size)
    found = Progressions("S", definitions)
    assert are_same(found.of(symbol("b") * 2), _found(parse_dim("2*(max(0,S-5)/2)")), number(1))
    with pytest.raises(IrregularError):
        found.of(symbol("c"))
