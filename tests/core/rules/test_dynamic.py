from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis_dyn import DynMoveAxes
from tract_core.ops.broadcast_dyn import DynBroadcast
from tract_core.ops.elementwise import Exp
from tract_core.ops.fill import DynFill
from tract_core.ops.one_hot import DynOneHot
from tract_core.ops.pad import DynPad, PadConstant, PadEdge
from tract_core.ops.reshape import DynReshape
from tract_core.ops.resize import DynResize, TargetKind
from tract_core.ops.slice import DynSlice
from tract_core.ops.tile import DynTile
from tract_core.ops.topk import Topk
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

U, V = symbol("U"), symbol("V")
ZERO = Constant(np.array(0, np.float32))
ONE = Constant(np.array(1, np.float32))


def _f32(*values: float) -> Any:
    return np.array(values, np.float32)


CASES: list[tuple[str, TypedOp, list[Any], list[str]]] = [
    ("6,f32", DynReshape((U, V)), [np.array([2, -1])], ["Reshape"]),
    ("1,3,f32", DynBroadcast((U, V)), [np.array([4, 1])], ["MultiBroadcastTo"]),
    ("3,2,f32", DynMoveAxes((U, V)), [np.array([-2])], ["MoveAxis"]),
    ("3,2,f32", DynMoveAxes((U, V), True), [np.array([0])], ["MoveAxis"]),
    ("3,2,f32", DynTile((U, V)), [np.array([2, 1])], ["Tile"]),
    ("5,f32", DynSlice(0, U), [np.array(1), np.array(3)], ["Slice"]),
    ("5,f32", DynPad(PadEdge(), (U,)), [np.array([1, 2])], ["Pad"]),
    ("5,f32", DynPad(PadConstant(ZERO), (U,)), [np.array([1, -2]), np.array(7, np.float32)], ["Slice", "Pad"]),
    ("5,i64", DynOneHot(1, U, ZERO, ONE), [np.array(4)], ["OneHot"]),
    ("1,1,4,f32", DynResize((2,), TargetKind.SCALES, (U,)), [_f32(1.5)], ["Resize"]),
]


@pytest.mark.parametrize(("fact", "op", "parameters", "wanted"), CASES, ids=lambda one: getattr(one, "name", None))
def test_known_parameters_make_the_static_form(
    fact: str, op: TypedOp, parameters: list[Any], wanted: list[str]
) -> None:
    """The shape of what is behind is known too, and mentions no announced symbol any more."""
    model, (x,) = sources(fact)
    for name in ("U", "V"):
        model.symbols.add(name)
    y = wire_one(model, "dynamic", op, x, *[model.add_const(f"p{i}", value) for i, value in enumerate(parameters)])
    model.set_outputs([wire_one(model, "out", Exp(), y)])
    simple = checked_declutter(model)
    assert sorted(operators(simple)) == sorted([*wanted, "Exp"])
    assert not any(simple.outlet_fact(outlet).shape.symbols() for outlet in simple.outputs)


@pytest.mark.parametrize(("fact", "op", "parameters", "wanted"), CASES, ids=lambda one: getattr(one, "name", None))
def test_unknown_parameters_leave_it_dynamic(fact: str, op: TypedOp, parameters: list[Any], wanted: list[str]) -> None:
    facts = [",".join([*map(str, value.shape), {"i": "i64", "f": "f32"}[value.dtype.kind]]) for value in parameters]
    model, (x, *outlets) = sources(fact, *facts)
    for name in ("U", "V"):
        model.symbols.add(name)
    model.set_outputs([wire_one(model, "dynamic", op, x, *outlets)])
    data = np.arange(int(model.outlet_fact(x).shape.volume)).reshape(model.outlet_fact(x).shape.concrete)
    data = data.astype(model.outlet_fact(x).datum_type.numpy)
    assert operators(checked_declutter(model, inputs=[data, *parameters])) == [op.name]


def test_a_known_shape_is_filled() -> None:
    model, (x,) = sources("2,3,f32")
    model.symbols.add("U")
    model.symbols.add("V")
    filled = wire_one(model, "fill", DynFill(ONE, (U, V)), model.add_const("shape", np.array([2, 3])))
    model.set_outputs([x, wire_one(model, "out", Exp(), filled)])
    assert not {"DynFill", "Exp"} & set(operators(checked_declutter(model)))


def test_a_known_count() -> None:
    model, (x,) = sources("B,5,f32")
    model.symbols.add("U")
    values, _ = model.wire_node("top", Topk(1, True, U), [x, model.add_const("k", np.array(2))])
    model.set_outputs([wire_one(model, "out", Exp(), values)])
    simple = checked_declutter(model, {"B": 2})
    assert simple.outlet_fact(simple.outputs[0]).shape == (symbol("B"), 2)


def test_sizes_that_become_known_are_known_everywhere() -> None:
    """A symbol that an operator announced gives way in the attributes of others."""
    model, (x,) = sources("6,f32")
    model.symbols.add("U")
    wide: Callable[[TypedModel], OutletId] = lambda m: m.add_const("shape", np.array([6, 1]))  # noqa: E731
    y = wire_one(model, "reshape", DynReshape((U, 1)), x, wide(model))
    ones = model.add_const("ones", np.ones((1, 4), np.float32))
    from tract_core.ops.broadcast import MultiBroadcastTo

    stretched = wire_one(model, "stretched", MultiBroadcastTo((U, 4)), ones)
    from tract_core.ops.binary import Add

    model.set_outputs([wire_one(model, "out", Add(), stretched, y)])
    simple = checked_declutter(model)
    assert simple.outlet_fact(simple.outputs[0]).shape == (6, 4)
