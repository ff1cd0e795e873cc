"""Kernels of every instruction set, run on this machine, whether it has the set or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
from golden_models import GOLDEN
from portable_models import EXAMPLES
from tract_cpu.compile import program_of
from tract_cpu.kernels.code import code_of
from tract_cpu.native_form.native_form import native_form
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.program.text import program_text
from tract_cpu.target import Target
from tract_llvm.isa import ISAS, Isa, of_this_machine, portable
from tract_llvm.objects.library import module_text

from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]

SETS: Final = ("sse2", "avx2", "avx512", "amx", "neon", "neoni8mm")
"""Where vectors have another length, and of each family what has most; `make test-long` runs all of them."""

LOOKED_AT = [isa for isa in ISAS if isa.name in SETS or "TRACT_LONG" in os.environ]

all_sets = pytest.mark.parametrize("isa", LOOKED_AT, ids=lambda isa: isa.name)


def test_these_sets_are_there() -> None:
    assert {isa.name for isa in LOOKED_AT} >= set(SETS)


@all_sets
@pytest.mark.parametrize("name", EXAMPLES)
def test_kernels_of_every_set_are_near_the_reference_and_those_of_this_machine_the_same(name: str, isa: Isa) -> None:
    example = EXAMPLES[name]
    model = example.model()
    plan, reference = CpuPlan(model, portable(isa)), TypedSimplePlan(model)
    assert any(one.how != "numpy" for one in plan.explain().placements)
    native = CpuPlan(model, isa) if isa in of_this_machine() else None
    for sizes in example.sizes:
        inputs = example.inputs(sizes)
        with np.errstate(all="ignore"):
            wanted = reference.run(inputs)
        results = plan.spawn().run(inputs)
        for found, other in zip(results, wanted, strict=True):
            near(found, other, example.near)
        if native is not None:
            for found, other in zip(results, native.spawn().run(inputs), strict=True):
                same(found, other)


def near(found: Array, wanted: Array, tolerance: float) -> None:
    """Integers are the same, and floats off by no more than that part of the number, or of 1."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found.astype("f8"), wanted.astype("f8"), rtol=tolerance, atol=tolerance)


def same(found: Array, wanted: Array) -> None:
    """The same bits, or both no number."""
    is_number = wanted == wanted  # noqa: PLR0124 # as NumPy does not ask it of every type
    np.testing.assert_array_equal(found == found, is_number)  # noqa: PLR0124 # the same
    found, wanted = (one[is_number].view(f"u{one.itemsize}") for one in (found, wanted))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("isa", [one for one in ISAS if one.dots], ids=lambda isa: isa.name)
def test_the_examples_use_every_instruction_of_a_set(isa: Isa) -> None:
    named = (*isa.dots, *isa.tiles, *([isa.lookup] if isa.lookup else []))
    missing = {name for name in (*(one.name for one in named), *isa.scales, isa.picks, isa.picks_bytes) if name}
    for text in texts_of_kernels(isa):
        if not missing:
            break
        missing -= {name for name in missing if f"llvm.{name}" in text}
    assert not missing


def texts_of_kernels(isa: Isa) -> Iterator[str]:
    """Of all examples, as LLVM would get them."""
    for example in EXAMPLES.values():
        model = native_form(example.model())
        for step in program_of(model, Target(isa)).steps:
            if isinstance(step, NativeStep):
                yield module_text(code_of(step.kernel, isa).emit)


@all_sets
@pytest.mark.parametrize("name", GOLDEN)
def test_what_is_decided_is_the_same(name: str, isa: Isa) -> None:
    """Written out or not, and whatever processor it is for."""
    texts = set()
    for one in (isa, *(portable(isa, host) for host in ISAS)):
        model = native_form(GOLDEN[name]())
        texts.add(program_text(program_of(model, Target(one)), model))
    assert len(texts) == 1
