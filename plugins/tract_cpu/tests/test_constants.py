"""Constants of a program: copied or arranged once, and only if a kernel reads them."""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum


def unaligned(array: np.ndarray) -> np.ndarray:
    """The same array, where no compiler would put it: as weights in a mapped file lie."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    memory[1:] = np.frombuffer(array.tobytes(), np.uint8)
    found = memory[1:].view(array.dtype).reshape(array.shape)
    assert not found.flags.aligned
    return found


def model(weights: np.ndarray, bias: np.ndarray) -> TypedModel:
    found = TypedModel()
    x = found.add_source("x", parse_typed_fact("M,40,f32", found.symbols))
    w, b = found.add_const("w", weights), found.add_const("b", bias)
    (x,) = found.wire_node("p", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32), [x, w])
    found.set_outputs(found.wire_node("a", Add(), [x, b]))
    return found


def test_weights_that_are_packed_are_copied_once_and_others_only_where_kernels_could_not_read_them() -> None:
    rng = np.random.default_rng(0)
    weights, bias = unaligned(rng.standard_normal((40, 64)).astype("f4")), unaligned(np.ones((1, 64), "f4"))
    plan = CpuPlan(model(weights, bias), chosen(""))
    copies = [one for one in plan.program.constants if not any(np.shares_memory(one, own) for own in (weights, bias))]
    assert sorted(one.size for one in copies) == [64, 40 * 64]
    assert all(one.flags.aligned and one.flags.c_contiguous for one in copies)
    x = rng.standard_normal((5, 40)).astype("f4")
    wanted = x.astype("f8") @ weights.astype("f8") + 1
    np.testing.assert_allclose(plan.spawn().run([x])[0], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say what is in memory")
def test_pages_of_a_file_do_not_stay_in_memory_once_its_weights_are_packed(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    content = np.random.default_rng(0).standard_normal(40 << 14).astype("f4")
    file.write_bytes(bytes(100) + content.tobytes())
    with file.open("rb") as opened:
        mapped = mmap(opened.fileno(), 0, access=ACCESS_READ)
    weights = np.frombuffer(memoryview(mapped)[100:], np.float32).reshape(40, -1)
    found = TypedModel()
    x = found.add_source("x", parse_typed_fact("M,40,f32", found.symbols))
    w = found.add_const("w", weights)
    found.set_outputs(found.wire_node("p", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32), [x, w]))
    plan = CpuPlan(found, chosen(""))
    assert _in_memory(file) < weights.nbytes / 4
    rows = np.ones((2, 40), "f4")
    np.testing.assert_allclose(plan.spawn().run([rows])[0], rows.astype("f8") @ weights, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(weights.ravel()[:100], content[:100])  # it is read from the file again


def _in_memory(file: Path) -> int:
    """Bytes of a mapped file that are in memory."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        if line.endswith(str(file)):
            return next(int(one.split()[1]) << 10 for one in lines if one.startswith("Rss:"))
    raise AssertionError(f"{file} is not mapped")


def test_an_error_in_the_threads_that_arrange_constants_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> np.ndarray:
        raise MemoryError("no room for weights")

    monkeypatch.setattr("tract_cpu.lower.einsum.in_panels", full)
    with pytest.raises(MemoryError, match="no room for weights"):
        CpuPlan(model(np.ones((40, 64), "f4"), np.ones((1, 64), "f4")), chosen(""))
