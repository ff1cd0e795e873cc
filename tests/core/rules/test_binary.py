from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import binary as ops
from tract_core.ops.axis import MoveAxis
from tract_core.ops.elementwise import Exp, Floor, Not
from tract_core.ops.quantize import QuantizeLinear
from tract_core.ops.wiring import wire_binary, wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


def _with_constant(fact: str, op: TypedOp, value: Any, *, left: bool = False) -> TypedModel:
    """Exp or Not of the input (integers: the input), combined with a constant."""
    model, (x,) = sources(fact)
    kind = model.outlet_fact(x).datum_type
    inner = Not() if kind.is_bool() else Exp() if kind.is_float() else None
    x = x if inner is None else wire_one(model, "inner", inner, x)
    constant = model.add_const("c", np.array(value).astype(kind.numpy))
    model.set_outputs([wire_binary(model, "out", op, *((constant, x) if left else (x, constant)))])
    return model


@pytest.mark.parametrize(
    ("fact", "op", "value", "left"),
    [
        ("B,3,f32", ops.Add(), 0, False),
        ("B,3,f32", ops.Add(), 0, True),
        ("B,3,f32", ops.Sub(), 0, False),
        ("B,3,f32", ops.SubF(), 0, True),
        ("B,3,f32", ops.Mul(), [1, 1, 1], False),
        ("B,3,f32", ops.Div(), 1, False),
        ("B,3,f32", ops.Pow(), 1, False),
        ("B,3,f32", ops.Max(), -math.inf, False),
        ("B,3,f32", ops.Min(), math.inf, True),
        ("B,3,bool", ops.And(), True, False),
        ("B,3,bool", ops.Or(), False, True),
        ("B,3,bool", ops.Xor(), False, False),
    ],
    ids=str,
)
def test_a_neutral_element_is_removed(fact: str, op: TypedOp, value: Any, left: bool) -> None:
    simple = checked_declutter(_with_constant(fact, op, value, left=left), {"B": 2})
    assert operators(simple) in (["Exp"], ["Not"])
    assert simple.outlet_name(simple.outputs[0]) == "out"


@pytest.mark.parametrize(
    ("fact", "op", "value", "wanted"),
    [
        ("B,3,i8", ops.Max(), -128, "Identity"),
        ("B,3,u8", ops.BitAnd(), 255, "Identity"),
        ("B,3,i32", ops.BitAnd(), -1, "Identity"),
        ("B,3,i32", ops.BitOr(), 0, "Identity"),
        ("B,3,i32", ops.ShiftLeft(), 0, "Identity"),
        ("B,3,i32", ops.Max(), 0, "Max"),
    ],
    ids=str,
)
def test_neutral_elements_of_integers(fact: str, op: TypedOp, value: Any, wanted: str) -> None:
    assert operators(checked_declutter(_with_constant(fact, op, value), {"B": 2})) == [wanted]


@pytest.mark.parametrize(
    ("op", "value", "left"),
    [(ops.Sub(), 0, True), (ops.Div(), 1, True), (ops.Pow(), 1, True), (ops.Add(), [0, 0, 1], False)],
    ids=str,
)
def test_what_looks_neutral_and_is_not(op: TypedOp, value: Any, left: bool) -> None:
    simple = checked_declutter(_with_constant("B,3,f32", op, value, left=left), {"B": 2})
    assert len(operators(simple)) == 2


def test_a_neutral_element_that_stretches_stays() -> None:
    model, (x,) = sources("1,3,f32")
    zeros = model.add_const("zeros", np.zeros((4, 3), np.float32))
    model.set_outputs([wire_one(model, "out", ops.Add(), x, zeros)])
    assert len(operators(checked_declutter(model))) == 1


@pytest.mark.parametrize(
    ("fact", "op", "value", "wanted"),
    [
        ("B,3,i32", ops.Mul(), 0, ["MultiBroadcastTo"]),
        ("B,3,bool", ops.And(), False, ["MultiBroadcastTo"]),
        ("B,3,bool", ops.Or(), True, ["MultiBroadcastTo"]),
        ("B,3,f32", ops.Mul(), 0, ["Exp", "Mul"]),
    ],
    ids=str,
)
def test_absorbing_elements(fact: str, op: TypedOp, value: Any, wanted: list[str]) -> None:
    assert operators(checked_declutter(_with_constant(fact, op, value), {"B": 2})) == wanted


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        (ops.Add(), "Add"),
        (ops.Sub(), "SubF"),
        (ops.Lt(), "Gt"),
        (ops.Ge(), "Le"),
        (ops.Div(), "Div"),
        (ops.Pow(), "Pow"),
    ],
    ids=str,
)
def test_a_constant_goes_second_where_an_operator_wants_it_there(op: TypedOp, wanted: str) -> None:
    simple = checked_declutter(_with_constant("B,3,f32", op, 3, left=True), {"B": 2})
    node = simple.node_by_name("out")
    assert node.op.name == wanted
    constant_slots = [slot for slot, outlet in enumerate(node.inputs) if simple.constant(outlet) is not None]
    assert constant_slots == ([0] if wanted in ("Div", "Pow") else [1])


def test_the_stretched_operand_goes_second() -> None:
    model, (x, y) = sources("B,1,f32", "B,3,f32")
    model.set_outputs([wire_one(model, "out", ops.Sub(), x, y)])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == ["SubF"]


