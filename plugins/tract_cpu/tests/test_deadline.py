"""The time to prepare a model is looked at while kernels are compiled; that of a run, inside of long native loops."""

from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import Future
from dataclasses import replace
from itertools import cycle
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen
from tract_llvm.objects import compilers, library
from tract_llvm.objects.batch import Batch
from tract_llvm.objects.compilers import FEW_MORE, compiler
from tract_llvm.objects.origins import key_of

from tract_core.cache.cache import Cache, Key
from tract_core.errors import LimitExceeded, RunError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.elementwise import Abs, Sigmoid, Tanh
from tract_core.ops.reduce import Reduce, Reducer

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

    cache = Cache(str(tmp_path))
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
    cache = Cache(str(tmp_path))
    with cache.claims() as claims, spending(LoadLimits(deadline_s=0.05)):
        claims.take = lambda _: False  # type: ignore[method-assign] # as where another process has it
        with pytest.raises(LimitExceeded, match=r"it takes longer than 0.05 seconds"):
            Batch(cache, claims, done).compiled(KEYS)


def test_no_kernel_is_written_when_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(library, "module_text", lambda emit: written.append(emit) or "")
    codes = [library.Code(key, key.digest, lambda _: None) for key in KEYS]
    found = library.Library(chosen(""), Cache(str(tmp_path)))
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


@pytest.mark.parametrize("threads", [1, 2])
def test_a_native_loop_ends_when_the_time_of_the_run_is_up(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step, one task of which takes minutes: a sum of what is in no memory."""
    monkeypatch.setattr("tract_core.limits.machine_memory", lambda: 1 << 60)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,1,f32"))
    (wide,) = model.wire_node("wide", MultiBroadcastTo((1, 1 << 36)), [x])
    model.set_outputs(model.wire_node("sum", Reduce((0, 1), Reducer.SUM), model.wire_node("tanh", Tanh(), [wide])))
    model.limits = replace(model.limits, run_deadline_s=0.2, max_tensor_bytes=1 << 60, max_run_bytes=1 << 60)
    plan = CpuPlan(model, chosen(""), threads)
    assert {one.how for one in plan.explain().placements} == {"rows", "view"}
    with pytest.raises(RunError, match=r"the run takes longer than 0\.2 seconds"):
        plan.spawn().run([np.ones((1, 1), "f4")])


def calls_of_lowering(count: int) -> int:
    """How many functions are called to decide on the kernels of a chain of operators on elements."""
    from tract_cpu.compile import program_of
    from tract_cpu.native_form.native_form import native_form
    from tract_cpu.target import Target

    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,4,f32", model.symbols))
    one = model.add_const("one", np.ones((1, 1), "f4"))
    for number, op in zip(range(count), cycle([Add(), Abs(), Sigmoid()]), strict=False):
        (x,) = model.wire_node(f"n{number}", op, [x, one] if isinstance(op, Add) else [x])
    model.set_outputs([x])
    model = native_form(model)
    calls = 0

    def count_call(_frame: Any, event: str, _what: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count_call)
    try:
        program_of(model, Target(chosen("")))
    finally:
        sys.setprofile(None)
    return calls


def test_what_a_chain_of_operators_takes_to_prepare_grows_with_its_length() -> None:
    calls_of_lowering(8)  # what is found once is known now
    short, middle, long = (calls_of_lowering(count) for count in (100, 200, 400))
    assert long - middle < 2.5 * (middle - short)
