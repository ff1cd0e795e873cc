"""How many of the core's cases run without the host, family by family, with fixed and with symbolic sizes."""

from __future__ import annotations

import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

from tract_core.plugins import default_registry
from tract_core.testing.case import CASES

AT_LEAST = {
    "axis": 24,
    "axis_dyn": 9,
    "binary": 136,
    "broadcast": 8,
    "broadcast_dyn": 4,
    "cast": 33,
    "check": 4,
    "concat": 10,
    "conv": 36,
    "deconv": 15,
    "downsample": 10,
    "einsum": 23,
    "elementwise": 48,
    "fft": 14,
    "fill": 5,
    "gather": 21,
    "grid_sample": 24,
    "identity": 4,
    "if_then_else": 3,
    "loop": 2,
    "lrn": 8,
    "one_hot": 8,
    "pad": 18,
    "pool": 28,
    "quantize": 37,
    "range": 14,
    "recurrent": 8,
    "reshape": 6,
    "resize": 58,
    "scan": 15,
    "scatter": 30,
    "slice": 11,
    "submodel": 3,
    "tile": 9,
    "topk": 16,
    "trilu": 14,
}
"""What is missing are texts, sums of complex numbers, operators of which only the result tells its size, and
convolutions into a symbolic number of channels.
"""


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("family", AT_LEAST)
def test_so_many_cases_have_no_host_operator(family, symbolic) -> None:
    registry = default_registry()
    plans = [
        CpuPlan(case.model(symbolic=symbolic, registry=registry), of_this_machine()[-1])
        for case in registry[CASES].find(family) or ()
    ]
    native = [plan for plan in plans if all(one.how not in {"numpy", "state"} for one in plan.explain().placements)]
    assert len(native) >= AT_LEAST[family]
