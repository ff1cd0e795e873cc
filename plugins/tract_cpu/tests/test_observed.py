"""What an observer sees of a run, and what it may put in its place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan

from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.elementwise import Neg
from tract_core.plugins.keys import Array
from tract_core.runtime.parts import Part


def test_a_view_may_be_exchanged_for_itself_only(isa) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,3,f32"))
    (turned,) = model.wire_node("turned", MoveAxis(0, 1), [x])
    model.set_outputs(model.wire_node("y", Neg(), [turned]))
    plan, values = CpuPlan(model, isa), np.array([[1, np.nan, -0.0], [4, 5, 6]], "f4")

    def run(more: float) -> Array:
        def observe(part: Part, tensors: Mapping[OutletId, Array]) -> Mapping[OutletId, Array]:
            return {outlet: array + np.float32(more) if more else array for outlet, array in tensors.items()}

        return plan.spawn_observed(observe).run([values])[0]

    np.testing.assert_array_equal(run(0), -values.T)
    with pytest.raises(RunError, match="'turned': its result cannot be exchanged: it is a view on another tensor"):
        run(1)
