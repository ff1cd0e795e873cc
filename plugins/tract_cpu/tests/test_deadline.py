"""The time to prepare a model is looked at while kernels are compiled; that of a run, inside of long native loops."""

from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import Future
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from tract_cpu.isa import chosen
from tract_cpu.native import compilers, library
from tract_cpu.native.batch import Batch
from tract_cpu.native.cache import Cache, Key, key_of
from tract_cpu.native.compilers import FEW_MORE, compiler

from tract_core.errors import LimitExceeded
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending

KEYS = [key_of(f"kernel {number}", chosen(""), "sources") for number in range(4)]


def done(key: Key) -> Future[bytes]:
    """A compiler that has done at once."""
    found: Future[bytes] = Future()
    found.set_result(key.digest.encode())
    return found


@pytest.mark.parametrize("deadline", [0, 0.05, 600, 1e300, inf])
def test_a_kernel_that_takes_too_long_is_not_waited_for(tmp_path: Path, deadline: float) -> None:
    def start(key: Key) -> Future[bytes]:
        return Future() if deadline < 1 and key == KEYS[1] else done(key)

    cache = Cache(tmp_path)
    with cache.claims() as claims, spending(LoadLimits(deadline_s=deadline)):
        batch = Batch(cache, claims, start)
        if deadline < 1:
            with pytest.raises(LimitExceeded, match=r"it takes longer than .* seconds"):
                batch.compiled(KEYS)
        else:
            assert batch.compiled(KEYS) == {key: key.digest.encode() for key in KEYS}
    kept = cache.find(KEYS)
    assert KEYS[1] not in kept or deadline > 1
    if deadline == 0.05:
        assert set(kept) == {KEYS[0], *KEYS[2:]}, "what was done by then is kept"
    with cache.claims() as claims:
        assert Batch(cache, claims, done).compiled(KEYS) == {key: key.digest.encode() for key in KEYS}


def test_a_kernel_that_another_process_compiles_is_not_waited_for_either(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with cache.claims() as claims, spending(LoadLimits(deadline_s=0.05)):
        claims.take = lambda _: False  # type: ignore[method-assign] # as where another process has it
        with pytest.raises(LimitExceeded, match=r"it takes longer than 0.05 seconds"):
            Batch(cache, claims, done).compiled(KEYS)


def test_no_kernel_is_written_when_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(library, "module_text", lambda emit: written.append(emit) or "")
    codes = [library.Code(key, key.digest, lambda _: None) for key in KEYS]
    found = library.Library(chosen(""), Cache(tmp_path))
    with spending(replace(DEFAULT_LIMITS, deadline_s=0)), pytest.raises(LimitExceeded):
        found.addresses(codes)
    assert not written


@pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts here")
def test_what_processes_were_asked_for_is_not_done_here_when_nobody_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the time to prepare a model is up."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nprintf '{compilers.READY.decode()}'\nexec sleep 60\n", encoding="ascii")
    os.chmod(program, stat.S_IRWXU)
    here: list[Any] = []
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(compilers, "cores_here", lambda: 4)
    monkeypatch.setattr(compilers, "object_code", lambda *given: here.append(given) or b"code")
    with compiler(FEW_MORE + 3, chosen("")) as compiles:
        asked = [compiles.start("a module") for _ in range(8)]
    assert not here
    assert not any(one.done() for one in asked)
