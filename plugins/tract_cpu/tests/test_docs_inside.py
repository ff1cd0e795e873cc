"""What ``docs/inside/cpu.md`` prints of the passes is what they give; ``TRACT_WRITE_GOLDEN=1`` writes it anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import tract_cpu.caches
from golden_models import GOLDEN
from tract_cpu.compile import COMPILE, after
from tract_cpu.target import Target
from tract_llvm.isa import ISAS

PAGE = Path(__file__).parents[3] / "docs" / "inside" / "cpu.md"
BLOCK = re.compile(r"^```text after=(\w+) of=(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
AVX512 = next(isa for isa in ISAS if isa.name == "avx512")


def true_block(block: re.Match[str]) -> str:
    name, model, _ = block.groups()
    text = after(name, GOLDEN[model](), Target(AVX512, 2)).text()
    return f"```text after={name} of={model}\n{text}```"


def test_the_texts_on_the_page_are_those_of_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tract_cpu.caches, "sizes_of_caches", lambda: {"L1": 32 << 10, "L2": 1 << 20})
    tract_cpu.caches.caches.cache_clear()
    page = PAGE.read_text()
    found = BLOCK.sub(true_block, page)
    tract_cpu.caches.caches.cache_clear()
    if os.environ.get("TRACT_WRITE_GOLDEN"):
        PAGE.write_text(found)
    assert len(BLOCK.findall(page)) >= len(COMPILE) - 1
    assert PAGE.read_text() == found


def test_the_page_names_every_pass_and_every_folder() -> None:
    page, folder = PAGE.read_text(), Path(tract_cpu.caches.__file__).parent
    assert all(re.search(rf"\b{name}\b", page) for name in COMPILE)
    decides = (
        "draft",
        "group",
        "kernels",
        "lay_out",
        "lower",
        "native_form",
        "place",
        "products",
        "program",
        "schedule",
    )
    assert all((folder / name).is_dir() and f"tract_cpu/{name}" in page for name in decides)
    assert len(page.splitlines()) <= 150
