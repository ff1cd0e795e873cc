from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import Sigmoid, Tanh
from tract_core.ops.quantize import DequantizeLinear, LookupTable, QuantizeLinear, Scale
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_binary, wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

EVERY = np.arange(256, dtype=np.uint8).reshape(2, 128)


def _parameters(model: TypedModel, scale: Any, zero: Any, kind: DatumType) -> list[OutletId]:
    return [
        model.add_const("scale", np.array(scale, np.float32)),
        model.add_const("zero", np.array(zero).astype(kind.numpy)),
    ]


def _around(kind: DatumType, to: DatumType, ops: list[TypedOp], *, scale: Any = 0.05, zero: Any = 3) -> TypedModel:
    model, (x,) = sources(f"B,128,{kind.short}")
    y = wire_one(model, "dq", DequantizeLinear(DatumType.F32, axis=1), x, *_parameters(model, scale, zero, kind))
    for count, op in enumerate(ops):
        if isinstance(op, (Add, Mul)):
            y = wire_binary(model, f"op{count}", op, y, model.add_const("c", np.float32([[0.5]])))
        else:
            y = wire_one(model, f"op{count}", op, y)
    model.set_outputs([wire_one(model, "out", QuantizeLinear(to), y, *_parameters(model, 0.05, 3, to))])
    return model


@pytest.mark.parametrize("kind", [DatumType.U8, DatumType.I8])
@pytest.mark.parametrize("to", [DatumType.U8, DatumType.I8])
@pytest.mark.parametrize("ops", [[Sigmoid()], [Tanh(), Add(), Mul()]], ids=str)
def test_arithmetic_on_bytes_is_a_table(kind: DatumType, to: DatumType, ops: list[TypedOp]) -> None:
    model = _around(kind, to, ops)
    simple = checked_declutter(model, inputs=[EVERY.view(kind.numpy)])
    assert [node.op.name for node in simple.live_nodes()] == ["TypedSource", "LookupTable"]


def test_the_table_holds_what_numpy_computes() -> None:
    simple = checked_declutter(_around(DatumType.U8, DatumType.U8, [Sigmoid()]), inputs=[EVERY])
    op = simple.node_by_name("out").op
    assert isinstance(op, LookupTable)
    real = (np.arange(256.0) - 3) * np.float32(0.05)
    wanted = np.clip(np.rint(1 / (1 + np.exp(-real)) / 0.05) + 3, 0, 255)
    np.testing.assert_array_equal(op.table.array, wanted)


def _gated(kind: DatumType, *, read_elsewhere: bool = False, other: bool = False) -> TypedModel:
    """x times its sigmoid, which is rounded to bytes itself; or times that of another tensor."""
    model, inputs = sources(f"B,128,{kind.short}", f"B,128,{kind.short}")
    x = [
        wire_one(model, f"dq{count}", DequantizeLinear(DatumType.F32), one, *_parameters(model, 0.05, 3, kind))
        for count, one in enumerate(inputs)
    ]
    gate = wire_one(model, "gate", Sigmoid(), x[int(other)])
    steps = _parameters(model, 1 / 255, 0, DatumType.U8)
    stored = wire_one(model, "stored", QuantizeLinear(DatumType.U8), gate, *steps)
    product = wire_one(
        model, "y", Mul(), x[0], wire_one(model, "open", DequantizeLinear(DatumType.F32), stored, *steps)
    )
    out = wire_one(model, "out", QuantizeLinear(DatumType.U8), product, *_parameters(model, 0.03, 9, DatumType.U8))
    model.set_outputs([out, product] if read_elsewhere else [out])
    return model


@pytest.mark.parametrize("kind", [DatumType.U8, DatumType.I8])
def test_what_is_made_of_one_byte_on_two_ways_is_one_table(kind: DatumType) -> None:
    simple = checked_declutter(_gated(kind), inputs=[EVERY.view(kind.numpy), EVERY.view(kind.numpy)])
    assert operators(simple) == ["LookupTable"]
    op = simple.node_by_name("out").op
    assert isinstance(op, LookupTable)
    real = (np.arange(256, dtype=np.uint8).view(kind.numpy).astype(np.float64) - 3) * np.float32(0.05)
    gate = np.rint(255 / (1 + np.exp(-real))) / 255
    np.testing.assert_allclose(op.table.array, np.clip(real * gate / 0.03 + 9, 0, 255), atol=0.501)


