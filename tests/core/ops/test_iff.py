"""What a choice refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.iff import Iff

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Iff(), ["2,f32", "2,f32", "2,f32"], r"wants booleans as condition, found 2,f32"),
        (Iff(), ["2,bool", "2,f32", "2,f16"], r"wants inputs of one element type, found f32, f16"),
        (Iff(), ["2,bool", "f32", "2,f32"], r"wants inputs of one rank"),
        (Iff(), ["2,bool", "3,f32", "1,f32"], r"sizes 2 and 3 differ on axis 0 of \[2\] and \[3\] and \[1\]"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])
