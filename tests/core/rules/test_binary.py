from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest

from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import binary as ops
from tract_core.ops.elementwise import Abs, Exp, Floor, Not
from tract_core.ops.wiring import wire_binary, wire_one
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.declutter import checked_declutter, operators, sources
from tract_core.testing.tolerance import bit_mismatch


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


EXTREMES: Final = [0.0, -0.0, 1.0, -3.0, 41 * 7, 1e-45, 1.1e-38, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan]


def _same_bits(model: TypedModel, simple: TypedModel, values: Sequence[float]) -> None:
    """Both models, of one input and one output, give the same numbers, to the last bit."""
    with np.errstate(over="ignore"):
        inputs = [np.array(values, model.outlet_fact(model.inputs[0]).datum_type.numpy)]
    (found,), (wanted,) = (TypedSimplePlan(one).run(inputs) for one in (simple, model))
    assert bit_mismatch(found, wanted) is None


@pytest.mark.parametrize(
    ("fact", "c", "d", "merged"),
    [
        ("S,i8", 3, 100, True),  # integers wrap around, whichever way
        ("S,f32", 2, 0.3, False),  # twice the largest number is infinite
        ("S,f32", 2, 3, True),
        ("S,f32", [4], [-1.7], True),
        ("S,f32", 3, 2, False),  # a subnormal result would be rounded twice
        ("S,f32", 0.5, 0.5, False),
        ("S,f32", -1, 0.3, True),
        ("S,f32", 0.3, -1, True),
        ("S,f32", 0.1, 3, False),
        ("S,f32", 2, 3e38, False),
        ("S,f32", 0, 2, False),
        ("S,f16", 1e-4, 1e-4, False),
    ],
    ids=str,
)
def test_constant_factors_are_merged_where_no_result_changes(fact: str, c: Any, d: Any, merged: bool) -> None:
    model, (x,) = sources(fact)
    kind = model.outlet_fact(x).datum_type.numpy
    y = wire_binary(model, "a", ops.Mul(), x, model.add_const("c", np.array(c, kind)))
    model.set_outputs([wire_binary(model, "out", ops.Mul(), y, model.add_const("d", np.array(d, kind)))])
    simple = checked_declutter(model, {"S": 2})
    assert operators(simple) == ["Mul"] * (2 - merged)
    if kind.kind == "f":
        _same_bits(model, simple, EXTREMES)


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


@pytest.mark.parametrize(
    ("fact", "divisor", "wanted"),
    [
        ("S,f32", 4, "Mul"),
        ("S,f32", [-0.125], "Mul"),
        ("S,f16", 2, "Mul"),
        ("S,f64", 2.0**1000, "Mul"),
        ("S,f32", 3, "Div"),
        ("S,f32", 41, "Div"),
        ("S,f32", 0.0, "Div"),
        ("S,f32", 2.0**127, "Div"),  # its reciprocal is subnormal
        ("S,f32", 1e-39, "Div"),
        ("S,f32", math.inf, "Div"),
    ],
    ids=str,
)
def test_a_division_is_a_product_where_the_reciprocal_is_exact(fact: str, divisor: Any, wanted: str) -> None:
    model, (x,) = sources(fact)
    kind = model.outlet_fact(x).datum_type.numpy
    model.set_outputs([wire_binary(model, "out", ops.Div(), x, model.add_const("c", np.array(divisor, kind)))])
    simple = checked_declutter(model, {"S": 2})
    assert operators(simple) == [wanted]
    _same_bits(model, simple, EXTREMES)


@pytest.mark.parametrize("divisor", [41, 49, 2])
def test_no_multiple_of_a_divisor_is_lost_before_a_jump(divisor: int) -> None:
    model, (x,) = sources("S,f32")
    quotient = wire_binary(model, "quotient", ops.Div(), x, model.add_const("c", np.float32(divisor)))
    double = wire_binary(model, "double", ops.Mul(), quotient, model.add_const("two", np.float32(2)))
    model.set_outputs([wire_one(model, "out", Floor(), double)])
    values = np.arange(3000, dtype=np.float32) * divisor
    (found,) = TypedSimplePlan(checked_declutter(model, {"S": 2})).run([values])
    np.testing.assert_array_equal(found, np.arange(3000) * 2)


