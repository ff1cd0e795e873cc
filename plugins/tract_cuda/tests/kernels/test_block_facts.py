"""What becomes of kernels that unpack blocks on each architecture: registers suffice, and codes are read in words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from executed import kernels_of
from in_blocks import FORMS, linear, product
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.language.arch import ARCHS, Arch
from tract_cuda.ptx import written
from tract_cuda.testing.static_facts import facts


def plan(form: str, rows: int, *, half: bool = False) -> KernelPlan:
    """Of a product with 4096 columns and 512 rows of depth."""
    weights = linear("u4", (4096, 512), 32, same=True, to="f16") if half else FORMS[form](4096, 512)
    (found,) = kernels_of(product(weights, np.empty((rows, 512), weights.numbers.dtype)))
    return found


PLANS = {
    "one row of u4": plan("one zero", 1),
    "four rows of u4": plan("u4", 4),
    "four rows of q4_0": plan("q4_0", 4),
    "four rows of q8_0": plan("q8_0", 4),
    "four rows of q8_1": plan("q8_1", 4),
    "tile of u4": plan("u4", 512),
    "tile of q4_0": plan("q4_0", 512),
    "halves": plan("u4", 512, half=True),
    "halves of q4_0": plan("q4_0 f16", 512),
}

REGISTERS = {
    "one row of u4": 56,
    "four rows of u4": 72,
    "four rows of q4_0": 80,
    "four rows of q8_0": 80,
    "four rows of q8_1": 72,
    "tile of u4": 128,
    "tile of q4_0": 128,
    "halves": 136,
    "halves of q4_0": 136,
}
"""How many registers kernels have at most, on any architecture."""


@pytest.mark.nvcc
@pytest.mark.parametrize(
    "arch", [one for one in ARCHS if one.name in {"sm_80", "sm_90a", "sm_100a"}], ids=lambda a: a.name
)
@pytest.mark.parametrize("name", PLANS)
def test_kernels_have_registers_enough(name: str, arch: Arch) -> None:
    found = facts(written(PLANS[name], arch), arch)
    assert (found.spilled, found.stack) == (0, 0)
    assert found.registers <= REGISTERS[name]


def instructions(name: str) -> list[str]:
    return re.findall(r"^\s*(?:@%p\d+ )?([a-z][\w.:]*)", written(PLANS[name], ARCHS[0]).text, re.MULTILINE)


def test_codes_are_read_in_words_and_unpacked_without_conversions() -> None:
    """A lane reads 16 bytes of codes at once, and nothing but scales of other types is converted."""
    one = instructions("one row of u4")
    codes, of_rows = 2, 8  # of two columns; of 32 numbers, in pieces of 4
    assert one.count("ld.global.v4.b32") == codes + of_rows
    assert not [name for name in one if name.startswith("cvt.")]


def test_halves_are_summed_on_tensor_cores() -> None:
    for name in ("halves", "halves of q4_0"):
        found = instructions(name)
        assert [one for one in found if one.startswith("mma.sync")]
        assert [one for one in found if one.startswith("cp.async")]
