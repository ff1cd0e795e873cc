from __future__ import annotations

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp, Sigmoid, Tanh
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources
from tract_core.testing.tolerance import Tolerance

SIZES = {"T": 5, "B": 2}
CLOSE = Tolerance(1e-5, 1e-4)
PRODUCT = EinSum(AxesMapping.parse("tnk,kh->tnh"), DatumType.F32)
WEIGHTS = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize("chunk", [1, -1])
@pytest.mark.parametrize("inside", [True, False], ids=["weights inside", "weights given"])
def test_the_product_of_every_slice_is_one_product_in_front(inside: bool, chunk: int) -> None:
    body, (x, state, weights) = sources("1,N,3,f32", "1,N,2,f32", "3,2,f32")
    mappings = [ScannedInput(0, chunk), StateInput(), FullInput()]
    if inside:
        weights = body.add_const("w", WEIGHTS)
        body.inputs.pop()
        mappings.pop()
    gates = wire_one(body, "product", PRODUCT, x, weights)
    new = wire_one(body, "new", Tanh(), wire_one(body, "sum", Add(), gates, state))
    body.set_outputs([new])
    loop = Scan(body, tuple(mappings), (OutputMapping(state=True, full=FullOutput(0, 0, chunk)),))
    model, outlets = sources("T,B,3,f32", "1,B,2,f32", "3,2,f32")
    model.set_outputs(model.wire_node("loop", loop, outlets[: len(mappings)]))
    simple = checked_declutter(model, SIZES, tolerance=CLOSE)
    assert operators(simple) == ["EinSum", "Scan"]
    assert operators(simple.node_by_name("loop").op.body) == ["Add", "Tanh"]  # type: ignore[attr-defined]: a Scan


def test_what_mixes_slices_or_state_stays_inside() -> None:
    body, (x, state) = sources("1,N,f32", "1,N,f32")
    mixed = wire_one(body, "soft", Softmax((0,)), x)
    new = wire_one(body, "new", Tanh(), wire_one(body, "sum", Add(), mixed, state))
    body.set_outputs([new])
    loop = Scan(body, (ScannedInput(0), StateInput()), (OutputMapping(state=True, full=FullOutput(0, 0)),))
    model, outlets = sources("T,B,f32", "1,B,f32")
    model.set_outputs(model.wire_node("loop", loop, outlets))
    assert operators(checked_declutter(model, SIZES)) == ["Scan"]


@pytest.mark.parametrize(("skip", "wanted"), [(0, ["Scan", "Exp", "EinSum"]), (2, ["Scan"])])
def test_what_only_the_outputs_need_is_computed_behind(skip: int, wanted: list[str]) -> None:
    body, (x, state) = sources("1,N,3,f32", "1,N,3,f32")
    new = wire_one(body, "new", Sigmoid(), wire_one(body, "sum", Add(), x, state))
    exp = wire_one(body, "exp", Exp(), new)
    body.set_outputs([new, wire_one(body, "product", PRODUCT, exp, body.add_const("w", WEIGHTS))])
    outputs = (OutputMapping(state=True, last=0), OutputMapping(full=FullOutput(1, 0)))
    loop = Scan(body, (ScannedInput(0), StateInput()), outputs, skip=skip)
    model, outlets = sources("T,B,3,f32", "1,B,3,f32")
    model.set_outputs(model.wire_node("loop", loop, outlets))
    simple = checked_declutter(model, SIZES, tolerance=CLOSE)
    assert operators(simple) == wanted
