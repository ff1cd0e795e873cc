from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant, DatumType, QuantizedType
from tract_core.errors import FactError
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import quantize
from tract_core.ops.quantize import (
    DequantizeLinear,
    LookupTable,
    OffsetI8asU8,
    OffsetU8asI8,
    QScale,
    QuantizeLinear,
    Scale,
    wire_dynamic_quantize,
)
from tract_core.runtime.plan import TypedSimplePlan

I8, U8, F32 = DatumType.I8, DatumType.U8, DatumType.F32


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (QuantizeLinear(I8), ["2,3,f32", "f32", "u8"], "the zero point is u8, wanted i8"),
        (QuantizeLinear(I8), ["2,3,f32", "i32", "i8"], "the scale is i32, floats are wanted"),
        (QuantizeLinear(I8, 1), ["2,3,f32", "2,f32", "2,i8"], "the scale is 2,f32, wanted 3 for 2,3,f32"),
        (QuantizeLinear(I8, 1), ["2,3,f32", "3,f32", "i8"], "the zero point is i8, wanted 3 for 2,3,f32"),
        (QuantizeLinear(I8, 1, 2), ["2,3,f32", "2,3,f32", "2,3,i8"], "the scale is 2,3,f32, wanted 2,2 for 2,3,f32"),
        (QuantizeLinear(I8, 5), ["2,3,f32", "3,f32", "3,i8"], "axis 5 is outside a tensor of rank 2"),
        (QuantizeLinear(F32), ["2,3,f32", "f32", "f32"], "not f32 of 2,3,f32"),
        (DequantizeLinear(F32), ["2,i8", "f32", "u8"], "the zero point is u8, wanted i8"),
        (DequantizeLinear(I8), ["2,i8", "f32", "i8"], "not i8 of 2,i8"),
        (Scale(), ["1,i32", "1,i32"], "Scale wants floats and integers, found 1,i32 and 1,i32"),
        (QScale(2**31, 0), ["1,i32"], "the multiplier 2147483648 does not fit 32 bits"),
        (QScale(1, 0), ["1,i64"], "QScale wants i32, found 1,i64"),
        (LookupTable(Constant(np.zeros(3))), ["2,u8"], r"wants 256 entries, found shape \(3,\)"),
        (LookupTable(Constant(np.zeros(256))), ["2,i32"], "wants u8 or i8, found 2,i32"),
        (OffsetI8asU8(), ["2,u8"], "OffsetI8asU8 wants i8, found 2,u8"),
    ],
)
def test_refusals_say_what_was_found(op: TypedOp, inputs: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in inputs])


def test_a_quantised_type_keeps_its_values() -> None:
    kind = QuantizedType(I8, -3, 0.5)
    (moved,) = OffsetI8asU8().output_facts([TypedFact.of(kind, (2,))])
    assert moved.datum_type == QuantizedType(U8, 125, 0.5)
    (back,) = OffsetU8asI8().output_facts([moved])
    assert back.datum_type == kind


@pytest.mark.parametrize("factor", [1.0, 0.3, -0.7, 123.456, 1e-6, 0.0, 1 - 2**-40])
def test_fixed_point_factors(factor: float, run_op: Callable[..., Any]) -> None:
    x = np.array([-(2**20), -77, 0, 5, 999, 2**20], np.int32)
    (found,) = run_op(QScale.of(factor), [x])
    assert np.abs(found - x * factor).max() <= 0.5 + 2**20 * abs(factor) * 2**-31


def test_a_factor_must_be_finite() -> None:
    with pytest.raises(FactError, match="inf cannot be written with a fixed point"):
        QScale.of(float("inf"))


def test_axes_of_parameters() -> None:
    subject = QuantizeLinear(I8, 1)
    facts = [parse_typed_fact(fact) for fact in ("B,S,f32", "S,f32", "S,i8")]
    mapping = quantize.linear_axes(subject, facts, subject.output_facts(facts))
    assert mapping.track(("in", 1, 0), ("out", 0)) == 1
    assert mapping.track(("in", 0, 0), ("out", 0)) == 0


def quantized_with_onnx(kind: Any, axis: int | None) -> list[Any]:
    random = np.random.default_rng(9)
    info = np.iinfo(kind)
    shape = () if axis is None else (4,)
    return [
        random.normal(0, 30, (3, 4)).astype(np.float32),
        random.uniform(0.1, 2, shape).astype(np.float32),
        random.integers(info.min // 2, info.max // 2, shape).astype(kind),
    ]


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16])
def test_linear_agrees_with_onnx(
    run_op: Callable[..., Any], run_onnx: Callable[..., Any], kind: Any, axis: int | None
) -> None:
    x, scale, zero = quantized_with_onnx(kind, axis)
    attributes = {} if axis is None else {"axis": axis}
    wanted = run_onnx("QuantizeLinear", [x, scale, zero], opset=21, **attributes)[0]
    (found,) = run_op(QuantizeLinear(DatumType.from_numpy(kind), axis or 0), [x, scale, zero])
    np.testing.assert_array_equal(found, wanted)
    real = run_onnx("DequantizeLinear", [wanted, scale, zero], opset=21, **attributes)[0]
    (back,) = run_op(DequantizeLinear(F32, axis or 0), [wanted, scale, zero])
    np.testing.assert_allclose(back, real, rtol=1e-6)


def test_blocks_agree_with_onnx(run_op: Callable[..., Any], run_onnx: Callable[..., Any]) -> None:
    random = np.random.default_rng(11)
    x = random.normal(0, 30, (3, 6)).astype(np.float32)
    scale = random.uniform(0.1, 2, (3, 2)).astype(np.float32)
    zero = random.integers(-60, 60, (3, 2)).astype(np.int8)
    wanted = run_onnx("QuantizeLinear", [x, scale, zero], opset=21, axis=1, block_size=3)[0]
    np.testing.assert_array_equal(run_op(QuantizeLinear(I8, 1, 3), [x, scale, zero])[0], wanted)


@pytest.mark.parametrize("values", [[-3.0, 0.5, 7.0], [2.0, 3.0, 9.0], [-8.0, -2.0, -1.0], [0.0, 0.0, 0.0]])
def test_dynamic_quantisation_agrees_with_onnx(run_onnx: Callable[..., Any], values: list[float]) -> None:
    x = np.array([values, [v / 3 for v in values]], np.float32)
    model = TypedModel()
    source = model.add_source("x", parse_typed_fact("B,3,f32", model.symbols))
    model.set_outputs(wire_dynamic_quantize(model, "q", source))
    assert [str(model.outlet_fact(outlet)) for outlet in model.outputs] == ["B,3,u8", "f32", "u8"]
    found = TypedSimplePlan(model).run([x])
    wanted = run_onnx("DynamicQuantizeLinear", [x], outputs=3, opset=11)
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6)
    np.testing.assert_array_equal(found[2], wanted[2])
