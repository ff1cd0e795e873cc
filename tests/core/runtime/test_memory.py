"""Intermediate tensors live no longer than somebody needs them."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from typing import Any

import numpy as np

from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Neg
from tract_core.runtime.parts import Part
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.reference import ReferenceRuntime

SIZE = 1 << 18


def _chain(depth: int) -> TypedModel:
    model = TypedModel()
    (current,) = [model.add_source("x", parse_typed_fact(f"{SIZE},f32"))]
    for number in range(depth):
        (current,) = model.wire_node(f"n{number}", Neg(), [current])
    model.set_outputs([current])
    return model


def _peak(plan: TypedSimplePlan, inputs: list[Any]) -> int:
    """Bytes allocated at the worst moment of a run."""
    state = plan.spawn()
    gc.collect()
    tracemalloc.start()
    try:
        state.run(inputs)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_deep_chain_needs_two_tensors() -> None:
    x = np.ones(SIZE, np.float32)
    plan = ReferenceRuntime().prepare(_chain(40))
    assert _peak(plan, [x]) < 3 * x.nbytes


def test_a_tensor_that_is_read_late_is_kept_and_right() -> None:
    model = _chain(3)
    early = model.node_by_name("n0").outlets()[0]
    late = model.node_by_name("n2").outlets()[0]
    model.set_outputs(model.wire_node("sum", Add(), [early, late]))
    (found,) = ReferenceRuntime().prepare(model).run([np.ones(SIZE, np.float32)])
    assert found[0] == -2


def test_tensors_die_as_soon_as_they_are_dead() -> None:
    """When a node has run, its input is gone, and the one before that all the more."""
    alive: dict[str, weakref.ref[Any]] = {}
    seen: list[list[str]] = []
    model = _chain(5)

    def note(part: Part, outputs: Any) -> None:
        seen.append([name for name, reference in alive.items() if reference() is not None])
        (array,) = outputs.values()
        alive[model.nodes[part.nodes[0]].name] = weakref.ref(array)

    plan = ReferenceRuntime().prepare(model)
    plan.spawn_observed(note).run([np.ones(SIZE, np.float32)])
    assert seen == [[], ["n0"], ["n1"], ["n2"], ["n3"]]


def test_outputs_outlive_the_run_and_nothing_else_does() -> None:
    model = _chain(3)
    model.set_outputs([model.node_by_name("n1").outlets()[0], *model.outputs])
    plan = ReferenceRuntime().prepare(model)
    state = plan.spawn()
    first, last = state.run([np.ones(SIZE, np.float32)])
    assert (first[0], last[0]) == (1, -1)
    kept = [weakref.ref(first), weakref.ref(last)]
    del first, last
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
