"""Convolutions of bytes where only pairs of 16-bit integers are multiplied: exact, from copies that hold 16 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from test_dots import values
from test_tile_conv import conv, exact_convolutions
from tract_cpu.ahead.targets import SIMD128
from tract_cpu.compile import program_of
from tract_cpu.kernels.conv import ConvPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.target import Target
from tract_llvm.isa import ISAS, Isa, portable
from tract_llvm.language.types import I16, I32

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Sub
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv, KernelFormat, reference
from tract_core.ops.einsum import EinSum
from tract_core.ops.pool_spec import DataFormat, PoolSpec, SameUpper

PLAIN: Final = portable(SIMD128)
BYTES: Final = [("u1", "i1"), ("i1", "u1"), ("i1", "i1"), ("u1", "u1")]
SHAPES: Final = [(1, 4, 3), (2, 1, 1), (3, 8, 3), (5, 3, 2), (16, 33, 1), (33, 7, 3)]
"""Input channels, output channels, and the side of the window."""


def convs_of(model: TypedModel) -> list[ConvPlan]:
    steps = program_of(model, Target(SIMD128)).steps
    return [one.kernel for one in steps if isinstance(one, NativeStep) and isinstance(one.kernel, ConvPlan)]


@pytest.mark.parametrize(("left", "right"), BYTES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_convolutions_of_bytes_are_exact(left: str, right: str, shape: tuple[int, int, int]) -> None:
    for model in exact_convolutions((left, right), shape, (7, 12, 9, 1), PLAIN):
        assert [(one.element, one.grouping and one.grouping.size) for one in convs_of(model)] == [(I16, 2)]


@pytest.mark.parametrize("groups", [2, 8])
def test_groups_of_channels_are_exact(groups: int) -> None:
    """With eight, each channel is summed alone."""
    weights, bias = values("i1", (8, 8 // groups, 3, 3), 0), np.zeros(8, "i4")
    pool = PoolSpec(DataFormat.NCHW, (3, 3), SameUpper())
    op, model = Conv(pool, KernelFormat.OIHW, groups), TypedModel()
    given = [model.add_source("x", parse_typed_fact("2,8,6,6,u8")), model.add_const("w", weights)]
    model.set_outputs(model.wire_node("conv", op, [*given, model.add_const("b", bias)]))
    x = values("u1", (2, 8, 6, 6), 1)
    wanted = reference(op, x.astype("i8"), weights.astype("i8"), bias.astype("i8"))
    np.testing.assert_array_equal(CpuPlan(model, PLAIN).spawn().run([x])[0], wanted.astype("i4"))


def test_a_matrix_times_channels_is_exact() -> None:
    weights, x = values("i1", (9, 7), 0), values("u1", (2, 7, 5), 1)
    model = TypedModel()
    given = [model.add_const("w", weights), model.add_source("x", parse_typed_fact("2,7,5,u8"))]
    model.set_outputs(model.wire_node("y", EinSum(AxesMapping.parse("oi,bip->bop"), DatumType.I32), given))
    wanted = np.einsum("oi,bip->bop", weights.astype("i8"), x.astype("i8")).astype("i4")
    np.testing.assert_array_equal(CpuPlan(model, PLAIN).spawn().run([x])[0], wanted)


def conv_of_differences(fact: str, weights: np.ndarray, bias: np.ndarray, stride: int = 1) -> TypedModel:
    """Of bytes less a zero point that only a run knows: from -255 to 255, in integers of 32 bits."""
    model, pool = TypedModel(), PoolSpec(DataFormat.NCHW, (3, 3), SameUpper(), strides=(stride, stride))
    given = [model.add_source("x", parse_typed_fact(fact)), model.add_source("zero", parse_typed_fact("1,1,1,1,u8"))]
    wide = [model.wire_node(f"wide{n}", Cast(DatumType.I32), [one])[0] for n, one in enumerate(given)]
    factors = [*model.wire_node("less", Sub(), wide), model.add_const("w", weights)]
    op = Conv(pool, KernelFormat.OIHW)
    model.set_outputs(model.wire_node("conv", op, [*factors, model.add_const("b", bias)]))
    return model


def assert_exact(plan: CpuPlan, model: TypedModel, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> None:
    """Of `conv_of_differences`, at the ends of its zero point and in the middle."""
    op = next(node.op for node in model.nodes if isinstance(node.op, Conv))
    for zero in (0, 128, 255):
        wanted = reference(op, x.astype("i8") - zero, weights.astype("i8"), bias.astype("i8"))
        (found,) = plan.spawn().run([x, np.full((1, 1, 1, 1), zero, "u1")])
        np.testing.assert_array_equal(found, wanted.astype("i4"))


@pytest.mark.parametrize("isa", [portable(one) for one in (*ISAS, SIMD128)], ids=lambda one: one.name)
@pytest.mark.parametrize("channels", [16, 5, 1])
def test_integers_of_more_bits_are_copied_to_as_many_as_hold_them(isa: Isa, channels: int) -> None:
    weights, bias = values("i1", (6, channels, 3, 3), 0), values("i4", (6,), 1) >> 8
    model = conv_of_differences(f"2,{channels},7,9,u8", weights, bias, stride=2)
    plan = CpuPlan(model, isa)
    (kernel,) = [step.kernel for step in plan.steps if isinstance(step.kernel, ConvPlan)]
    in_pairs = any(one.left == I16.name and one.sums == "i32" for one in isa.dots)
    assert (kernel.element, kernel.grouping is not None) == ((I16, True) if in_pairs else (I32, False))
    assert_exact(plan, model, values("u1", (2, channels, 7, 9), 2), weights, bias)


def test_who_has_no_need_copies_nothing() -> None:
    """Bytes are read as they are where the row does not say so."""
    weights, bias = values("i1", (4, 8, 1, 1), 0), np.zeros(4, "i4")
    model = conv("1,8,5,5,u8", weights, bias)
    steps = program_of(model, Target(replace(SIMD128, widens=False))).steps
    (kernel,) = [one.kernel for one in steps if isinstance(one, NativeStep) and isinstance(one.kernel, ConvPlan)]
    assert kernel.grouping is None
