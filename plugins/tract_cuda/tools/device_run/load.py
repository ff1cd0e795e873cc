"""Every kernel of the networks of the bench and of the cases of the conformance kit, loaded by the driver."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

from tract_cuda.compile import compiled
from tract_cuda.driver.device import device_of
from tract_cuda.language.arch import Arch
from tract_cuda.program import launches_in
from tract_cuda.ptx import ptx_for

from device_run import networks
from device_run.setting import Setting
from tract_core.errors import TractError
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES

_FEW = ("axis", "trilu")
"""Families of cases that a small run goes through."""

_PIECE = 8
"""Kernels that a process loads in one go."""


def run(setting: Setting) -> None:
    """A row for each network, and for each family of cases: kernels, and which of them the driver refuses."""
    seen: set[Any] = set()
    for name in networks.names(setting):
        setting.attempt(name, partial(_row, setting, partial(_of_network, setting, name), seen))
    cases = default_registry()[CASES].rows()
    for family in setting.wanted(_FEW if setting.small and not setting.only else tuple(cases)):
        kernels = partial(_of_cases, setting, cases[family])
        setting.attempt(f"cases of {family}", partial(_row, setting, kernels, seen))


def _row(setting: Setting, kernels: Any, seen: set[Any]) -> dict[str, Any]:
    new = [(plan, setting.target.arch) for plan in dict.fromkeys(kernels()) if plan not in seen]
    seen.update(plan for plan, _ in new)
    found = _all_loaded(new, several=not setting.small)
    refused = [one for one in found if one["problem"]]
    spilled = sorted({one["name"] for one in found if one["local_bytes"]})
    row: dict[str, Any] = {"kernels": len(found), "refused": len(refused)}
    if spilled:
        row["with memory of their own"] = ", ".join(spilled)
    if refused:
        row["failed"] = "; ".join(f"{one['name']}: {one['problem'][:200]}" for one in refused[:5])
    return row


def _of_network(setting: Setting, name: str) -> list[Any]:
    model = networks.typed(networks.network(name, setting.small)).typed
    return [step.kernel for step in launches_in(compiled(model, setting.target).program.steps)]


def _of_cases(setting: Setting, cases: Iterable[Any]) -> list[Any]:
    """Kernels of all cases with fixed sizes and with symbolic ones. What no runtime takes has none."""
    found: list[Any] = []
    for case in cases:
        for symbolic in (False, True):
            try:
                program = compiled(case.model(symbolic=symbolic), setting.target).program
            except TractError:
                continue
            found += [step.kernel for step in launches_in(program.steps)]
    return found


def _all_loaded(kernels: list[tuple[Any, Arch]], *, several: bool) -> list[dict[str, Any]]:
    if not several or len(kernels) < 2 * _PIECE:
        return [loaded(one) for one in kernels]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(loaded, kernels, chunksize=_PIECE))


def loaded(kernel: tuple[Any, Arch]) -> dict[str, Any]:
    """What the driver says of a kernel, in both widths of positions."""
    plan, arch = kernel
    local = 0
    try:
        for wide in (False, True):
            local = max(local, device_of(0).function(ptx_for(plan, arch, wide=wide)).local_bytes)
    except TractError as error:
        return {"name": plan.name, "problem": str(error), "local_bytes": 0}
    return {"name": plan.name, "problem": "", "local_bytes": local}
