"""A run checks what the code behind an operator returns: whatever was not promised ends it, and names the node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tract_core.errors import RunError, TractError
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.plugins import Rows
from tract_core.plugins.keys import REFERENCE
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.strategies import Grown, typed_models
from tract_core.testing.toys import toy_registry

Array = np.ndarray[Any, Any]
ROWS = Rows()


def _longer(x: Array, axis: int) -> Array:
    return np.concatenate([x, np.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)], axis)


def _shorter(x: Array, axis: int) -> Array:
    return x.take(range(max(x.shape[axis] - 1, 0)), axis)


TWISTS: Final[Sequence[Callable[[Array, int], Array]]] = (
    _longer,
    _shorter,
    lambda x, axis: x.take([0], axis) if x.shape[axis] else x,
    np.expand_dims,
    lambda x, _: x.reshape(-1),
    lambda x, _: np.zeros(x.shape, np.complex64),
)
"""What an operator may return that promises the tensor that it reads, by the axis of that tensor."""


@dataclass(frozen=True)
class Twists(TypedOp):
    """Promises the tensor that it reads, and returns one of `TWISTS`."""

    twist: int
    axis: int
    pure: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (inputs[0].without_value(),)


@ROWS.row(REFERENCE, Twists)
def twisted(op: Twists, x: Array) -> Array:
    return TWISTS[op.twist](x, op.axis)


REGISTRY = toy_registry("acme", rows={"reference": [__name__]})


@given(typed_models(steps=8), st.data())
def test_what_is_not_promised_is_refused(grown: Grown, data: st.DataObject) -> None:
    model = grown.model.clone()
    model._registry = REGISTRY  # random models are of the default one
    nodes = [model.nodes[place] for place in model.eval_order()]
    outlets = [one for node in nodes for one in node.outlets() if model.outlet_fact(one).rank]
    assume(outlets)
    read = data.draw(st.sampled_from(outlets))
    axis = data.draw(st.integers(0, model.outlet_fact(read).rank - 1))
    twist = data.draw(st.sampled_from(range(len(TWISTS))))
    (lie,) = model.wire_node("lie", Twists(twist, axis), [read])
    model.set_outputs([*model.outputs, lie])
    honest = grown.model.clone()
    honest.set_outputs([*honest.outputs, read])
    for sizes in grown.sizings:
        inputs = grown.inputs(sizes)
        try:
            right = TypedSimplePlan(honest).run(inputs)[-1]
        except TractError:
            continue  # refused for its sizes, with or without the lie
        wrong = TWISTS[twist](right, axis)
        if (wrong.dtype, wrong.shape) == (right.dtype, right.shape):
            TypedSimplePlan(model).run(inputs)
            continue
        with pytest.raises(RunError, match=r"^node 'lie' \(Twists\): the operator returned .* where") as caught:
            TypedSimplePlan(model).run(inputs)
        assert "this is a defect of acme" in str(caught.value)
