"""What compressing refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, InputError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.compress import Compress
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Compress(1, 1), ["2,f32", "2,bool"], r"axis 1 is outside a tensor of rank 1"),
        (Compress(0, 1), ["2,f32", "2,i64"], r"wants booleans of rank 1 as condition, found 2,i64"),
        (Compress(0, 1), ["2,f32", "2,1,bool"], r"wants booleans of rank 1 as condition, found 2,1,bool"),
        (Compress(0, 1), ["2,f32", "3,bool"], r"the condition 3,bool is longer than axis 0 of 2,f32"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_condition_that_is_too_long_is_refused_in_the_run() -> None:
    model = TypedModel()
    facts = (("x", "S,f32"), ("mask", "P,bool"))
    inputs = [model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts]
    model.set_outputs(model.wire_node("y", Compress(0, symbol("N")), inputs))
    with pytest.raises(InputError, match=r"node 'y' \(Compress\): size P must be at most S; P is 3 and S is 2"):
        TypedSimplePlan(model).run([np.zeros(2, dtype=np.float32), np.ones(3, dtype=np.bool_)])
