"""Tensors are written where they belong: in outputs, and in their part of what is put together."""

from __future__ import annotations

import numpy as np
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_llvm.program.storages import Kind

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import CumSum
from tract_core.ops.elementwise import Abs, Neg, Square


class Wiring:
    """A model that grows."""

    def __init__(self, *facts: str) -> None:
        self.model = TypedModel()
        self.sources = [
            self.model.add_source(f"x{slot}", parse_typed_fact(fact, self.model.symbols))
            for slot, fact in enumerate(facts)
        ]

    def __call__(self, op: TypedOp, *inputs: OutletId) -> OutletId:
        return self.model.wire_node(f"op{len(self.model.nodes)}", op, list(inputs))[0]


def native(plan: CpuPlan) -> list[str]:
    return [step.kernel.name for step in plan.program.steps if isinstance(step, NativeStep)]


def test_parts_are_written_into_the_whole(isa) -> None:
    wire = Wiring("1,N,3,f32", "1,M,3,f32")
    x, y = wire.sources
    inner = wire(TypedConcat(1), wire(Neg(), x), wire(Square(), y))
    outer = wire(TypedConcat(1), wire(Abs(), x), inner, y)
    wire.model.set_outputs([wire(Square(), outer)])
    plan = CpuPlan(wire.model, isa)
    how = [(one.ops[-1], one.how) for one in plan.explain().placements]
    assert ("TypedConcat", "view") in how  # the inner one
    assert native(plan) == ["map"] * 5  # Neg, Square, Abs, the copy of y, and the last one
    for n, m in ((2, 3), (0, 1), (1, 0), (40, 33)):
        a, b = (np.random.default_rng(0).standard_normal((1, size, 3)).astype("f4") for size in (n, m))
        wanted = np.concatenate([np.abs(a), -a, b * b, b], 1) ** 2
        np.testing.assert_array_equal(plan.spawn().run([a, b])[0], wanted)


def test_parts_with_gaps_are_copied(isa) -> None:
    wire = Wiring("2,N,f32", "2,M,f32")
    wire.model.set_outputs([wire(TypedConcat(1), *(wire(Neg(), x) for x in wire.sources))])
    plan = CpuPlan(wire.model, isa)
    assert len(native(plan)) == 4
    a, b = np.ones((2, 3), "f4"), np.zeros((2, 5), "f4")
    np.testing.assert_array_equal(plan.spawn().run([a, b])[0], np.concatenate([-a, -b], 1))


def test_a_tensor_that_others_read_too_is_copied(isa) -> None:
    wire = Wiring("N,f32")
    negated = wire(Neg(), *wire.sources)
    wire.model.set_outputs([wire(TypedConcat(0), negated, negated), negated])
    plan = CpuPlan(wire.model, isa)
    x = np.arange(5, dtype="f4")
    both, one = plan.spawn().run([x])
    np.testing.assert_array_equal(both, np.concatenate([-x, -x]))
    np.testing.assert_array_equal(one, -x)


def test_what_is_reshaped_is_written_to_the_output(isa) -> None:
    wire = Wiring("N,4,f32")
    reshaped = wire(Reshape(1, (4,), (2, 2)), wire(Neg(), *wire.sources))
    wire.model.set_outputs([wire(AddAxis(0), reshaped)])
    plan = CpuPlan(wire.model, isa)
    assert native(plan) == ["map"]
    assert [view and view.storage.kind for view in plan.program.outputs] == [Kind.OUTPUT]
    x = np.arange(12, dtype="f4").reshape(3, 4)
    np.testing.assert_array_equal(plan.spawn().run([x])[0], -x.reshape(1, 3, 2, 2))


def test_parts_from_anywhere_are_put_together(isa) -> None:
    wire = Wiring("N,f32")
    negated = wire(Neg(), *wire.sources)
    summed = wire(CumSum(0), wire(Square(), *wire.sources))
    whole = wire(TypedConcat(0), summed, negated)
    wire.model.set_outputs([wire(CumSum(0), whole)])
    plan = CpuPlan(wire.model, isa)
    x = np.arange(4, dtype="f4")
    np.testing.assert_array_equal(plan.spawn().run([x])[0], np.cumsum(np.concatenate([np.cumsum(x * x), -x])))


def test_a_part_is_written_at_once_whoever_else_reads_it(isa) -> None:
    wire = Wiring("1,P,3,f32", "1,S,3,f32")
    past, new = wire.sources
    key = wire(Square(), new)
    wire.model.set_outputs([wire(TypedConcat(1), past, key), wire(Neg(), key)])
    plan = CpuPlan(wire.model, isa)
    assert len(native(plan)) == 3  # Square, the copy of what was there, and Neg
    for p, s in ((2, 1), (0, 3), (5, 0)):
        a, b = np.full((1, p, 3), 7, "f4"), np.arange(3 * s, dtype="f4").reshape(1, s, 3)
        whole, negated = plan.spawn().run([a, b])
        np.testing.assert_array_equal(whole, np.concatenate([a, b * b], 1))
        np.testing.assert_array_equal(negated, -b * b)


def test_a_tensor_that_is_put_together_with_itself(isa) -> None:
    wire = Wiring("N,2,f32")
    squared = wire(Square(), *wire.sources)
    wire.model.set_outputs([wire(Neg(), wire(TypedConcat(0), squared, squared))])
    x = np.arange(6, dtype="f4").reshape(3, 2)
    plan = CpuPlan(wire.model, isa)
    assert len(native(plan)) == 3
    np.testing.assert_array_equal(plan.spawn().run([x])[0], -np.concatenate([x * x, x * x]))
