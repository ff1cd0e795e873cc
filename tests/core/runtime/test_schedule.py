"""Nodes that nothing reads stay where they find out, in the run, a size that others mention."""

from __future__ import annotations

import numpy as np
import pytest
import tract

from tract_core.data import Constant, DatumType
from tract_core.dims import symbol
from tract_core.ops.cast import Cast
from tract_core.ops.fill import DynFill
from tract_core.ops.range import Range
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import sources

U = symbol("U")


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_a_range_over_a_size_that_a_fill_found_does_not_find_it(runtime: str) -> None:
    model, (shape,) = sources("1,i64")
    wire_one(model, "fill", DynFill(Constant(np.array(False)), (U,)), shape)
    start, end, step = (model.add_const(name, value) for name, value in (("start", 1), ("end", U + 1), ("step", 1)))
    steps = wire_one(model, "steps", Range(U), start, end, step)
    model.set_outputs([wire_one(model, "out", Cast(DatumType.F32), steps)])
    prepared = tract.runtime_for_name(runtime).prepare(tract.Model.from_typed(model))
    for count in (0, 1, 5):
        np.testing.assert_array_equal(prepared.run([np.array([count])])[0].to_numpy(), np.arange(1, count + 1))
