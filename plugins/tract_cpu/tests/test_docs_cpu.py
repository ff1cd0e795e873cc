"""``docs/cpu.md`` says what the runtime decides."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tract_llvm.isa import ISAS

ROOT = Path(__file__).parents[3]
HINT = "run `python docs/generate_cpu.py`"


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_cpu", ROOT / "docs" / "generate_cpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_is_decided(generator) -> None:
    assert (ROOT / "docs" / "cpu.md").read_text() == generator.page(), HINT


@pytest.mark.parametrize("isa", ISAS[:-1], ids=lambda isa: isa.name)
def test_instruction_sets_compute_the_same(generator, isa) -> None:
    assert generator.survey(isa)[0] == generator.survey(ISAS[-1])[0]
