"""What operators keep from run to run: the state of a loop of the core, which a state of the model keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.dims import Dim
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scan import FullInput, FullOutput, InputMapping, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.wired import Wired

Step = Callable[[Sequence[Wired], Mapping[str, Wired], Sequence[Wired]], tuple[Sequence[Wired], Sequence[Wired]]]
"""``(what is given, what is held, states) -> (results, states after it)``."""


def wire_turn(
    model: TypedModel, name: str, body: TypedModel, inputs: Sequence[OutletId], states: Sequence[int]
) -> Sequence[OutletId]:
    """The outputs of ``body`` for ``inputs``, but for the last: those are ``states``, inputs by slot, next time."""
    once = body.add_source(body.unique_name("turn"), TypedFact.of(DatumType.BOOL, (1,)))
    body.inputs = [once, *(outlet for outlet in body.inputs if outlet != once)]
    mappings: list[InputMapping] = [StateInput() if slot in states else FullInput() for slot in range(len(inputs))]
    results = len(body.outputs) - len(states)
    kept = [OutputMapping(state=True)] * len(states)
    outputs = (*(OutputMapping(last=slot) for slot in range(results)), *kept)
    turn = model.add_const(model.unique_name(f"{name}.turn"), np.zeros(1, np.bool_))
    return model.wire_node(name, Scan(body, (ScannedInput(0), *mappings), outputs), [turn, *inputs])


def over_time(
    wire: NodeWiring,
    given: Sequence[Wired],
    held: Mapping[str, Wired],
    states: Sequence[Wired],
    step: Step,
    *,
    axis: int | None,
    is_backward: bool = False,
) -> list[Wired]:
    """The results of ``step`` for each place of an axis of what is given, along which they lie again.

    ``held``: what every step sees besides; ``states``: what they are at first, from the first run on. Without an axis,
    what is given is one step.
    """
    body = wire.model.empty_like()
    inner = NodeWiring(body, wire.name)
    whole = [*given, *held.values(), *states]
    labels = [*(f"x{slot}" for slot in range(len(given))), *held, *(f"state{slot}" for slot in range(len(states)))]
    facts = [one.fact.without_value() for one in whole]
    if axis is not None:
        facts[: len(given)] = [fact.with_shape(_with_one(fact.shape, axis)) for fact in facts[: len(given)]]
    sources = [
        Wired(inner, body.add_source(f"{wire.name}.{label}", fact)) for label, fact in zip(labels, facts, strict=True)
    ]
    seen, rest = sources[: len(given)], sources[len(given) :]
    if axis is not None:
        seen = [one.squeeze([axis]) for one in seen]
    results, after = step(seen, dict(zip(held, rest, strict=False)), rest[len(held) :])
    if axis is not None:
        results = [one.unsqueeze([axis]) for one in results]
    body.set_outputs([one.outlet for one in (*results, *after)])
    outlets = [one.outlet for one in whole]
    if axis is None:
        places = range(len(whole) - len(states), len(whole))
        found = wire_turn(wire.model, wire.label("turn"), body, outlets, places)
    else:
        chunk = -1 if is_backward else 1
        mappings = [ScannedInput(axis, chunk)] * len(given), [FullInput()] * len(held), [StateInput()] * len(states)
        joined = [OutputMapping(full=FullOutput(slot, axis, chunk)) for slot in range(len(results))]
        outputs = (*joined, *[OutputMapping(state=True)] * len(states))
        found = wire.model.wire_node(wire.label("time"), Scan(body, tuple(chain(*mappings)), outputs), outlets)
    return [Wired(wire, outlet) for outlet in found]


def _with_one(shape: Sequence[Dim], axis: int) -> list[Dim]:
    return [1 if place == axis else size for place, size in enumerate(shape)]


def nothing_yet(wire: NodeWiring, batch: Dim, size: Dim, kind: DType = DatumType.F32) -> Wired:
    """A state before the first run, [batch, size]: zeros."""
    zero = wire.const(np.zeros((1, 1), kind.numpy))
    return Wired(wire, wire.broadcast(zero, (batch, size)))
