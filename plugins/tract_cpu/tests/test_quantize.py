"""Operators of quantised networks, against what the core says that they are."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.elements import quantize

from tract_core.data import Constant, DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops import quantize as core
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Mul
from tract_core.ops.quantize import LookupTable, OffsetI8asU8, OffsetU8asI8, QScale, Scale, Ties, offset, q_scale
from tract_core.ops.quantize import scale as scaled
from tract_core.ops.wiring import wire_one
from tract_core.runtime.reference import ReferenceRuntime

BYTES = np.arange(256, dtype=np.uint8)


SCALES = [QScale(2**30, shift, ties) for ties in Ties for shift in (0, 3)]
SCALES += [
    QScale(multiplier, shift) for multiplier in (1, 1 - 2**31, 1518500250) for shift in (-70, -31, -30, 5, 31, 32)
]


@pytest.mark.parametrize("op", SCALES, ids=str)
def test_fixed_point_products_round_as_they_say(elements, op) -> None:
    some = [
        0,
        1,
        -1,
        2,
        -2,
        3,
        5,
        -5,
        7,
        1 << 10,
        3 << 20,
        (1 << 31) - 1,
        -(1 << 31),
        1 - (1 << 31),
        1 << 30,
        -(1 << 30),
    ]
    x = np.array(some, np.int32)
    found = elements(lambda value: quantize.q_scale(op, value), x, np.int32, 8)
    np.testing.assert_array_equal(found, q_scale(op, x))


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4"])
def test_real_factors_round_to_even_and_saturate(elements, dtype, lanes) -> None:
    ends = np.iinfo(dtype)
    integers = np.array([0, 1, 2, 3, 5, 7, ends.max, ends.min], dtype)
    factors = np.array([0.5, -0.5, 1.5, 0.1, 1e9, -1e9, np.inf, np.nan], np.float32)
    factor, x = np.repeat(factors, 8), np.tile(integers, 8)
    found = elements(lambda a, b: quantize.scale(Scale(), a, b), (factor, x), dtype, lanes)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, scaled(Scale(), factor, x))


def test_offsets_flip_the_top_bit(elements) -> None:
    found = elements(lambda x: quantize.offset_to_i8(OffsetU8asI8(), x), BYTES, np.int8, 16)
    np.testing.assert_array_equal(found, offset(OffsetU8asI8(), BYTES))
    back = elements(lambda x: quantize.offset_to_u8(OffsetI8asU8(), x), found, np.uint8, 16)
    np.testing.assert_array_equal(back, BYTES)


ENDS = [0.0, -0.0, 0.5, 1.5, -2.5, 127.5, -128.5, 300.0, -300.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 3e9, 1e-30]


@pytest.mark.parametrize("to", ["i1", "u1", "i2", "u2", "i4"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_quantised_numbers_round_to_even_and_stop_at_the_ends(elements, dtype, to) -> None:
    ends = np.iinfo(to)
    some = np.array(ENDS if dtype != "i4" else [0, 1, -1, 2**31 - 1, -(2**31), 255, 128, -129] * 2, dtype)
    zeros, scales = np.array([0, 1, ends.max, ends.min], to), np.array([1.0, 0.1, 3.0, 1e-6], "f4")
    x, zero, scale = np.repeat(some, 16), np.tile(np.repeat(zeros, 4), 16), np.tile(scales, 64)
    op = core.QuantizeLinear(DatumType.from_numpy(np.dtype(to)))
    found = elements(lambda *operands: quantize.quantize(op, *operands), (x, scale, zero), to, 16)
    with np.errstate(all="ignore"):
        wanted = [core.quantize(op, *operands) for operands in zip(x, scale, zero, strict=True)]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("to", ["f4", "f8"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4"])
def test_differences_from_the_zero_point_are_exact(elements, dtype, to) -> None:
    ends = np.iinfo(dtype)
    some = np.array([0, 1, 2, ends.max, ends.min, ends.max - 1, ends.min + 1, 5], dtype)
    x, zero, scale = np.repeat(some, 8), np.tile(some, 8), np.resize(np.array([0.1, 3.0, 1e-6], "f4"), 64)
    op = core.DequantizeLinear(DatumType.from_numpy(np.dtype(to)))
    found = elements(lambda *operands: quantize.dequantize(op, *operands), (x, scale, zero), to, 16)
    wanted = [core.dequantize(op, *operands) for operands in zip(x, scale, zero, strict=True)]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["u8", "i8"])
@pytest.mark.parametrize("entries", [BYTES[::-1], np.arange(256) - 128, np.linspace(-3, 3, 256, dtype="f4"), BYTES > 7])
def test_every_byte_is_looked_up_in_a_table(isa, kind, entries) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"N,2,{kind}", model.symbols))
    model.set_outputs(model.wire_node("y", LookupTable(Constant(entries)), [x]))
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    for count in (128, 1, 0):
        given = BYTES.reshape(-1, 2)[:count]
        (found,) = plan.spawn().run([given.view(kind.replace("8", "1"))])
        np.testing.assert_array_equal(found, entries[given], strict=True)


@pytest.mark.parametrize("shape", [(3, 5, 70), (2, 9000, 3), (1, 4, 1), (2, 0, 3)])
def test_turned_bytes_are_looked_up_where_they_lie(isa, shape) -> None:
    model, entries = TypedModel(), BYTES[::-1] ^ 0x5A
    x = model.add_source("x", parse_typed_fact("A,B,C,u8", model.symbols))
    tables = [
        wire_one(model, f"table {axis}", LookupTable(Constant(entries)), found)
        for axis, found in enumerate(
            [x, wire_one(model, "outer", MoveAxis(0, 1), x), wire_one(model, "inner", MoveAxis(1, 2), x)]
        )
    ]
    model.set_outputs(tables)
    given = np.random.default_rng(0).integers(0, 255, shape, "u1", endpoint=True)
    wanted = [entries[one] for one in (given, given.transpose(1, 0, 2), given.transpose(0, 2, 1))]
    for found, other in zip(CpuPlan(model, isa).spawn().run([given]), wanted, strict=True):
        np.testing.assert_array_equal(found, other)


def in_blocks(fact: str, axis: int, kind: str) -> TypedModel:
    """From a turned tensor in blocks of three to floats, times others, and back; gives the floats too."""
    sizes, to, model = fact.split(","), DatumType.parse(kind), TypedModel()
    blocks = ",".join(f"({size}+2)/3" if place == axis else size for place, size in enumerate(sizes))
    facts = [f"{sizes[1]},{sizes[0]},{kind}", f"{blocks},f32", f"{blocks},{kind}", f"{fact},f32"]
    x, scale, zero, factor = (
        model.add_source(f"x{slot}", parse_typed_fact(one, model.symbols)) for slot, one in enumerate(facts)
    )
    x = wire_one(model, "turned", MoveAxis(0, 1), x)
    wide = wire_one(model, "wide", core.DequantizeLinear(DatumType.F32, axis, 3), x, scale, zero)
    product = wire_one(model, "product", Mul(), wide, factor)
    narrow = wire_one(model, "narrow", core.QuantizeLinear(to, axis, 3), product, scale, zero)
    model.set_outputs([product, narrow])
    return model


@pytest.mark.parametrize(("axis", "kind"), [(0, "i4"), (1, "f8e4m3fn")])
def test_blocks_of_one_scale_are_native_with_what_comes_behind(isa, axis, kind) -> None:
    """Of sizes that the blocks do not divide too, known or not."""
    dtype, rng = DatumType.parse(kind).numpy, np.random.default_rng(0)
    for fact, shapes in ("A,B", [(7, 20), (6, 1), (0, 2), (9, 3)]), ("7,20", [(7, 20)]), ("6,3", [(6, 3)]):
        model = in_blocks(fact, axis, kind)
        plan, reference = CpuPlan(model, isa), ReferenceRuntime().prepare(model)
        assert {one.how for one in plan.explain().placements} == {"view", "map"}
        for shape in shapes:
            parts = [-(-size // 3) if place == axis else size for place, size in enumerate(shape)]
            arrays = [rng.integers(0, 8, shape[::-1]).astype(dtype), rng.uniform(0.1, 2, parts).astype("f4")]
            arrays += [rng.integers(0, 8, parts).astype(dtype), rng.standard_normal(shape).astype("f4")]
            for found, wanted in zip(plan.spawn().run(arrays), reference.spawn().run(arrays), strict=True):
                np.testing.assert_array_equal(found, wanted)