@pytest.mark.parametrize(("dividend", "wanted"), [(1, "Recip"), (2, "Div"), ([1, 1, 2], "Div")], ids=str)
def test_one_divided_is_a_reciprocal(dividend: Any, wanted: str) -> None:
    simple = checked_declutter(_with_constant("B,3,f32", ops.Div(), dividend, left=True), {"B": 2})
    assert operators(simple) == ["Exp", wanted]


@pytest.mark.parametrize(
    ("exponent", "wanted"),
    [(2, "Square"), (0.5, "Sqrt"), (-1, "Recip"), (-0.5, "Rsqrt"), (3, "PowConst"), ([1.5, 1.5, 1.5], "PowConst")],
    ids=str,
)
def test_constant_powers(exponent: Any, wanted: str) -> None:
    assert operators(checked_declutter(_with_constant("B,3,f32", ops.Pow(), exponent), {"B": 2})) == ["Exp", wanted]


@pytest.mark.parametrize("exponent", [2.0, 0.5, -1.0, -0.5, 3.0, 1.0, 0.0, -3.0, math.inf, math.nan], ids=str)
def test_powers_are_those_of_c(exponent: float) -> None:
    model, (x,) = sources("S,f64")
    y = wire_one(model, "abs", Abs(), x)
    powers = [(ops.Pow(), x), (ops.Pow(), y)]
    constant = model.add_const("c", np.array([exponent]))
    model.set_outputs([wire_binary(model, f"out{n}", op, z, constant) for n, (op, z) in enumerate(powers)])
    values = [0.0, -0.0, 4.0, -4.0, 2.25, math.inf, -math.inf, math.nan, 1.0, -1.0]
    wanted = [np.array([_power(function(value), exponent) for value in values]) for function in (float, abs)]
    for one in (model, checked_declutter(model, {"S": 2})):
        found = TypedSimplePlan(one).run([np.array(values)])
        assert [bit_mismatch(*pair) for pair in zip(found, wanted, strict=True)] == [None, None]


def _power(base: float, exponent: float) -> float:
    """What Python has from C, where that is a number."""
    try:
        return math.pow(base, exponent)
    except ValueError:  # 0 to a negative power, and roots of negative numbers
        return math.nan if base else math.copysign(math.inf, base if exponent % 2 == 1 else 1.0)


def test_a_power_of_what_may_be_negative_is_no_root() -> None:
    model, (x,) = sources("B,3,f32")
    half = model.add_const("half", np.float32([[0.5]]))
    model.set_outputs([wire_one(model, "out", ops.Pow(), x, half)])
    assert operators(checked_declutter(model, {"B": 2})) == ["PowConst"]


@pytest.mark.parametrize(
    ("op", "zero", "left", "kept"),
    [
        (ops.Add(), 0.0, False, True),
        (ops.Add(), -0.0, True, False),
        (ops.Sub(), 0.0, False, False),
        (ops.Sub(), -0.0, False, True),
        (ops.SubF(), 0.0, True, False),
    ],
)
def test_a_zero_that_changes_the_sign_of_a_zero_stays(op: TypedOp, zero: float, left: bool, kept: bool) -> None:
    model, (x,) = sources("S,f32")
    constant = model.add_const("zero", np.array([zero], np.float32))
    model.set_outputs([wire_one(model, "out", op, *((constant, x) if left else (x, constant)))])
    simple = checked_declutter(model, {"S": 2})
    assert (operators(simple) != ["Identity"]) == kept
    _same_bits(model, simple, EXTREMES)


def test_powers_that_differ_stay() -> None:
    assert operators(checked_declutter(_with_constant("B,3,f32", ops.Pow(), [1, 2, 3]), {"B": 2})) == ["Exp", "Pow"]
