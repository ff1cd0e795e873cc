"""Models with loops and branches, for the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.errors import TractError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.gather import Gather
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.wiring import wire_one


def body(facts: Mapping[str, str]) -> tuple[TypedModel, list]:
    """An empty model with these inputs."""
    found = TypedModel()
    return found, [found.add_source(name, parse_typed_fact(fact, found.symbols)) for name, fact in facts.items()]


def around(op: Scan, facts: Mapping[str, str]) -> TypedModel:
    """A model that is one operator, of inputs."""
    model, inputs = body(facts)
    model.set_outputs(model.wire_node("loop", op, inputs))
    return model


def sums(axis: int = 0, chunk: int = 1, rank: int = 2, **flags: int) -> Scan:
    """state * weight + sum of the slice; gives all slices plus the state, the last state, and the last slice."""
    sizes = [str(abs(chunk)) if one == axis else f"N{one}" for one in range(rank)]
    ones = ["1" if one == axis else f"N{one}" for one in range(rank)]
    inner, (x, s, w) = body(
        {"x": f"{','.join(sizes)},f32", "s": f"{','.join(ones)},f32", "w": f"{','.join('1' * rank)},f32"}
    )
    shifted = wire_one(inner, "shifted", Add(), x, s)
    total = wire_one(inner, "total", Reduce((axis,), Reducer.SUM), x)
    new = wire_one(inner, "new", Add(), wire_one(inner, "kept", Mul(), s, w), total)
    inner.set_outputs([shifted, new, x])
    outputs = (
        OutputMapping(full=FullOutput(0, axis, chunk)),
        OutputMapping(state=True, last=1),
        OutputMapping(last=2),
    )
    return Scan(inner, (ScannedInput(axis, chunk), StateInput(), FullInput()), outputs, **flags)


def picking(count: int = 4, skip: int = 0) -> TypedModel:
    """state + table[places[t]]: the kernel in the body refuses places outside."""
    inner, (place, s, table) = body({"place": "1,i64", "s": "1,3,f32", "table": f"{count},3,f32"})
    row = wire_one(inner, "row", Gather(0), table, place)
    new = wire_one(inner, "new", Add(), row, s)
    inner.set_outputs([new])
    op = Scan(
        inner,
        (ScannedInput(0), StateInput(), FullInput()),
        (OutputMapping(state=True, full=FullOutput(0, 0), last=1),),
        skip,
    )
    return around(op, {"places": "T,i64", "s": "1,3,f32", "table": f"{count},3,f32"})


def plan(model: TypedModel, threads: int = 1, isa: str = "") -> CpuPlan:
    """A plan that leaves nothing to the host."""
    found = CpuPlan(model, chosen(isa), threads)
    left = [one for one in found.explain().placements if one.how in {"numpy", "state"}]
    assert not left, found.explain()
    return found


def with_deadline(model: TypedModel, seconds: float) -> TypedModel:
    """The model, whose runs may take so long."""
    found = model.clone()
    found.limits = replace(found.limits, run_deadline_s=seconds)
    return found


def numbers(*shape: int) -> np.ndarray:
    """Random numbers, always the same for a shape."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("f4")


def outcome(
    run: Callable[[], Sequence[np.ndarray]], error: type[TractError] = TractError
) -> Sequence[np.ndarray] | str:
    """What a run gives, or how it says no."""
    try:
        return run()
    except error as refusal:
        return str(refusal)


def same_outcome(found: Sequence[np.ndarray] | str, wanted: Sequence[np.ndarray] | str) -> None:
    """Check that both are the same outputs, or the same message."""
    if isinstance(found, str) or isinstance(wanted, str):
        assert found == wanted
    else:
        same(found, wanted)


def same(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    """Check that outputs are the same, up to what rounding does."""
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        assert one.dtype == other.dtype
