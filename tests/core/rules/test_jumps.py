from __future__ import annotations

import pytest

from tract_core.data import DatumType
from tract_core.model.op import TypedOp
from tract_core.ops import binary, elementwise
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Gt, Max, Mul
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Exp, Floor, Neg, PowConst
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput
from tract_core.ops.wiring import wire_one
from tract_core.plugins.references import load_object
from tract_core.plugins.tables import key_text
from tract_core.rules.jumps import _EFFECTS, LOOKED_AT, feeds_jump  # pyright: ignore[reportPrivateUsage]: looked through here
from tract_core.testing.declutter import sources


@pytest.mark.parametrize(
    ("row", "jumps"),
    [
        ([], False),
        ([Neg(), Neg()], False),
        ([Floor()], True),
        ([Neg(), MoveAxis(0, 1), Floor()], True),
        ([Neg(), Exp(), Floor()], False),
        ([PowConst(3.0), Floor()], False),
        ([Reduce((0,), Reducer.MAX), Floor()], True),
        ([Reduce((0,), Reducer.SUM), Floor()], False),
        ([Reduce((0,), Reducer.ARG_MAX_FIRST)], True),
        ([Cast(DatumType.F16), Cast(DatumType.I8)], True),
        ([Cast(DatumType.F16), Exp()], False),
        ([Neg()] * (LOOKED_AT - 2) + [Exp()], False),
        ([Neg()] * (LOOKED_AT + 2) + [Exp()], True),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_comes_behind(row: list[TypedOp], jumps: bool) -> None:
    model, (x,) = sources("B,3,f32")
    outlet = x
    for count, op in enumerate(row):
        outlet = wire_one(model, f"op{count}", op, outlet)
    model.set_outputs([outlet])
    assert feeds_jump(model, x) is jumps


def test_one_of_several_readers_is_enough() -> None:
    model, (x, y) = sources("B,3,f32", "B,3,f32")
    product = wire_one(model, "product", Mul(), x, y)
    relu = wire_one(model, "larger", Max(), product, y)
    model.set_outputs([wire_one(model, "exp", Exp(), relu), wire_one(model, "greater", Gt(), relu, y)])
    assert feeds_jump(model, x)


@pytest.mark.parametrize(("op", "jumps"), [(Neg(), False), (Floor(), True)])
def test_a_loop_jumps_where_its_body_does(op: TypedOp, jumps: bool) -> None:
    body, (piece,) = sources("1,3,f32")
    body.set_outputs([wire_one(body, "op", op, piece)])
    loop = Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)),))
    model, (x,) = sources("B,3,f32")
    model.set_outputs([wire_one(model, "loop", loop, x)])
    assert feeds_jump(model, x) is jumps


@pytest.mark.parametrize("key", _EFFECTS)
def test_every_operator_in_the_list_is_there(key: str) -> None:
    assert issubclass(load_object(key), TypedOp)


def test_what_every_operator_on_elements_makes_of_a_difference_is_said() -> None:
    """One that is not said jumps, and rules do less in front of it without anybody being told."""
    kinds = [one for module in (binary, elementwise) for one in vars(module).values() if isinstance(one, type)]
    mine = [
        one for one in kinds if issubclass(one, TypedOp) and one.__module__ in (binary.__name__, elementwise.__name__)
    ]
    leaves = [one for one in mine if not any(issubclass(other, one) and other is not one for other in mine)]
    unsaid = [one.__name__ for one in leaves if not any(key_text(base) in _EFFECTS for base in one.__mro__)]
    assert unsaid == []
