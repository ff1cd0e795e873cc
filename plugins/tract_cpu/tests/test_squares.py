"""Convolutions in squares of two columns and two channels, as ARM sums them: the same bits as in single sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_dots import convolution, values
from tract_cpu.compile import program_of
from tract_cpu.kernels.conv import ConvPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.target import Rounding, Target
from tract_llvm.isa import ISAS, Isa, of_this_machine, portable

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import TypedSimplePlan

SETS = [isa for isa in ISAS if any(dot.square for dot in isa.dots)]

SIZES: list[tuple[tuple[int, int, int], tuple[int, int], tuple[int, int], tuple[int, ...]]] = [
    ((16, 8, 1), (1, 1), (3, 5), ()),
    ((16, 12, 2), (3, 3), (4, 14), ()),
    ((32, 16, 1), (3, 2), (5, 13), (2, 2)),
    ((16, 40, 1), (1, 3), (2, 23), (1, 3)),
    ((12, 8, 1), (3, 3), (3, 7), ()),
    ((64, 4, 1), (1, 1), (2, 1), ()),
]
"""Channels that go in and come out, and the batch; windows, positions, strides."""


def model_of(left: str, right: str, case: int) -> TypedModel:
    channels, window, size, strides = SIZES[case]
    op, shape, kernel = convolution(channels, kernel=window, size=size, strides=strides)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(",".join([*map(str, shape), left])))
    of_sums = DatumType.BF16.numpy if left == "bf16" else np.int32
    constants = [drawn(right, kernel, 1), np.arange(kernel[0]).astype(of_sums)]
    model.set_outputs(model.wire_node("conv", op, [x, *map(model.add_const, ("w", "b"), constants)]))
    return model


def drawn(kind: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    if kind != "bf16":
        return values(kind[0] + "1", shape, seed)
    return np.random.default_rng(seed).normal(size=shape).astype(DatumType.BF16.numpy)


def without_squares(isa: Isa) -> Isa:
    return replace(isa, dots=tuple(replace(dot, square="") for dot in isa.dots))


@pytest.mark.parametrize("isa", SETS, ids=lambda isa: isa.name)
@pytest.mark.parametrize("case", range(len(SIZES)))
@pytest.mark.parametrize("kinds", [("i8", "i8"), ("u8", "i8"), ("i8", "u8"), ("bf16", "bf16")], ids="-".join)
def test_sums_in_squares_are_the_same_bits(isa: Isa, case: int, kinds: tuple[str, str]) -> None:
    model, x = model_of(*kinds, case), drawn(kinds[0], convolution_shape(case), 2)
    rounding = Rounding(winograd=False)
    sets = [portable(isa), portable(without_squares(isa)), *(one for one in of_this_machine() if one == isa)]
    wanted = TypedSimplePlan(model).run([x])[0]
    found = [CpuPlan(model, one, rounding=rounding).spawn().run([x])[0] for one in sets]
    for one in found[1:]:
        np.testing.assert_array_equal(one.view("u1"), found[0].view("u1"))
    if wanted.dtype.kind == "i":
        np.testing.assert_array_equal(found[0], wanted)
    else:
        np.testing.assert_allclose(found[0].astype("f8"), wanted.astype("f8"), rtol=2**-7, atol=2**-4)


def convolution_shape(case: int) -> tuple[int, ...]:
    channels, window, size, strides = SIZES[case]
    return convolution(channels, kernel=window, size=size, strides=strides)[1]


@pytest.mark.parametrize("isa", SETS, ids=lambda isa: isa.name)
def test_most_of_these_are_in_squares(isa: Isa) -> None:
    """But for groups of channels that come in no pairs, and positions that are alone."""
    target = Target(isa, rounding=Rounding(winograd=False))
    found = list[bool]()
    for case in range(len(SIZES)):
        steps = program_of(model_of("i8", "i8", case), target).steps
        kernels = [step.kernel for step in steps if isinstance(step, NativeStep)]
        found.append(any(isinstance(one, ConvPlan) and one.squares for one in kernels))
    assert found == [True, True, True, True, False, True]
