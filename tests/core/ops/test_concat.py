"""What concatenation refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.concat import TypedConcat

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (TypedConcat(0), [], r"takes at least one input"),
        (TypedConcat(0), ["2,f32", "2,f16"], r"wants inputs of one element type, found f32, f16"),
        (TypedConcat(0), ["2,f32", "2,2,f32"], r"wants inputs of one rank, found 1, 2"),
        (TypedConcat(2), ["2,3,f32"], r"axis 2 is outside a tensor of rank 2"),
        (TypedConcat(0), ["2,3,f32", "2,4,f32"], r"sizes on axis 1 differ: 2,3,f32 and 2,4,f32"),
        (TypedConcat(0), ["2,S,f32", "2,S+1,f32"], r"sizes on axis 1 differ"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_a_number_says_more_than_a_symbol() -> None:
    (found,) = TypedConcat(0).output_facts([parse_typed_fact(fact) for fact in ("S,B,f32", "2,4,f32")])
    assert str(found) == "S+2,4,f32"