def test_constant_factors_are_merged() -> None:
    model, (x,) = sources("B,3,f32")
    y = wire_binary(model, "a", ops.Mul(), x, model.add_const("c", np.float32([2, 3, 4])))
    model.set_outputs([wire_binary(model, "out", ops.Mul(), y, model.add_const("d", np.float32(0.3)))])
    assert operators(checked_declutter(model, {"B": 2})) == ["Mul"]


def test_factors_whose_product_leaves_the_type_are_not_merged() -> None:
    model, (x,) = sources("B,3,f16")
    y = wire_binary(model, "a", ops.Mul(), x, model.add_const("c", np.float16(1e-4)))
    model.set_outputs([wire_binary(model, "out", ops.Mul(), y, model.add_const("d", np.float16(1e-4)))])
    assert operators(checked_declutter(model, {"B": 2})) == ["Mul", "Mul"]


def test_a_factor_of_a_product_that_is_read_elsewhere_is_not_merged() -> None:
    model, (x,) = sources("B,3,f32")
    y = wire_binary(model, "a", ops.Mul(), x, model.add_const("c", np.float32(3)))
    model.set_outputs([wire_binary(model, "out", ops.Mul(), y, model.add_const("d", np.float32(0.3))), y])
    assert operators(checked_declutter(model, {"B": 2})) == ["Mul", "Mul"]


def test_a_product_with_itself_is_a_square() -> None:
    model, (x, y) = sources("B,3,f32", "B,3,f32")
    model.set_outputs([wire_one(model, "a", ops.Mul(), x, x), wire_one(model, "b", ops.Mul(), x, y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Square", "Mul"]


@pytest.mark.parametrize(
    ("fact", "op", "value", "wanted"),
    [
        ("B,3,i32", ops.Mul(), 8, "ShiftLeft"),
        ("B,3,i32", ops.Mul(), 6, "Mul"),
        ("B,3,u8", ops.Div(), 4, "ShiftRight"),
        ("B,3,i32", ops.Div(), 4, "Div"),
    ],
    ids=str,
)
def test_powers_of_two(fact: str, op: TypedOp, value: int, wanted: str) -> None:
    assert operators(checked_declutter(_with_constant(fact, op, value), {"B": 2})) == [wanted]


def test_a_division_by_a_constant_is_a_product() -> None:
    assert operators(checked_declutter(_with_constant("B,3,f32", ops.Div(), 3), {"B": 2})) == ["Exp", "Mul"]


@pytest.mark.parametrize(("dividend", "wanted"), [(1, "Recip"), (2, "Div"), ([1, 1, 2], "Div")], ids=str)
def test_one_divided_is_a_reciprocal(dividend: Any, wanted: str) -> None:
    simple = checked_declutter(_with_constant("B,3,f32", ops.Div(), dividend, left=True), {"B": 2})
    assert operators(simple) == ["Exp", wanted]


@pytest.mark.parametrize("divisor", [0.0, 1e-39])
def test_a_reciprocal_that_the_type_does_not_hold_is_not_taken(divisor: float) -> None:
    assert operators(checked_declutter(_with_constant("B,3,f32", ops.Div(), divisor), {"B": 2})) == ["Exp", "Div"]


def test_a_division_stays_exact_where_a_reader_jumps() -> None:
    model, (x,) = sources("B,3,f32")
    quotient = wire_binary(model, "quotient", ops.Div(), x, model.add_const("c", np.float32(49)))
    model.set_outputs([wire_one(model, "out", Floor(), quotient)])
    simple = checked_declutter(model, {"B": 1}, inputs=[np.float32([[49, 98, 147]])])
    assert operators(simple) == ["Div", "Floor"]


def test_a_division_stays_exact_where_what_hands_it_on_ends_in_a_jump() -> None:
    model, (x,) = sources("B,3,f32")
    quotient = wire_binary(model, "quotient", ops.Div(), x, model.add_const("c", np.float32(49)))
    turned = wire_one(model, "turned", MoveAxis(0, 1), quotient)
    scale, zero = (model.add_const(name, np.array(value, kind)) for name, value, kind in _PARAMETERS)
    model.set_outputs([wire_one(model, "out", QuantizeLinear(DatumType.U8), turned, scale, zero)])
    simple = checked_declutter(model, {"B": 1}, inputs=[np.float32([[24.5, 73.5, 122.5]])])
    assert "Div" in operators(simple)


_PARAMETERS: Final = (("scale", 1, np.float32), ("zero", 0, np.uint8))


@pytest.mark.parametrize(
    ("exponent", "wanted"),
    [(2, "Square"), (0.5, "Sqrt"), (-1, "Recip"), (-0.5, "Rsqrt"), (3, "PowConst"), ([1.5, 1.5, 1.5], "PowConst")],
    ids=str,
)
def test_constant_powers(exponent: Any, wanted: str) -> None:
    assert operators(checked_declutter(_with_constant("B,3,f32", ops.Pow(), exponent), {"B": 2})) == ["Exp", wanted]


def test_powers_that_differ_stay() -> None:
    assert operators(checked_declutter(_with_constant("B,3,f32", ops.Pow(), [1, 2, 3]), {"B": 2})) == ["Exp", "Pow"]
