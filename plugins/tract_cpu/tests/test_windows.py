"""Models for Windows: what they give there is what the runtime gives here, to the bit.

Twice: as object files of ELF that call and are called as Windows has it, linked by our linker as Python there would do
it; and as object files of Windows, in a program that Wine runs (`make test-windows`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_networks import WORKLOADS, small_network
from linked_objects import same
from object_program import Work
from portable_models import EXAMPLES
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.targets import target_named
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen
from windows_convention import windows_object
from windows_program import COMPILER, WINE, run_on_windows

import tract_core as tract
from tract_core.model.typed import TypedModel

pytestmark = pytest.mark.skipif(
    chosen("").architecture != "x86_64", reason="calls of Windows on x86-64 are tried on such a processor"
)

NETWORKS = ("MobileNetV2", "ResNet-50", "ResNet-50 int8", "BERT-base", "LSTM", "Llama step", "policy, 32 rows")


def example(name: str, sizes: int) -> tuple[TypedModel, Sequence[np.ndarray]]:
    found = EXAMPLES[name]
    return found.model().substitute(found.sizes[sizes]), found.inputs(found.sizes[sizes])


def network(name: str) -> tuple[TypedModel, Sequence[np.ndarray]]:
    return small_network(next(one for one in WORKLOADS if one.name == name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_kinds_of_kernels_are_called_as_windows_has_it(name: str) -> None:
    model, given = example(name, -1)
    same(windows_object(model).run(*given), CpuPlan(model, chosen("")).spawn().run(given))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_called_as_windows_has_it(name: str) -> None:
    model, given = network(name)
    linked, state = windows_object(model), CpuPlan(model, chosen("")).spawn()
    for _ in range(2):
        same(linked.run(*given), state.run(given))


ASKED = {
    "win32": ["FlushInstructionCache", "VirtualAlloc", "VirtualProtect"],
    "darwin": ["pthread_jit_write_protect_np", "sys_icache_invalidate"],
}


@pytest.mark.skipif(sys.platform != "linux", reason="what is asked of other systems is done by Linux")
@pytest.mark.parametrize("system", ASKED)
def test_the_whole_runtime_as_on_another_system(system: str, tmp_path: Path) -> None:
    """Its own linker, the executor, threads that help, and what Python calls without looking at arrays itself."""
    wanted: dict[tuple[str, int, int], list[np.ndarray]] = {}
    for name in ("policy, 32 rows", "LSTM", "MobileNetV2"):
        workload = next(one for one in WORKLOADS if one.name == name)
        built, path = workload.build(**workload.small), tmp_path / f"{name}.onnx"
        path.write_bytes(built.model.SerializeToString())
        model: Any = tract.onnx().load(path).into_model().typed
        given = [built.inputs[model.outlet_name(outlet)] for outlet in model.inputs]
        for threads in (1, 2):
            state = CpuPlan(model, chosen(""), threads).spawn()  # which keeps what it has seen, of a stream
            for turn in range(3):
                wanted[name, threads, turn] = [np.array(one) for one in state.run(given)]
        np.savez(tmp_path / f"{name}.npz", **{f"x{number:03}": one for number, one in enumerate(given)})
    script = Path(__file__).with_name("other_runtime.py")
    changed = {**os.environ, "TRACT_CACHE": str(tmp_path / "cache"), "TRACT_THREADS": ""}
    command = [sys.executable, "-X", "faulthandler", str(script), system, str(tmp_path)]
    for _ in range(2):  # the second time, kernels are kept
        done = subprocess.run(command, env=changed, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.split() == ASKED[system]
        for (name, threads, turn), expected in wanted.items():
            with np.load(tmp_path / f"{name}.found.npz") as found:
                same([found[f"{threads} {turn} {number}"] for number in range(len(expected))], expected)


@pytest.mark.windows
@pytest.mark.skipif(COMPILER is None or WINE is None, reason="wants gcc-mingw-w64-x86-64 and wine64, of Debian")
def test_a_program_for_windows_gives_what_the_runtime_gives(tmp_path: Path) -> None:
    """All kinds of kernels, with the largest sizes, and networks; for this processor and for the plainest one.

    Of every third kind, sizes are open.
    """
    models = [*(example(name, -1) for name in EXAMPLES), *map(network, NETWORKS)]
    here = replace(target_named("x86-64-windows"), isa=chosen(""))
    works, wanted = list[Work](), list[Sequence[np.ndarray]]()
    for number, (model, given) in enumerate(models):
        for target in (here, target_named("x86-64-windows")) if number % 4 == 0 else (here,):
            works.append(Work(compile_model(model, target, f"model_{len(works)}"), given))
            wanted.append(CpuPlan(model, target.isa).spawn().run(given))
    for name in [one for one in EXAMPLES if one != "recurrent"][::3]:
        model, sizes = EXAMPLES[name].model(), EXAMPLES[name].sizes[-1]
        given = EXAMPLES[name].inputs(sizes)
        works.append(Work(compile_model(model, here, f"model_{len(works)}"), given, sizes))
        wanted.append(CpuPlan(model, here.isa).spawn().run(given))
    assert len(works) > 70
    for found, expected in zip(run_on_windows(works, tmp_path), wanted, strict=True):
        same(found, expected)
