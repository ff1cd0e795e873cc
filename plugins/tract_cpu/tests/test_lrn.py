"""Local response normalisation, on every instruction set of this machine, against the meaning."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import Isa

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.lrn import Lrn, reference


def check(isa: Isa, op: Lrn, fact: str, *shapes: tuple[int, ...]) -> None:
    model = TypedModel()
    source = model.add_source("x", parse_typed_fact(fact, model.symbols))
    model.set_outputs(model.wire_node("y", op, [source]))
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    dtype = {"f16": "f2", "f32": "f4", "f64": "f8"}[fact[-3:]]
    for shape in shapes:
        x = 3 * np.random.default_rng(0).standard_normal(shape).astype(dtype)
        x.reshape(-1)[3:4], x.reshape(-1)[7:8] = np.nan, np.inf
        with np.errstate(invalid="ignore"):
            wanted = reference(op, x)
        np.testing.assert_allclose(plan.spawn().run([x])[0], wanted, rtol=2e-3 if dtype == "f2" else 1e-6)


@pytest.mark.parametrize("size", [1, 4])
def test_windows_of_planes_and_of_channels_that_come_last(isa: Isa, size: int) -> None:
    check(isa, Lrn(size, 0.5, 0.6, 1.2), "N,C,H,W,f32", (2, 5, 3, 11), (1, 2, 37, 1), (2, 1, 2, 3), (1, 9, 3, 0))
    check(isa, Lrn(size, 0.5, 0.75, axis=2), "N,S,C,f32", (2, 3, 5), (3, 3, 1), (2, 0, 3))


def test_types(isa: Isa) -> None:
    for fact in ("4,5,6,f64", "4,5,6,f16"):
        check(isa, Lrn(3, 0.5), fact, (4, 5, 6))
