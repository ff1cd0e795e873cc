"""Kernels for processors that this machine is not: code that needs nothing but what such a processor has."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest
from tract_cpu.compile import program_of
from tract_cpu.kernels.code import code_of
from tract_cpu.kernels.conv import ConvPlan
from tract_cpu.kernels.kernel import Kernel, KernelPlan
from tract_cpu.kernels.matmul import MatMulPlan
from tract_cpu.kernels.squares import TOGETHER, pairs_of
from tract_cpu.kernels.winograd import WinogradPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.target import Rounding, Target
from tract_llvm.elements.plan_text import plan_text
from tract_llvm.isa import ISAS, Isa
from tract_llvm.language.function import Function
from tract_llvm.language.types import F32, INDEX, POINTER
from tract_llvm.objects.library import module_text
from tract_llvm.objects.linker import linked
from tract_llvm.objects.target import assembly, object_code

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import EinSum
from tract_core.ops.pool_spec import DataFormat, PoolSpec, SameUpper
from tract_core.ops.recurrent_wiring import RecurrentInputs, RecurrentOptions, wire_lstm
from tract_core.plugins import default_registry
from tract_core.testing.conformance.selection import all_cases

NEON = next(one for one in ISAS if one.name == "neon")

OF_EACH_KIND = 6
"""How many kernels of one kind are compiled."""


def convolution(group: int) -> TypedModel:
    """One whose weights are part of the model, as those of the core's cases are not."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,32,16,16,f32", model.symbols))
    weights = model.add_const("weights", np.ones((32, 32 // group, 3, 3), "f4"))
    bias = model.add_const("bias", np.ones(32, "f4"))
    op = Conv(PoolSpec(DataFormat.NCHW, (3, 3), SameUpper()), group=group)
    model.set_outputs(model.wire_node("conv", op, [x, weights, bias]))
    return model


def recurrent() -> TypedModel:
    """One whose weights are part of the model."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("T,B,8,f32", model.symbols))
    weights = [model.add_const(name, np.ones((1, 32, 8), "f4")) for name in ("w", "r")]
    model.set_outputs(list(wire_lstm(model, "lstm", RecurrentOptions(), RecurrentInputs(x, *weights))))
    return model.declutter()


def kernels(isa: Isa) -> dict[str, list[KernelPlan]]:
    """Those of the core's cases, and of convolutions, by kind, in the order in which they come up."""
    found: dict[str, dict[str, KernelPlan]] = defaultdict(dict)
    registry = default_registry()
    cases = [case.model(symbolic=True, registry=registry) for case in all_cases(registry)]
    models = [(model, True) for model in [*cases, convolution(1), convolution(32), recurrent()]]
    for model, winograd in [*models, (convolution(1), False)]:
        for step in program_of(model, Target(isa, rounding=Rounding(winograd=winograd))).steps:
            if isinstance(step, NativeStep):
                found[step.kernel.name].setdefault(plan_text(step.kernel), step.kernel)
    return {name: list(plans.values()) for name, plans in found.items()}


def written(plan: KernelPlan, isa: Isa) -> str:
    """What the processor is told."""

    def emit(module: object) -> None:
        k = Kernel(module, "kernel", isa)
        plan.emit(k)
        k.finish()

    return assembly(module_text(emit), isa)


@pytest.fixture(scope="module")
def neon() -> dict[str, list[KernelPlan]]:
    return kernels(NEON)


def test_kernels_for_neon_call_nothing_that_is_not_there(neon) -> None:
    assert {"map", "rows", "matmul", "conv", "winograd", "pool", "gather"} <= neon.keys()
    for name, plans in neon.items():
        for plan in plans[:: max(len(plans) // OF_EACH_KIND, 1)]:
            called = set(re.findall(r"^\s+bl?\s+([A-Za-z_]\w*)", written(plan, NEON), re.MULTILINE))
            assert called <= {"memset", "memcpy"}, (name, plan_text(plan))


def test_kernels_for_arm_are_linked_without_llvm(neon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to be called: this processor may be another."""
    monkeypatch.setattr("tract_llvm.objects.linker.architecture", lambda: "aarch64")
    monkeypatch.setattr("tract_llvm.objects.executable._tell_of_writes", lambda *_: None)
    codes = [code_of(one, NEON) for plans in neon.values() for one in plans[:: max(len(plans) // OF_EACH_KIND, 1)]]
    found = linked([(one.name, object_code(module_text(one.emit), NEON)) for one in codes])
    assert len(found) == len(codes) > 3 * OF_EACH_KIND


def sums_of(plan: MatMulPlan | ConvPlan | WinogradPlan) -> int:
    """How many vectors of sums a tile has."""
    if not isinstance(plan, ConvPlan | WinogradPlan):
        return plan.tile.rows * plan.tile.vectors
    is_in_squares = isinstance(plan, ConvPlan) and plan.squares
    return plan.vectors * (TOGETHER * pairs_of(plan.columns) if is_in_squares else plan.columns)


@pytest.mark.parametrize("kind", [MatMulPlan, ConvPlan, WinogradPlan])
def test_products_for_neon_are_vectors_that_are_multiplied_and_added_at_once(neon, kind) -> None:
    floats = [one for plans in neon.values() for one in plans if isinstance(one, kind) and "f32" in plan_text(one)]
    text = written(max(floats, key=sums_of), NEON)
    assert len(re.findall(r"^\s+fmla\s+v\d+\.4s", text, re.MULTILINE)) >= 16


@pytest.mark.parametrize("name", ["avx2", "avx512"])
def test_vectors_that_there_is_no_register_for_begin_where_a_line_does(name) -> None:
    isa = next(one for one in ISAS if one.name == name)
    lanes, count = isa.lanes(F32.bits), isa.registers + 4

    def emit(module: object) -> None:
        f = Function(module, "sums", isa, [POINTER, INDEX])
        data = f.buffer(0, F32)
        sums = [f.variable(data.vector(number * lanes, lanes)) for number in range(count)]
        with f.loop("round", f.argument(1)) as place:
            for total in sums:
                total.value = data[place].splat(lanes).times_plus(total.value, total.value)
        for number, total in enumerate(sums):
            data.put(number * lanes, total.value)
        f.finish()

    text = assembly(module_text(emit), isa)
    spilled = set(re.findall(r"(vmov\w+)\s+%[yz]mm\d+, \d*\(%r[sb]p\)", text))
    assert spilled == {"vmovaps"}


@pytest.mark.parametrize("rows", [1, 5, 8, 16, 22, 24, 128])
@pytest.mark.parametrize("name", ["avx2", "avx512", "neon"])
def test_sums_stay_in_registers(name, rows) -> None:
    """No loop that multiplies writes a vector to the stack, in products with as many rows."""
    isa = next(one for one in ISAS if one.name == name)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"{rows},256,f32", model.symbols))
    weights = model.add_const("weights", np.ones((256, 256), "f4"))
    model.set_outputs(model.wire_node("y", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32), [x, weights]))
    (plan,) = [one.kernel for one in program_of(model, Target(isa)).steps if isinstance(one, NativeStep)]
    blocks = re.split(r"(?m)^(?=\.LBB\w+:)", written(plan, isa))
    loops = [one for one in blocks if len(re.findall(r"vfmadd|\bfmla\b", one)) >= 4]
    assert loops
    for one in loops:
        assert not re.search(r"vmov\w+\s+%[xyz]mm\d+, -?\d*\(%r[sb]p\)|st[rp]\s+q\d+.*\[(sp|x29)", one), one
