"""Arithmetic, canonical form and the manners of a ``TDim``."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from tract_core.dims import Dim, TDim, product, symbol, symbols_of
from tract_core.dims.atoms import Atom
from tract_core.errors import DimError

B, S, P = symbol("B"), symbol("S"), symbol("P")
UNTYPED: Any = S
"""For what a type checker would refuse."""


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (S - S, 0),
        (S + 1 - S, 1),
        (S * 0, 0),
        (0 * S, 0),
        ((S + P) * (S - P) - S * S + P * P, 0),
        ((2 * S + 1) // 2 - S, 0),
        (S % 1, 0),
        (4 * S % 4, 0),
        ((4 * S + 3) % 4, 3),
        ((4 * S + 3) // 4 - S, 0),
    ],
    ids=repr,
)
def test_constant_results_are_ints(dim: Dim, expected: int) -> None:
    assert dim == expected
    assert type(dim) is int


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (S + P, P + S),
        (S + S, 2 * S),
        (1 + S, S + 1),
        (1 - S, -(S - 1)),
        (S * P, P * S),
        ((S + 1) * (S + 1), S * S + 2 * S + 1),
        (S * 1, S),
        (S + 0, S),
        (+S, S),
        (S // 1, S),
        (S // 2 * P, P * (S // 2)),
    ],
    ids=repr,
)
def test_one_polynomial_has_one_form(left: Dim, right: Dim) -> None:
    assert left == right
    assert hash(left) == hash(right)


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        ((S // 2) // 3, S // 6),
        (((S + 1) // 2 + 1) // 2, (S + 3) // 4),
        ((S // 2 + P) // 3, (S + 2 * P) // 6),
        ((4 * S + 2) // 2, 2 * S + 1),
        ((4 * S + 3) // 2, 2 * S + 1),
        ((6 * S + 4) // 4, (3 * S + 2) // 2),
        ((6 * S + 5) // 4, (3 * S + 2) // 2),
        ((4 * S + P) // 4, S + P // 4),
        ((S + 5) // 4, (S + 1) // 4 + 1),
        ((S - 3) // 2 + 1, (S + 1) // 2 - 1),
        (-S // 2, -((S + 1) // 2)),
        ((P - S) // 2, -((S - P + 1) // 2)),
        ((S - 4 * (S // 4)) // 4, 0),
        (S % 4, S - 4 * (S // 4)),
        (S // 2 // 2 - S // 4, 0),
        ((2 * S * P) // 2, S * P),
    ],
    ids=repr,
)
def test_floor_divisions_are_simplified(dim: Dim, expected: Dim) -> None:
    assert dim == expected
    assert hash(dim) == hash(expected)


def test_different_expressions_differ() -> None:
    assert len({S, P, S + 1, S + 2, 2 * S, S * S, S // 2, S // 3, (S + 1) // 2, S * P}) == 10
    assert S != "S"
    assert S != 1


def test_other_integers_mix_with_sizes() -> None:
    class Index:
        def __index__(self) -> int:
            return 3

    assert UNTYPED + Index() == S + 3
    assert Index() * UNTYPED == 3 * S
    assert UNTYPED // Index() == S // 3
    assert S + True == S + 1


@pytest.mark.parametrize("other", [1.5, "2", None, [1]], ids=repr)
def test_what_is_no_integer_is_refused(other: object) -> None:
    with pytest.raises(TypeError):
        _ = UNTYPED + other
    with pytest.raises(TypeError):
        _ = UNTYPED - other
    with pytest.raises(TypeError):
        _ = other - UNTYPED


def test_a_size_has_no_order() -> None:
    with pytest.raises(TypeError):
        _ = UNTYPED < P
    with pytest.raises(TypeError):
        _ = UNTYPED >= P


@pytest.mark.parametrize("divisor", [0, -2, P, 1.5], ids=repr)
def test_division_by_anything_but_a_positive_integer(divisor: object) -> None:
    with pytest.raises(
        DimError, match=r"cannot divide S by .*: a size is divided by a positive integer\n  hint: exact"
    ):
        _ = UNTYPED // divisor
    with pytest.raises(DimError, match="cannot divide"):
        _ = UNTYPED % divisor


def test_division_of_a_number_by_an_expression() -> None:
    with pytest.raises(DimError, match="cannot divide 7 by S: "):
        _ = 7 // UNTYPED
    with pytest.raises(DimError, match="cannot divide 7 by S: "):
        _ = 7 % UNTYPED


def test_no_truth_value() -> None:
    with pytest.raises(DimError, match=r"whether S\+1 is true depends on its symbols\n  hint: ask same_dim"):
        bool(S + 1)


def test_no_number() -> None:
    with pytest.raises(DimError, match=r"P\+S/2 is not a number yet: it depends on P, S\n  hint: give its"):
        int(P + S // 2)
    with pytest.raises(DimError, match="is not a number yet"):
        range(S)


def test_a_size_cannot_change() -> None:
    with pytest.raises(AttributeError):
        S.constant = 3
    with pytest.raises(AttributeError):
        del S.constant
    half = S // 2
    assert isinstance(half, TDim)
    ((atom,),) = half.terms
    assert isinstance(atom, Atom)
    with pytest.raises(AttributeError):
        atom.args = ()


def test_copies_and_pickles_are_equal() -> None:
    dim = (S + 3) // 4 * P + S
    hash(dim)
    for other in (copy.copy(dim), copy.deepcopy(dim), pickle.loads(pickle.dumps(dim))):
        assert other == dim
        assert hash(other) == hash(dim)
        assert str(other) == str(dim)


def test_a_pickle_is_found_in_a_set_of_another_process() -> None:
    data = pickle.dumps({(S + 3) // 4 + P})
    code = (
        "import pickle, sys; from tract_core.dims import symbol; "
        f"sizes = pickle.loads({data!r}); sys.exit((symbol('S') + 3) // 4 + symbol('P') not in sizes)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_any_short_text_is_a_name() -> None:
    for name in ("S", "batch size", "min", "🎯0", "2x", "a,b", '"', "\\", " ", "x" * 256, "lambda"):
        assert symbols_of(symbol(name)) == {name}


def test_a_name_is_not_empty() -> None:
    with pytest.raises(DimError, match="a symbol has no name\n  hint: give it a name of one character or more"):
        symbol("")


def test_a_name_is_not_long() -> None:
    with pytest.raises(DimError, match=r"'xxxxx.*'\.\.\. has 257 characters, at most 256 are allowed\n  hint: use"):
        symbol("x" * 257)


def test_sums_are_limited() -> None:
    many = [symbol(f"s{number}") for number in range(40)]
    total: Dim = sum(many)
    with pytest.raises(DimError, match=r"grows too large: a sum of \d+ terms, at most 1024 are allowed\n  hint: give"):
        _ = total * total * total


def test_powers_are_limited() -> None:
    assert product([S] * 32) != 0
    with pytest.raises(DimError, match="a product of 33 factors, at most 32 are allowed"):
        product([S] * 33)


def test_depth_is_limited() -> None:
    def nest(levels: int) -> Dim:
        deep: Dim = S
        for _ in range(levels):
            deep = deep * P // 3
        return deep

    assert nest(64) != 0
    with pytest.raises(DimError, match="more than 64 levels or 16384 terms"):
        nest(65)


def test_weight_is_limited() -> None:
    def double(times: int) -> Dim:
        heavy: Dim = S
        for _ in range(times):
            heavy = (P * heavy) // 3 + (P * heavy + 1) // 5
        return heavy

    assert double(8) != 0
    with pytest.raises(DimError, match="more than 64 levels or 16384 terms"):
        double(40)


def test_a_tdim_is_never_constant() -> None:
    assert isinstance(S, TDim)
    assert not isinstance(S - S + 4, TDim)
