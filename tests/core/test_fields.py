"""What operators hold is found wherever it is, or refused."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.dims import TDim, symbol
from tract_core.errors import FactError
from tract_core.model.fact import ShapeFact
from tract_core.model.fields import changed, leaves
from tract_core.model.substitute import substitute_in, symbols_in

S, T = symbol("S"), symbol("T")


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Holder:
    content: Any
    twice: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", (self.content, self.content))


HOLDERS = [
    (S, 3),
    ShapeFact((S, 3)),
    [S, 3],
    {"a": S},
    {S: 1},
    MappingProxyType({"a": (S,)}),
    frozenset((S, 3)),
    {S},
    Pair(1, [S]),
    Holder({"a": [(S,)]}),
    (Holder(None), Holder(Pair(S, S))),
]


@pytest.mark.parametrize("value", HOLDERS, ids=range(len(HOLDERS)))
def test_symbols_are_found_and_replaced_wherever_they_are(value: Any) -> None:
    assert symbols_in(value) == {"S"}
    assert substitute_in(value, {"T": 5}) is value
    found = substitute_in(value, {"S": 5})
    assert type(found) is type(value)
    assert symbols_in(found) == set()
    assert 5 in list(leaves(found))
    assert substitute_in(found, {"S": 7}) is found


def test_what_is_derived_from_fields_is_derived_again() -> None:
    assert substitute_in(Holder(S), {"S": 4}).twice == (4, 4)


@pytest.mark.parametrize(
    "value", [np.array([S, T], object), deque([S]), {"a": S}.values()], ids=lambda v: type(v).__name__
)
def test_containers_into_which_nobody_looks_are_refused(value: Any) -> None:
    kind = type(value)
    for look in (symbols_in, lambda one: substitute_in(one, {"S": 1})):
        with pytest.raises(FactError, match=f"an operator holds a {kind.__module__}.{kind.__qualname__}, into which"):
            look(Holder((1, value)))


def test_leaves_come_in_order_and_whole_classes_are_not_entered() -> None:
    array = Constant(np.zeros(3))
    value = Holder((1, "text", b"bytes", None, 2.5, {"a": [True, array]}, range(3), Pair))
    found = list(leaves(value))
    assert found == [1, "text", b"bytes", None, 2.5, "a", True, array, range(3), Pair]
    assert list(leaves((value, 1), (Holder,))) == [value, 1]
    assert changed((value, 1), lambda leaf: 2 if leaf == 1 else leaf, (Holder,)) == (value, 2)


def test_numbers_of_sizes_are_leaves() -> None:
    assert [type(leaf) for leaf in leaves((S + 1, 3))] == [TDim, int]
