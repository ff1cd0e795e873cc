"""What downsampling refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError, InputError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.downsample import Downsample
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Downsample(0, 0), ["2,f32"], r"stride 0 with modulo 0; wanted a stride that is not 0"),
        (Downsample(0, 2, -1), ["2,f32"], r"stride 2 with modulo -1"),
        (Downsample(0, -2, 1), ["2,f32"], r"no modulo with a negative stride"),
        (Downsample(0, 2, 3), ["2,f32"], r"modulo 3 is beyond axis 0 of 2,f32"),
        (Downsample(1, 2), ["2,f32"], r"axis 1 is outside a tensor of rank 1"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_modulo_beyond_a_symbolic_axis_is_refused_in_the_run() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    model.set_outputs(model.wire_node("y", Downsample(0, 2, 3), [x]))
    with pytest.raises(InputError, match=r"node 'y' \(Downsample\): size S must be 3 or more; S is 2"):
        TypedSimplePlan(model).run([np.zeros(2, dtype=np.float32)])
