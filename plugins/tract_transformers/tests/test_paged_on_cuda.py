"""Kernels of attention over pages: what becomes of them on each architecture, and where pages take many bytes."""

from __future__ import annotations

import pytest
from test_paged_attention import model_of
from tract_cuda.binding import bind_launch
from tract_cuda.compile import compiled
from tract_cuda.language.arch import ARCHS, Arch
from tract_cuda.lowering import Target
from tract_cuda.program import CudaProgram, launches_in, storages_of
from tract_cuda.ptx import written
from tract_cuda.testing.static_facts import facts, ptxas
from tract_transformers.ops.paged_attention import PagedAttention

from tract_core.data import DatumType

SIZES = {
    "groups of 4": (PagedAttention(0.1), (8, 4, 128, 128)),
    "groups of 8, in f16": (PagedAttention(0.1, sinks=True, kept=DatumType.F16), (8, 8, 64, 64)),
    "wide heads with a cap": (PagedAttention(0.1, 30.0, 512, kept=DatumType.BF16), (4, 8, 256, 256)),
    "each head by itself": (PagedAttention(0.1), (32, 1, 128, 128)),
    "in bytes": (PagedAttention(0.1, kept=DatumType.I8), (8, 4, 128, 128)),
    "one head for all": (PagedAttention(0.1), (1, 16, 576, 512)),
}
"""As language models have them."""

REGISTERS = 112
"""Of a thread, at most: so that two blocks have room on a multiprocessor."""


def program_of(name: str, arch: Arch) -> CudaProgram:
    op, sizes = SIZES[name]
    return compiled(model_of(op, *sizes).typed, Target(arch, 132)).program


@pytest.mark.skipif(ptxas() is None, reason="wants ptxas, as in the wheel nvidia-cuda-nvcc")
@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.parametrize("name", SIZES)
def test_kernels_have_registers_and_shared_memory_enough(name: str, arch: Arch) -> None:
    kernels = {step.kernel for step in launches_in(program_of(name, arch).steps)}
    assert len(kernels) >= 5
    for kernel in kernels:
        ptx = written(kernel, arch)
        found = facts(ptx, arch)
        assert (found.spilled, found.stack) == (0, 0)
        assert found.registers <= REGISTERS
        assert ptx.shared_bytes <= 24 << 10


@pytest.mark.parametrize("room", [2, 2048])
def test_positions_in_more_bytes_than_i32_reaches_are_i64(room: int) -> None:
    program = program_of("each head by itself", ARCHS[0])
    symbols = {"T": 1, "R": 1, "M": 1, "C": 1, "N": room}
    found = {}
    for step in launches_in(program.steps):
        addresses = dict.fromkeys(storages_of(step), 0)
        bound = bind_launch(step, program, addresses, symbols)
        assert bound is not None
        found[step.kernel.name] = bound.wide
    pages = {"copy_pages", "store_pages", "paged_attention"}  # 32 heads * 64 positions * 128 numbers * 4 bytes a page
    assert {name for name, wide in found.items() if wide} == (pages if room > 2 else set())
