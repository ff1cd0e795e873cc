"""``docs/cpu.md`` says what the runtime decides."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tract_cpu.isa import ISAS

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
def test_instruction_sets_differ_in_f16_alone(generator, isa) -> None:
    here, richest = (generator.survey(one)[0] for one in (isa, ISAS[-1]))
    missing = set() if isa.half else {"f16"}
    assert {operator: kinds - missing for operator, kinds in richest.items()} == here
