"""What operators keep from run to run: the state of a loop of the core, which a state of the model keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scan import FullInput, FullOutput, InputMapping, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.wired import Wired

Step = Callable[[Sequence[Wired], Sequence[Wired]], tuple[Sequence[Wired], Sequence[Wired]]]
"""``(what is given, states) -> (results, states after it)``."""


def wire_turn(
    model: TypedModel, name: str, body: TypedModel, inputs: Sequence[OutletId], states: Sequence[int]
) -> Sequence[OutletId]:
    """The outputs of ``body`` for ``inputs``, but for the last ones: those are ``states``, inputs by slot, next time."""
    once = body.add_source(body.unique_name("turn"), TypedFact.of(DatumType.BOOL, (1,)))
    body.inputs = [once, *(outlet for outlet in body.inputs if outlet != once)]
    mappings: list[InputMapping] = [StateInput() if slot in states else FullInput() for slot in range(len(inputs))]
    results = len(body.outputs) - len(states)
    kept = [OutputMapping(state=True)] * len(states)
    outputs = (*(OutputMapping(last=slot) for slot in range(results)), *kept)
    turn = model.add_const(model.unique_name(f"{name}.turn"), np.zeros(1, np.bool_))
    return model.wire_node(name, Scan(body, (ScannedInput(0), *mappings), outputs), [turn, *inputs])


def one_step(wire: NodeWiring, given: Sequence[Wired], states: Sequence[Wired], step: Step) -> list[Wired]:
    """The results of ``step``, whose states go on from run to run; ``states``: what they are at first."""
    body = wire.model.empty_like()
    inner = _sources(body, wire.name, [*given, *states])
    results, after = step(inner[: len(given)], inner[len(given) :])
    body.set_outputs([one.outlet for one in (*results, *after)])
    inputs = [one.outlet for one in (*given, *states)]
    places = range(len(given), len(inputs))
    return [Wired(wire, outlet) for outlet in wire_turn(wire.model, wire.label("turn"), body, inputs, places)]


def over_time(
    wire: NodeWiring,
    steps: Sequence[Wired],
    whole: Sequence[Wired],
    states: Sequence[Wired],
    step: Step,
    *,
    axis: int,
    is_backward: bool = False,
) -> list[Wired]:
    """The same for each place of an axis of ``steps``, which goes in what is given; results lie along it again.

    ``whole``: what every step sees besides.
    """
    body, chunk = wire.model.empty_like(), -1 if is_backward else 1
    given = [*steps, *whole, *states]
    shapes = [(*one.shape[:axis], 1, *one.shape[axis + 1 :]) for one in steps]
    inner = _sources(body, wire.name, given, shapes)
    count = len(steps) + len(whole)
    plain = [one.squeeze([axis]) for one in inner[: len(steps)]]
    results, after = step([*plain, *inner[len(steps) : count]], inner[count:])
    joined = [one.unsqueeze([axis]) for one in results]
    body.set_outputs([one.outlet for one in (*joined, *after)])
    mappings = (*[ScannedInput(axis, chunk)] * len(steps), *[FullInput()] * len(whole), *[StateInput()] * len(states))
    full = [OutputMapping(full=FullOutput(slot, axis, chunk)) for slot in range(len(joined))]
    op = Scan(body, mappings, (*full, *[OutputMapping(state=True)] * len(states)))
    return [Wired(wire, one) for one in wire.model.wire_node(wire.label("time"), op, [one.outlet for one in given])]


def _sources(
    body: TypedModel, name: str, given: Sequence[Wired], shapes: Sequence[Sequence[object]] = ()
) -> list[Wired]:
    wire, found = NodeWiring(body, name), []
    for slot, one in enumerate(given):
        fact = one.fact.without_value()
        fact = fact.with_shape(shapes[slot]) if slot < len(shapes) else fact  # pyright: ignore[reportArgumentType]: sizes
        found.append(Wired(wire, body.add_source(f"{name}.given{slot}", fact)))
    return found
