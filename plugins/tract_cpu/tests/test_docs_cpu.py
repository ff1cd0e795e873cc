"""``docs/cpu.md`` says what the runtime decides."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from tract_llvm.isa import ISAS

ROOT = Path(__file__).parents[3]
HINT = "run `python docs/generate_cpu.py`"
ENDS: Final = ("sse2", "amx", "neoni8mm")
SETS: Final = (*ENDS, "avx2", "neon") if "TRACT_LONG" in os.environ else ENDS
"""The least that there is, and of each family what has most; `make test-long` asks more of them."""


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_cpu", ROOT / "docs" / "generate_cpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.survey = cache(module.survey)
    return module


def test_the_page_is_what_is_decided(generator) -> None:
    assert (ROOT / "docs" / "cpu.md").read_text() == generator.page(), HINT


def test_instruction_sets_compute_the_same(generator) -> None:
    native = [generator.survey(isa)[0] for isa in ISAS if isa.name in SETS]
    assert len(native) == len(SETS)
    assert all(one == native[0] for one in native)
