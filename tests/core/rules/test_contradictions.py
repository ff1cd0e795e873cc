"""A model whose conditions never hold all together is simplified as any other, and refuses every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import GraphError, TractError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape, RmAxis
from tract_core.ops.binary import Max
from tract_core.ops.concat import TypedConcat
from tract_core.ops.downsample import Downsample
from tract_core.ops.elementwise import Exp
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.wiring import wire_one
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.declutter import sources, unaware


def _numbers(model: TypedModel, *shape: int) -> OutletId:
    return model.add_const(f"numbers{len(model.nodes)}", np.ones(shape, np.float32))


def _half(model: TypedModel, given: Sequence[OutletId]) -> list[OutletId]:
    """S is 2 and T is 3, but T is half of S, rounded up: which the fact of ``half`` shows when T is put into it."""
    s, t = given
    column = wire_one(model, "column", AddAxis(1), wire_one(model, "row", RmAxis(0), t))
    three = wire_one(model, "three", TypedConcat(1), column, _numbers(model, 3, 1))
    half = wire_one(model, "half", TypedConcat(1), wire_one(model, "thin", Downsample(0, 2), s), column)
    with unaware(model):
        two = wire_one(model, "two", TypedConcat(1), s, _numbers(model, 2, 1))
    return [three, two, wire_one(model, "out", Exp(), half)]


def _twice(model: TypedModel, given: Sequence[OutletId]) -> list[OutletId]:
    """S is 2, but 2 * S is S and is 2: a block of two replaces all of what is 4, or 6 with what is left of it."""
    s, t = given
    size = symbol("S")
    flat = wire_one(model, "flat", Reshape(0, (size, 1), (size,)), s)
    both = wire_one(model, "both", TypedConcat(0), flat, flat)
    places = [model.add_const(f"places{slot}", np.array(at)) for slot, at in enumerate(([[0], [1]], [[1], [0]]))]
    block = wire_one(model, "block", ScatterNd(), both, places[0], both)
    with unaware(model):
        again = wire_one(model, "again", Reshape(0, (2 * size,), (size,)), block)
    with unaware(model):
        turned = wire_one(model, "turned", ScatterNd(), again, places[1], again)
    largest = wire_one(model, "largest", Max(), both, _numbers(model, 1))
    return [turned, wire_one(model, "out", ScatterNd(), largest, places[0], block), wire_one(model, "t", Exp(), t)]


@pytest.mark.parametrize("build", [_half, _twice])
def test_what_contradicts_itself_is_simplified_and_refused(
    build: Callable[[TypedModel, Sequence[OutletId]], list[OutletId]],
) -> None:
    model, given = sources("S,1,f32", "1,T,f32")
    model.set_outputs(build(model, given))
    model.check_consistency()
    simple = declutter(model.clone(), check=True)
    for s, t in product(range(7), range(7)):
        arrays = [np.ones((s, 1), np.float32), np.ones((1, t), np.float32)]
        for one in (model, simple):
            with pytest.raises(TractError, match="must be"):
                TypedSimplePlan(one).run(arrays)


def test_what_is_possible_is_checked() -> None:
    model, (s, _) = sources("S,1,f32", "1,T,f32")
    two = wire_one(model, "two", TypedConcat(1), s, _numbers(model, 2, 1))
    model.set_outputs([wire_one(model, "out", Exp(), two)])
    fact = model.outlet_fact(model.outputs[0])
    model.set_outlet_fact(model.outputs[0], fact.with_shape((2, 3)))
    with pytest.raises(GraphError, match="output is 2,3,f32, its operator says"):
        model.check_consistency()
