"""Networks of the bench on 64-bit ARM: near float64, and as objects, written elsewhere, the same to the bit."""

from __future__ import annotations

import io
import pickle
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins/tract_cpu/tests"))

from linked_objects import linked_by_llvm, same
from tract_cpu.ahead.targets import target_named
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

import tract_core as tract

WRITTEN = sorted((Path(__file__).parents[2] / ".venv-arm/networks").glob("*.pickle"))

pytestmark = pytest.mark.skipif(platform.machine() != "aarch64", reason="for 64-bit ARM: make test-arm")


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_a_network_is_near_float64_and_its_objects_are_the_runtime(path: Path) -> None:
    """With each instruction set that this processor has."""
    found = pickle.loads(path.read_bytes())
    model = tract.onnx().load_bytes(found["model"]).into_model()
    if found["precision"] != "f32":
        model.transform(tract.FloatPrecision("f32", found["precision"]))
    typed: Any = model.typed
    data = np.load(io.BytesIO(found["data"]))
    given = [data[f"input {typed.outlet_name(one)}"] for one in typed.inputs]
    wanted = [data[f"output {typed.outlet_name(one)}"] for one in typed.outputs]
    targets = [target_named(name) for name in found["objects"]]
    for target in (one for one in targets if one.isa in of_this_machine()):
        results = CpuPlan(typed, target.isa).spawn().run(given)
        for one, other in zip(results, wanted, strict=True):
            largest = float(np.abs(other).max(initial=0))
            np.testing.assert_allclose(one.astype("f8"), other, rtol=0, atol=found["allowed"] * max(largest, 1e-30))
        linked = linked_by_llvm(found["objects"][target.name], target)
        same(linked.run(*given), results)


def test_some_networks_were_written() -> None:
    assert len(WRITTEN) >= 5
