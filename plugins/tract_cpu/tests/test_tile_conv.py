"""Convolutions in tiles, exact in plain operations, and what the processor is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_tiles import AMX, BYTES, PLAIN, SHORT, loops, values
from tract_cpu.compile import program_of
from tract_cpu.kernels.code import code_of
from tract_cpu.kernels.tile_conv import TileConvPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.target import Target
from tract_llvm.isa import Isa
from tract_llvm.objects.library import module_text
from tract_llvm.testing.apart import assembly_apart

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Max
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv, KernelFormat, reference
from tract_core.ops.einsum import EinSum
from tract_core.ops.pool_spec import DataFormat, PoolSpec, SameUpper, Valid

Array = np.ndarray[Any, Any]

SHAPES = [(64, 32, 1), (64, 33, 3), (80, 16, 3), (128, 40, 2), (37, 5, 3), (200, 64, 1)]
"""Input channels, output channels, and the side of the window."""


def conv(
    fact: str,
    weights: Array,
    bias: Array,
    *,
    stride: int = 1,
    valid: bool = False,
    relu: bool = False,
    layout: DataFormat = DataFormat.NCHW,
) -> TypedModel:
    """One of any number of axes. With ``relu`` it is not the last: its result is read in blocks."""
    model, window = TypedModel(), weights.shape[2:]
    pool = PoolSpec(layout, window, Valid() if valid else SameUpper(), strides=(stride,) * len(window))
    op = Conv(pool, KernelFormat.OIHW)
    given = [model.add_source("x", parse_typed_fact(fact, model.symbols)), model.add_const("w", weights)]
    (found,) = model.wire_node("conv", op, [*given, model.add_const("b", bias)])
    if relu:
        zero = model.add_const("zero", np.zeros((1, 1, 1, 1), bias.dtype))
        (found,) = model.wire_node("relu", Max(), [found, zero])
    model.set_outputs([found])
    return model


def tiled(model: TypedModel) -> list[TileConvPlan]:
    steps = program_of(model, Target(AMX)).steps
    return [one.kernel for one in steps if isinstance(one, NativeStep) and isinstance(one.kernel, TileConvPlan)]


def exact_convolutions(
    kinds: tuple[str, str], shape: tuple[int, int, int], sizes: tuple[int, int, int, int], isa: Isa
) -> Iterator[TypedModel]:
    """Convolutions of bytes, once their results are what they have to be.

    ``kinds``: of data and weights. ``shape``: as in `SHAPES`. ``sizes``: of images that are taken as they are, in steps
    of two, without a border and with what is negative cut off, and with that alone.
    """
    (left, right), (inputs, outputs, side) = kinds, shape
    weights, bias = values(right, (outputs, inputs, side, side), 0), values("i4", (outputs,), 1) >> 4
    options: list[dict[str, Any]] = [{}, {"stride": 2}, {"valid": True, "relu": True}, {"relu": True}]
    for size, more in zip(sizes, options, strict=True):
        model = conv(f"B,{inputs},{size},{size},{SHORT[left]}", weights, bias, **more)
        op = next(node.op for node in model.nodes if isinstance(node.op, Conv))
        for batch in (1, 2, 0):
            x = values(left, (batch, inputs, size, size), size)
            wanted = reference(op, x.astype("i8"), weights.astype("i8"), bias.astype("i8")).astype("i8")
            wanted = np.maximum(wanted, 0) if "relu" in more else wanted
            np.testing.assert_array_equal(CpuPlan(model, isa).spawn().run([x])[0], wanted.astype("i4"))
        yield model


@pytest.mark.parametrize(("left", "right"), BYTES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_convolutions_of_bytes_are_exact(left: str, right: str, shape: tuple[int, int, int]) -> None:
    for model in exact_convolutions((left, right), shape, (7, 17, 40, 3), PLAIN):
        assert len(tiled(model)) == 1


@pytest.mark.parametrize("shape", [(32, 40, 3), (64, 16, 1), (96, 33, 2)], ids=str)
def test_convolutions_of_bf16_are_summed_in_f32(shape: tuple[int, int, int]) -> None:
    inputs, outputs, side = shape
    random, kind = np.random.default_rng(0), ml_dtypes.bfloat16
    weights, bias = (random.standard_normal(one).astype(kind) for one in ((outputs, inputs, side, side), (outputs,)))
    for size, more in ((7, {}), (33, {"stride": 2, "relu": True})):
        model = conv(f"1,{inputs},{size},{size},bf16", weights, bias, **more)
        assert len(tiled(model)) == 1
        op = next(node.op for node in model.nodes if isinstance(node.op, Conv))
        x = random.standard_normal((1, inputs, size, size)).astype(kind)
        wide = [one.astype("f8") for one in (x, weights, bias)]
        wanted, bound = reference(op, *wide), reference(op, *map(np.abs, wide))
        wanted = np.maximum(wanted, 0) if "relu" in more else wanted
        found = CpuPlan(model, PLAIN).spawn().run([x])[0].astype("f8")
        assert np.all(np.abs(found - wanted) <= bound * 2.0**-7)


def test_channels_at_every_position_are_mixed_in_tiles() -> None:
    """A product over channels behind which positions come, one after the other in the same blocks."""
    first, second = values("i1", (70, 64), 0), values("i1", (9, 70), 1)
    model = TypedModel()
    op = EinSum(AxesMapping.parse("oc,bcp->bop"), DatumType.I32)
    x = model.add_source("x", parse_typed_fact("B,64,P,u8", model.symbols))
    (one,) = model.wire_node("one", op, [model.add_const("a", first), x])
    (narrow,) = model.wire_node("narrow", Cast(DatumType.I8), [one])
    model.set_outputs(model.wire_node("two", op, [model.add_const("b", second), narrow]))
    assert len(tiled(model)) == 2
    for positions in (1, 2, 37):
        x = values("u1", (2, 64, positions), positions)
        middle = np.einsum("oc,bcp->bop", first.astype("i8"), x.astype("i8")).astype("i1")
        wanted = np.einsum("oc,bcp->bop", second.astype("i8"), middle.astype("i8"))
        np.testing.assert_array_equal(CpuPlan(model, PLAIN, 2).spawn().run([x])[0], wanted.astype("i4"))


def test_few_channels_and_groups_of_them_are_in_no_tiles() -> None:
    assert not tiled(conv("1,16,9,9,u8", values("i1", (32, 16, 3, 3), 0), np.zeros(32, "i4")))
    assert not tiled(
        conv("1,40,9,9,bf16", np.ones((32, 40, 3, 3), ml_dtypes.bfloat16), np.zeros(32, ml_dtypes.bfloat16))
    )
    assert not tiled(conv("1,64,9,9,f32", np.ones((32, 64, 3, 3), "f4"), np.zeros(32, "f4")))


@pytest.mark.parametrize("side", [1, 3])
def test_the_processor_multiplies_as_many_tiles_as_it_loads(side: int) -> None:
    (kernel,) = tiled(conv("1,128,40,40,u8", values("i1", (64, 128, side, side), 0), np.zeros(64, "i4")))
    text = assembly_apart(module_text(code_of(kernel, AMX).emit), AMX)
    inner = [body for body in loops(text) if any("tdpbusd" in one for one in body)]
    counts = [[sum(one.startswith(code) for one in body) for code in ("tdpbusd", "tileload")] for body in inner]
    assert [4, 4] in counts
    for body in inner:
        assert not any(re.search(r"\(%r[sb]p", one) or one.startswith("tilestore") for one in body)
