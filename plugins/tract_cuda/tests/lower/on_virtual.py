"""Models on the virtual GPU, no node of which is left to the host, and what the reference says of single operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from tract_cuda.driver.device import Device
from tract_cuda.driver.library import Driver
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.testing.virtual import VirtualGpu

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.plugins import default_registry
from tract_core.plugins.keys import REFERENCE

SEEDS = (0, 5)
"""Of the order in which threads and streams go."""


@cache
def device(seed: int) -> Device:
    return Device(Driver(VirtualGpu(seed)), 0)


def model_of(op: TypedOp, *facts: str, constants: Mapping[int, np.ndarray] | None = None) -> TypedModel:
    """A model of one operator. ``constants``: inputs that are part of it."""
    model, known = TypedModel(), constants or {}
    outlets = [
        model.add_const(f"c{slot}", known[slot])
        if slot in known
        else model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols))
        for slot, fact in enumerate(facts)
    ]
    model.set_outputs(model.wire_node("op", op, outlets))
    return model


def turned_first(op: TypedOp, *facts: str) -> TypedModel:
    """The same of the first input with its first axis moved to the end."""
    model = TypedModel()
    outlets = [model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols)) for slot, fact in enumerate(facts)]
    rank = len(facts[0].split(",")) - 1
    outlets[:1] = model.wire_node("turned", MoveAxis(0, rank - 1), outlets[:1])
    model.set_outputs(model.wire_node("op", op, outlets))
    return model


def run(model: TypedModel, *inputs: np.ndarray, seeds: Sequence[int] = SEEDS) -> list[np.ndarray]:
    """The outputs, whose bits are the same in whatever order threads go, and in a second run."""
    arch, found = arch_named("sm_80"), list[list[np.ndarray]]()
    assert arch is not None
    for seed in seeds:
        plan = CudaPlan(model, device(seed), Target(arch, 4))
        assert not plan.hosted()
        state = plan.spawn()
        found += [state.run(list(inputs)), state.run(list(inputs))]
    for other in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other, strict=True))
    return found[0]


def wanted(op: TypedOp, *inputs: np.ndarray) -> np.ndarray:
    """What the meaning of an operator with one output gives."""
    found = default_registry()[REFERENCE].find(type(op))
    assert found is not None
    return found(op, *inputs)


def same_bits(found: np.ndarray, right: np.ndarray) -> bool:
    return (
        found.shape == right.shape
        and found.dtype == right.dtype
        and found.tobytes() == np.ascontiguousarray(right).tobytes()
    )
