"""Axes of known tensors are arranged while they are wired: a constant of its own, which is a view."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.const import Const
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_rank, wire_squeeze, wire_transpose, wire_unsqueeze
from tract_core.runtime.plan import TypedSimplePlan

Wire = Callable[[TypedModel, OutletId], OutletId]
WIRED: list[Wire] = [
    lambda model, x: wire_rank(model, "y", x, 5),
    lambda model, x: wire_rank(model, "y", x, 3),
    lambda model, x: wire_squeeze(model, "y", x, [2, 0]),
    lambda model, x: wire_squeeze(model, "y", x, []),
    lambda model, x: wire_unsqueeze(model, "y", x, [4, 0]),
    lambda model, x: wire_unsqueeze(model, "y", x, [5, 4, 3]),
    lambda model, x: wire_transpose(model, "y", x, [2, 0, 1]),
    lambda model, x: wire_transpose(model, "y", x, [0, 1, 2]),
]


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("wire", WIRED)
def test_a_known_tensor_gives_a_view_and_any_other_one_the_same_elements(wire: Wire, size: int) -> None:
    array = np.arange(size, dtype="f4").reshape(1, size, 1)
    known, computed = TypedModel(), TypedModel()
    x = computed.add_source("x", parse_typed_fact(f"1,{size},1,f32"))
    for model, outlet in ((known, known.add_const("x", array)), (computed, x)):
        model.set_outputs([wire(model, outlet)])
    (wanted,), (found,) = TypedSimplePlan(computed).run([array]), TypedSimplePlan(known).run([])
    np.testing.assert_array_equal(found, wanted, strict=True)
    op = known.nodes[known.outputs[0].node].op
    assert isinstance(op, Const)
    assert np.shares_memory(op.value.array, array) is (size > 0)


def test_what_cannot_be_is_refused_of_known_tensors_too() -> None:
    model = TypedModel()
    x = model.add_const("x", np.zeros((2, 3)))
    with pytest.raises(FactError, match="RmAxis"):
        wire_squeeze(model, "y", x, [1])
    with pytest.raises(FactError, match="permutation"):
        wire_transpose(model, "y", x, [1])
    with pytest.raises(FactError, match="permutation"):
        wire_transpose(model, "y", x, [1, 1])
    with pytest.raises(FactError, match="AddAxis"):
        wire_unsqueeze(model, "y", x, [4])
