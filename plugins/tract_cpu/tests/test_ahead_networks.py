"""Networks of the bench as object files: what they give is what the runtime gives, to the bit."""

from __future__ import annotations

import pytest
from bench_networks import WORKLOADS, Workload, small_network
from linked_objects import LinkedObject, same
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
def test_networks_give_what_the_runtime_gives(workload: Workload) -> None:
    typed, given = small_network(workload)
    linked, state = LinkedObject.of(typed), CpuPlan(typed, chosen("")).spawn()
    for _ in range(2):
        same(linked.run(*given), state.run(given))
