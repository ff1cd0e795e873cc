"""What binary operators and stretching refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.binary import Add, And, BitOr, Div, FloorRem, Lt, Max, Mul, Rem
from tract_core.ops.broadcast import MultiBroadcastTo

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Add(), ["2,f32"], r"Add takes 2 inputs, 1 were given"),
        (Add(), ["2,f32", "2,f16"], r"Add wants inputs of one element type, found f32, f16"),
        (Add(), ["2,f32", "f32"], r"Add wants inputs of one rank"),
        (Add(), ["2,3,f32", "2,4,f32"], r"Add: sizes 3 and 4 differ on axis 1 of \[2,3\] and \[2,4\]"),
        (Add(), ["2,bool", "2,bool"], r"Add does not take bool: 2,bool and 2,bool"),
        (Add(), ["2,string", "2,string"], r"Add does not take string"),
        (And(), ["2,f32", "2,f32"], r"And does not take f32"),
        (BitOr(), ["2,f32", "2,f32"], r"BitOr does not take f32"),
        (MultiBroadcastTo((2,)), ["3,f32"], r"MultiBroadcastTo: sizes 3 and 2 differ on axis 0 of \[3\] and \[2\]"),
        (MultiBroadcastTo((2,)), ["2,2,f32"], r"MultiBroadcastTo: 2,2,f32 has more axes than the target \[2\]"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


@pytest.mark.parametrize("op", [Add(), Mul(), Div(), Rem()])
def test_stored_integers_are_not_taken_for_quantised_numbers(op: Any) -> None:
    fact = parse_typed_fact("2,QU8(Z:5 S:0.5)")
    with pytest.raises(FactError, match="arithmetic on stored integers"):
        op.output_facts([fact, fact])
    assert str(Max().output_facts([fact, fact])[0]) == "2,QU8(Z:5 S:0.5)"


@pytest.mark.parametrize("op", [Max(), Lt(), Rem(), FloorRem()])
def test_complex_numbers_have_no_order(op: Any) -> None:
    fact = parse_typed_fact("2,complex_f32")
    with pytest.raises(FactError, match=f"{op.name} does not take complex_f32"):
        op.output_facts([fact, fact])
