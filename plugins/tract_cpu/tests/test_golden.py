"""What the compiler decides for small models, as text: it changes only where a decision does, and is read then.

``TRACT_WRITE_GOLDEN=1`` writes the texts anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import tract_cpu.caches
from golden_models import GOLDEN
from tract_cpu.compile import COMPILE, after, compiled
from tract_cpu.program.check import faults
from tract_cpu.target import Target
from tract_llvm.isa import ISAS, Isa

FOLDER = Path(__file__).parent / "golden"
TARGETS = [isa for isa in ISAS if isa.name in {"avx2", "avx512", "neon"}]
THREADS = 2


@pytest.fixture(autouse=True)
def usual_caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """32 KiB and 1 MiB, whatever machine this is."""
    monkeypatch.setattr(tract_cpu.caches, "sizes_of_caches", lambda: {"L1": 32 << 10, "L2": 1 << 20})
    tract_cpu.caches.caches.cache_clear()
    yield
    tract_cpu.caches.caches.cache_clear()


def text_for(name: str, isa: Isa) -> str:
    """What each pass makes of a model, whose program has no faults."""
    target, model = Target(isa, THREADS), GOLDEN[name]()
    found = compiled(model, target)
    assert not list(faults(found.program, found.model))
    return "\n".join(f"after {name}:\n{after(name, model, target).text()}" for name in COMPILE)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda isa: isa.name)
@pytest.mark.parametrize("name", GOLDEN)
def test_the_program_is_what_it_was(name: str, isa: Isa) -> None:
    path, found = FOLDER / f"{name}.{isa.name}.txt", text_for(name, isa)
    if os.environ.get("TRACT_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found)
    assert path.read_text() == found


def test_there_are_no_others() -> None:
    wanted = {f"{name}.{isa.name}.txt" for name in GOLDEN for isa in TARGETS}
    assert {path.name for path in FOLDER.iterdir()} == wanted
