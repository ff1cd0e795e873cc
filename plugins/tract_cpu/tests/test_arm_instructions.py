"""What kernels for ARM tell the processor where bytes and bf16 are multiplied, counted in the assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from test_dots import attention, convolution, values
from test_other_processors import sums_of, written
from tract_cpu.compile import program_of
from tract_cpu.kernels.attention import AttentionPlan
from tract_cpu.kernels.conv import ConvPlan
from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.kernels.matmul import MatMulPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.target import Target
from tract_llvm.isa import ISAS, Isa

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum

NAMED = {isa.name: isa for isa in ISAS if isa.architecture == "aarch64"}

TYPES = {"u8": "u1", "i8": "i1"}

DOTS = {
    "neondot": {("u8", "u8"): "udot", ("u8", "i8"): "sdot", ("i8", "u8"): "udot", ("i8", "i8"): "sdot"},
    "neoni8mm": {("u8", "u8"): "udot", ("u8", "i8"): "usdot", ("i8", "u8"): "usdot", ("i8", "i8"): "sdot"},
}
"""By the types of data and weights. Without ``usdot``, the signs of data are turned over."""
DOTS["neoni8mm"]["bf16", "bf16"] = "bfdot"
DOTS |= {"sve256": DOTS["neoni8mm"], "sve512": DOTS["neondot"]}
SQUARES = {"udot": "ummla", "usdot": "usmmla", "sdot": "smmla", "bfdot": "bfmmla"}
"""Two rows and two columns at once, of the sets that have them."""
IN_SQUARES = {isa.name for isa in NAMED.values() if any(dot.square for dot in isa.dots)}


def product(left: str, right: str) -> TypedModel:
    """One with weights, and one of two inputs."""
    model = TypedModel()
    acc = DatumType.F32 if left == "bf16" else DatumType.I32
    x = model.add_source("x", parse_typed_fact(f"M,64,{left}", model.symbols))
    y = model.add_source("y", parse_typed_fact(f"64,N,{right}", model.symbols))
    weights = np.ones((64, 40), DatumType[right.upper()].numpy)
    if right != "bf16":
        weights = values(TYPES[right], (64, 40), 0)
    op = EinSum(AxesMapping.parse("mk,kn->mn"), acc)
    (first,) = model.wire_node("first", op, [x, model.add_const("w", weights)])
    model.set_outputs([first, *model.wire_node("second", op, [x, y])])
    return model


def convolved(left: str, right: str) -> TypedModel:
    op, shape, kernel = convolution((64, 64, 2), kernel=(5, 5), size=(14, 14))
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(",".join([*map(str, shape), left])))
    bf16 = DatumType.BF16.numpy
    weights = np.ones(kernel, bf16) if right == "bf16" else values(TYPES[right], kernel, 0)
    bias = np.ones(kernel[0], bf16 if right == "bf16" else "i4")
    model.set_outputs(model.wire_node("conv", op, [x, model.add_const("w", weights), model.add_const("b", bias)]))
    return model


def kernels_of(model: TypedModel, isa: Isa) -> Sequence[KernelPlan]:
    steps = program_of(model, Target(isa)).steps
    return [step.kernel for step in steps if isinstance(step, NativeStep)]


def products_of(models: Sequence[TypedModel], isa: Isa) -> Iterator[MatMulPlan | ConvPlan]:
    for model in models:
        found = [one for one in kernels_of(model, isa) if isinstance(one, MatMulPlan | ConvPlan)]
        assert found
        yield from found


def of_whole_tiles(plan: MatMulPlan | ConvPlan) -> MatMulPlan | ConvPlan:
    """Without smaller tiles, for what whole ones leave over: these may have several steps written out."""
    return replace(plan, rests=()) if isinstance(plan, MatMulPlan) else replace(plan, rest=())


def innermost(text: str, instruction: str) -> list[str]:
    """The instructions of the block that has most of these."""
    blocks = re.split(r"^\.L\w+:.*$", text, flags=re.MULTILINE)
    return max(blocks, key=lambda block: counted(block.splitlines(), instruction)).splitlines()


def counted(lines: Sequence[str], instruction: str) -> int:
    return sum(bool(re.match(rf"\s+{instruction}\s+[vz]\d+\.", line)) for line in lines)


OF_PAIRS = [(name, *pair, dot) for name, expected in DOTS.items() for pair, dot in expected.items()]


def is_only(instruction: str, lines: Sequence[str]) -> bool:
    """Whether nothing else is multiplied, and no sum is without a register, or in changing ones."""
    others = [line for line in lines if not re.match(rf"\s+{instruction}\s", line)]
    return not any(
        re.match(r"\s+(\w*mul|\w*mla|\w*mlal2?)\s+[vz]|\s+mov\s+(v\d+\.16b|z\d+\.d)|.*\[sp", line) for line in others
    )


@pytest.mark.parametrize(("name", "left", "right", "dot"), OF_PAIRS, ids=str)
def test_every_sum_of_a_tile_is_one_instruction_in_each_step(name, left, right, dot) -> None:
    """In squares, one for two sums in two steps; of columns or rows that come alone, as of those that have a pair."""
    for plan in products_of([product(left, right), convolved(left, right)], NAMED[name]):
        instruction = SQUARES[dot] if name in IN_SQUARES else dot
        inner = innermost(written(of_whole_tiles(plan), NAMED[name]), instruction)
        count = counted(inner, instruction)
        assert count >= sums_of(plan)
        assert count % sums_of(plan) == 0
        assert is_only(instruction, inner)


@pytest.mark.parametrize("name", ["neon", "neondot"])
def test_processors_without_these_are_told_no_such_thing(name) -> None:
    models = [product("u8", "i8"), convolved("i8", "i8"), product("bf16", "bf16")]
    missing = {"neon": r"[su]+dot|bfdot|\w+mmla", "neondot": r"usdot|bfdot|\w+mmla"}[name]
    for plan in products_of(models, NAMED[name]):
        assert not re.search(rf"^\s+({missing})\s", written(plan, NAMED[name]), re.MULTILINE)


def test_scores_of_attention_in_bf16_are_sums_of_pairs() -> None:
    isa = NAMED["neoni8mm"]
    (plan,) = (one for one in kernels_of(attention(40, 64, 64, 33), isa) if isinstance(one, AttentionPlan))
    assert counted(innermost(written(plan, isa), "bfdot"), "bfdot") >= 8


@pytest.mark.parametrize("name", ["neon", "sve256", "sve512"])
def test_every_sum_of_floats_is_one_instruction_in_each_step(name) -> None:
    isa = NAMED[name]
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("M,64,f32", model.symbols))
    data = model.add_source("data", parse_typed_fact("2,64,14,14,f32"))
    op = EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32)
    outputs = model.wire_node("product", op, [x, model.add_const("w", np.ones((64, 40), "f4"))])
    conv, _, kernel = convolution((64, 64, 2), kernel=(5, 5), size=(14, 14))
    weights, bias = (model.add_const(f"c{len(shape)}", np.ones(shape, "f4")) for shape in (kernel, kernel[:1]))
    model.set_outputs([*outputs, *model.wire_node("conv", conv, [data, weights, bias])])
    for plan in products_of([model], isa):
        either = "fml?a[d]?"  # SVE has one that puts the sum where a factor was
        inner = innermost(written(of_whole_tiles(plan), isa), either)
        count = counted(inner, either)
        assert count >= sums_of(plan)
        assert count % sums_of(plan) == 0
        assert is_only(either, inner)
