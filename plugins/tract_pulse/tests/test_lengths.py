"""What sizes are for each length of the signal that a model takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stream_runs import assert_streams
from tract_pulse.pulsing.lengths import Lengths
from tract_pulse.pulsing.rate import rate_of_input
from tract_pulse.stream import CannotStream

from tract_core.dims import Dim, parse_dim
from tract_core.model.conditions import Condition
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.slice import wire_slice


def lengths(*conditions: str, asserted: str | None = None) -> Lengths:
    """Of a model with conditions, each written as ``a<=b`` or ``a==b``."""
    model = TypedModel()
    model.symbols.add("S")
    if asserted is not None:
        model.symbols.add_assertion(asserted)
    for text in conditions:
        relation: Any = "<=" if "<=" in text else "#" if "#" in text else "=="
        left, right = text.split(relation)
        model.conditions.add(Condition(parse_dim(left), relation, parse_dim(right)), "a test")
    return Lengths(model, "S")


@pytest.mark.parametrize(
    ("conditions", "a", "b", "same"),
    [
        ([], "max(0,S-2)", "S-2", False),
        (["2<=S"], "max(0,S-2)", "S-2", True),
        (["0<=(max(0,S-2)+2)/6-16"], "max(0,(max(0,S-2)+2)/6-16)", "S/6-16", True),
        (["0<=S-2", "2*S-S*(S>=3)-2#S-2"], "2*S-S*(S>=3)-2", "S-2", True),
        (["2*(S/2)==S"], "S/2*2", "S", True),
        ([], "S/2*2", "S", False),
        (["N==S"], "N", "S", False),
        (["S<=1"], "S/2", "0", True),
    ],
)
def test_sizes_are_the_same_for_the_signals_that_are_taken(conditions: list[str], a: str, b: str, same: bool):
    assert lengths(*conditions).same(parse_dim(a), parse_dim(b)) is same


def test_what_a_scope_asserts_is_used():
    assert lengths(asserted="S>=5").same(parse_dim("max(0,S-5)"), parse_dim("S-5"))
    assert lengths(asserted="S>=5").at_most(5, parse_dim("S"))
    assert not lengths(asserted="S>=4").at_most(5, parse_dim("S"))


def test_a_number_may_be_another_one_where_nothing_comes():
    start = parse_dim("min(S,2)")
    assert lengths().number(start) is None
    assert lengths().number(start, parse_dim("max(0,S-2)")) == 2
    assert lengths("2<=S").number(start) == 2
    assert lengths().number(parse_dim("N"), parse_dim("S")) is None
    assert lengths().number(7, parse_dim("N")) == 7


def test_the_largest_value_of_a_size():
    assert lengths().highest(parse_dim("3*(S/3)-S")) == 0
    assert lengths().highest(parse_dim("S-3*(S/3)")) == 2
    assert lengths().highest(parse_dim("S")) is None
    assert lengths("S<=9").highest(parse_dim("S/2")) == 4


@pytest.mark.parametrize(
    ("size", "pulse", "grown"),
    [
        ("max(0,S-3000)", "4", "4"),
        ("(S+3)/4", "8", "2"),
        ("3*((S+3)/4)", "4*P", "3*P"),
        ("2*S", "P+3", "2*P+6"),
        ("max(0,2*S-5)*N", "2", "4*N"),
        ("(S+3)/4", "2", None),
        ("8*(S/4)", "P+3", None),
        ("min(S,9)", "4", None),
    ],
)
def test_how_much_a_pulse_adds(size: str, pulse: str, grown: str | None):
    rate = rate_of_input(lengths(), parse_dim("S"), parse_dim(pulse))
    if grown is None:
        with pytest.raises(CannotStream):
            rate.growth(parse_dim(size))
    else:
        assert rate.growth(parse_dim(size)) == parse_dim(grown)


def test_a_window_may_be_longer_than_a_thousand_positions():
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,S,f32", model.symbols))
    size: Dim = model.outlet_fact(x).shape[1]
    model.set_outputs([wire_slice(model, "cut", x, 1, start=3000, end=size)])
    assert_streams(model.declutter(), 100, [np.arange(3210, dtype=np.float32)[None]])
