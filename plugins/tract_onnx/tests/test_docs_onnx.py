"""``docs/onnx.md`` says what is registered. Its counts are those of the last run of ``docs/generate_onnx.py``."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest
from onnx_backend_suite import REFUSED, TOLERANCES, WITHOUT_BATCH

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "onnx.md").read_text()
HINT = "run `python docs/generate_onnx.py`"


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_onnx", ROOT / "docs" / "generate_onnx.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_counts(text):
    """The page, without the numbers of tests."""
    lines = re.sub(r"\| (\d+ of \d+|none) \|$", "| |", text, flags=re.MULTILINE).splitlines()
    return [line for line in lines if not re.match(r"\| (wired|decluttered|symbolic) \|", line)]


def test_the_page_is_what_is_registered(generator):
    assert without_counts(PAGE) == without_counts(generator.page({}, {})), HINT


def test_every_operator_is_there(generator):
    for domain, operators in generator.registered().items():
        _, _, section = PAGE.partition(f"### {domain}\n")
        listed = re.findall(r"^\| `(\w+)` \| (\d+) \| ([\d, ]*) \|", section.partition("\n#")[0], re.MULTILINE)
        found = {name: [int(first), *map(int, filter(None, others.split(", ")))] for name, first, others in listed}
        assert found == operators, HINT


def test_the_counts_add_up():
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    counts = {mode: Counter(passed=int(passed), refused=int(refused)) for mode, passed, refused, failed in rows}
    assert all(failed == "0" for *_, failed in rows)
    assert {mode: found["refused"] for mode, found in counts.items()} == {
        "wired": len(REFUSED),
        "decluttered": len(REFUSED),
        "symbolic": len(REFUSED) + len(WITHOUT_BATCH),
    }
    assert len({sum(found.values()) for found in counts.values()}) == 1
    assert counts["wired"]["passed"] >= 1990


def test_every_refused_test_is_named():
    for name in (*REFUSED, *WITHOUT_BATCH, *TOLERANCES):
        assert f"| `{name}` |" in PAGE, HINT


def test_a_stale_page_is_noticed(generator):
    stale = PAGE.replace("| `Softmax` | 1 |", "| `Softmax` | 7 |")
    assert stale != PAGE
    assert without_counts(stale) != without_counts(generator.page({}, {}))
