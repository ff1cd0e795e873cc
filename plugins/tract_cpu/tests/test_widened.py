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
from tract_llvm.isa import portable
from tract_llvm.language.types import I16

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
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


def test_who_has_no_need_copies_nothing() -> None:
    """Bytes are read as they are where the row does not say so."""
    weights, bias = values("i1", (4, 8, 1, 1), 0), np.zeros(4, "i4")
    model = conv("1,8,5,5,u8", weights, bias)
    steps = program_of(model, Target(replace(SIMD128, widens=False))).steps
    (kernel,) = [one.kernel for one in steps if isinstance(one, NativeStep) and isinstance(one.kernel, ConvPlan)]
    assert kernel.grouping is None
