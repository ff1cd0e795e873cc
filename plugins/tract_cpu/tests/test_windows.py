"""Models for Windows: what they give there is what the runtime gives here, to the bit.

Twice: as object files of ELF that call and are called as Windows has it, linked by our linker as Python there would do
it; and as object files of Windows, in a program that Wine runs (`make test-windows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench_networks import WORKLOADS, small_network
from linked_objects import same
from portable_models import EXAMPLES
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.targets import target_named
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen
from windows_convention import windows_object
from windows_program import COMPILER, WINE, Work, run_on_windows

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


@pytest.mark.windows
@pytest.mark.skipif(COMPILER is None or WINE is None, reason="wants gcc-mingw-w64-x86-64 and wine64, of Debian")
def test_a_program_for_windows_gives_what_the_runtime_gives(tmp_path: Path) -> None:
    """All kinds of kernels, with the largest sizes, and networks; for this processor and for the plainest one."""
    models = [*(example(name, -1) for name in EXAMPLES), *map(network, NETWORKS)]
    here = replace(target_named("x86-64-windows"), isa=chosen(""))
    works, wanted = list[Work](), list[Sequence[np.ndarray]]()
    for number, (model, given) in enumerate(models):
        for target in (here, target_named("x86-64-windows")) if number % 4 == 0 else (here,):
            works.append(Work(compile_model(model, target, f"model_{len(works)}"), given))
            wanted.append(CpuPlan(model, target.isa).spawn().run(given))
    assert len(works) > 70
    for found, expected in zip(run_on_windows(works, tmp_path), wanted, strict=True):
        same(found, expected)
