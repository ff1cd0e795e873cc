"""Objects whose steps are done by threads of the caller: the same bits, whatever does them, in whatever order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import CFUNCTYPE, c_int32, c_void_p
from typing import Any

import numpy as np
import pytest
from bench_networks import WORKLOADS, small_network
from linked_objects import linked_by_llvm, outputs_of, same
from tract_cpu.ahead.header import header_text
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.targets import target_named
from tract_cpu.plan import CpuPlan

from tract_core.errors import InputError, Unsupported
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Tanh
from tract_core.ops.gather import Gather

PART = CFUNCTYPE(None, c_void_p, c_int32)
SHARE = CFUNCTYPE(None, c_void_p, c_int32, c_void_p, c_void_p)

Calls = Callable[[Callable[[int], None], int], object]


def in_threads(do: Callable[[int], None], parts: int) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(do, range(parts)))


def backwards(do: Callable[[int], None], parts: int) -> None:
    for number in reversed(range(parts)):
        do(number)


def network(name: str) -> tuple[TypedModel, list[np.ndarray]]:
    model, given = small_network(next(one for one in WORKLOADS if one.name == name))
    return model, list(given)


class Shared:
    """An object for so many threads. ``seen``: in how many parts each step was that was shared."""

    def __init__(self, model: TypedModel, threads: int) -> None:
        target = target_named("native")
        self.found = compile_model(model, target, "model", threads=threads)
        self.linked = linked_by_llvm(self.found, target, "run_shared")
        self.seen = list[int]()

    def run(self, given: list[np.ndarray], calls: Calls | None) -> list[np.ndarray] | None:
        """The outputs; ``None`` where it could not be run. ``calls``: how parts are called, ``None`` for no share."""

        def share(pool: int, parts: int, part: int, work: int) -> None:
            assert pool == 77
            self.seen.append(parts)
            assert calls is not None
            calls(lambda number: PART(part)(work, number), parts)

        outputs, called = outputs_of(self.found), SHARE(share)
        kind: Any = CFUNCTYPE(c_int32, *[c_void_p] * (3 + len(self.found.arrays)))
        function = kind(self.linked.addresses["run_shared"])
        arrays = [np.ascontiguousarray(one).ctypes.data for one in given] + [one.ctypes.data for one in outputs]
        shared = called if calls else None
        refused = function(self.linked.memory.ctypes.data, shared, 77, *arrays)
        return None if refused else outputs


@pytest.mark.parametrize("name", ["MobileNetV2", "ResNet-50 int8", "BERT-base"])
@pytest.mark.parametrize("calls", [in_threads, backwards, None])
def test_networks_give_the_bits_of_one_thread(name: str, calls: Calls | None) -> None:
    model, given = network(name)
    shared, wanted = Shared(model, 3), CpuPlan(model, target_named("native").isa).spawn().run(given)
    for _ in range(2):
        same(shared.run(given, calls), wanted)
    same(shared.linked.run(*given), wanted)
    if calls is None:
        assert not shared.seen
    else:
        assert len(shared.seen) == 2 * shared.found.shared > 0
        assert 1 < max(shared.seen) <= 3


def test_a_part_that_refuses_makes_the_run_refuse() -> None:
    """The index is in the last of many rows, which another thread copies than the first one."""
    model = TypedModel()
    inputs = [model.add_source(name, parse_typed_fact(fact)) for name, fact in (("x", "4,4096,f32"), ("i", "4096,i64"))]
    model.set_outputs(model.wire_node("y", Tanh(), model.wire_node("rows", Gather(0), inputs)))
    shared, x = Shared(model, 4), np.ones((4, 4096), "f4")
    indices = np.zeros(4096, "i8")
    assert shared.found.shared
    for last in (3, 9, 2):
        indices[-1] = last
        found = shared.run([x, indices], in_threads)
        assert (found is None) == (last == 9)
    assert shared.seen


def test_only_steps_with_much_to_do_are_shared() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,f32"))
    model.set_outputs(model.wire_node("y", Tanh(), [x]))
    shared, given = Shared(model, 4), np.float32([0, 1, -2])
    assert shared.found.shared == 0
    same(shared.run([given], in_threads), shared.linked.run(given) or [])
    assert not shared.seen


def test_the_header_says_what_share_is() -> None:
    model, _ = network("policy, 32 rows")
    text = header_text(compile_model(model, target_named("native"), "net", threads=4))
    part = "void (*part)(void *work, int32_t number), void *work"
    assert f"typedef void (*net_share)(void *pool, int32_t parts, {part});" in text
    assert "int32_t net_run_shared(void *memory, net_share share, void *pool, const float *" in text
    assert "net_share" not in header_text(compile_model(model, target_named("native"), "net"))


def test_what_has_no_threads_says_so() -> None:
    model, _ = network("policy, 32 rows")
    for threads in (0, -1, 1025):
        with pytest.raises(InputError, match=f"{threads} threads were asked for"):
            compile_model(model, target_named("native"), "net", threads=threads)
    with pytest.raises(Unsupported, match="modules for wasm32 have one thread"):
        compile_model(model, target_named("wasm32"), "net", threads=2)