@pytest.mark.parametrize("options", [{"read_elsewhere": True}, {"other": True}], ids=str)
def test_what_others_read_or_are_part_of_is_no_table(options: dict[str, bool]) -> None:
    """The sigmoid is one; its product with what it is not made of, or what others read as numbers, is none."""
    model = _gated(DatumType.U8, **options)
    simple = checked_declutter(model, inputs=[EVERY, EVERY[:, ::-1].copy()])
    assert "Mul" in operators(simple)
    assert operators(simple).count("LookupTable") == 1


def test_a_tensor_that_is_doubled_again_and_again_is_looked_at_once() -> None:
    """Twenty sums of a tensor with itself are two to the power of twenty ways to the byte."""
    model, (x,) = sources("B,128,u8")
    y = wire_one(model, "dq", DequantizeLinear(DatumType.F32), x, *_parameters(model, 2.0**-20, 3, DatumType.U8))
    for count in range(20):
        y = wire_one(model, f"op{count}", Mul() if count % 7 == 6 else Add(), y, y)
    model.set_outputs(
        [wire_one(model, "out", QuantizeLinear(DatumType.U8), y, *_parameters(model, 1, 0, DatumType.U8))]
    )
    assert operators(checked_declutter(model, inputs=[EVERY])) == ["LookupTable"]


def test_there_and_back_is_nothing() -> None:
    simple = checked_declutter(_around(DatumType.U8, DatumType.U8, []), inputs=[EVERY])
    assert operators(simple) == ["Identity"]


@pytest.mark.parametrize(
    "model",
    [
        _around(DatumType.U8, DatumType.U8, [Softmax((1,))]),
        _around(DatumType.U8, DatumType.U8, [Sigmoid()], scale=[0.05] * 128, zero=[3] * 128),
    ],
    ids=["elements mixed", "scale per channel"],
)
def test_what_is_no_function_of_one_byte_stays(model: TypedModel) -> None:
    assert len(operators(checked_declutter(model, inputs=[EVERY]))) == 3


@pytest.mark.parametrize(
    ("kind", "factor", "wanted"),
    [("i32", 1.0, []), ("i32", 0.3, ["QScale"]), ("i8", 0.3, ["Scale"])],
)
def test_scales(kind: str, factor: float, wanted: list[str]) -> None:
    model, (x,) = sources(f"B,3,{kind}")
    number = model.add_const("factor", np.full((1, 1), factor, np.float32))
    model.set_outputs([wire_one(model, "out", Scale(), number, x)])
    given = [np.array([[7, -100, 99], [-11, 0, 5]]).astype(model.outlet_fact(x).datum_type.numpy)]
    assert operators(checked_declutter(model, inputs=given)) == (wanted or ["Identity"])


@pytest.mark.parametrize(("factor", "wanted"), [(0.3, ["Scale"]), (0.375, ["QScale"])])
def test_a_factor_of_more_digits_than_a_fixed_point_has_stays(factor: float, wanted: list[str]) -> None:
    model, (x,) = sources("B,3,i32")
    number = model.add_const("factor", np.full((1, 1), factor))
    model.set_outputs([wire_one(model, "out", Scale(), number, x)])
    given = [np.array([[457997169, -81340687, -517443283]], np.int32)]
    assert operators(checked_declutter(model, inputs=given)) == wanted


def test_weights_stay_as_small_as_they_are_stored() -> None:
    """The numbers of bytes take four times the memory; those of i32 take no more, and one number is one number."""
    for kind, shape, stays in ((DatumType.I8, (3, 4), True), (DatumType.I32, (3, 4), False), (DatumType.I8, (), False)):
        model, (x,) = sources("3,4,f32")
        weights = model.add_const("weights", np.ones(shape, kind.numpy))
        numbers = wire_one(model, "dq", DequantizeLinear(DatumType.F32), weights, *_parameters(model, 0.5, 0, kind))
        model.set_outputs([wire_binary(model, "out", Add(), x, numbers)])
        simple = checked_declutter(model, inputs=[np.zeros((3, 4), np.float32)])
        assert ("DequantizeLinear" in operators(simple)) is stays
