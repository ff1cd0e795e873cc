"""What the nodes of a model cost, and how long they take: in the model that really runs, and in its bodies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.errors import Unsupported
from tract_core.model.questions import node_cost
from tract_core.runtime.binding_plan import BindingPlan
from tract_core.runtime.parts import Part, bodies_within, body_at
from tract_core.runtime.protocol import Plan, TimedPlan, Timing, running_model
from tract_core.runtime.work import work_of

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array

MAX_SECONDS: Final = 1.0
"""A profile repeats the model for this long by default, but at least once and no more than `MAX_TURNS` times."""
MAX_TURNS: Final = 50


def profile(
    given: TypedModel,
    plan: Plan,
    inputs: Sequence[Array] | None,
    *,
    max_seconds: float = MAX_SECONDS,
    max_turns: int = MAX_TURNS,
) -> str:
    """The JSON of `tract_core.Runnable.profile_json`. ``given``: the model that the plan was made of.

    ``max_seconds``: begin no turn after that time.
    """
    seconds: Mapping[Part, float] = {}
    info: dict[str, Any] | None = None
    if inputs is not None:
        turns, seconds = _measure(plan, inputs, max_seconds, max_turns)
        middle = float(np.median(turns))
        info = {"iterations": len(turns), "secs_per_iter": sum(turns) / len(turns), "median_secs_per_iter": middle}
    model = running_model(plan, given)
    symbols = _symbols(model, inputs)
    groups = [part for part in seconds if len(part.nodes) > 1]
    nodes = list(_nodes(model, seconds, groups, symbols))
    listed = [_group(model, part, seconds[part]) | _rates(model, part, seconds[part], symbols) for part in groups]
    return json.dumps({"nodes": nodes, "groups": listed, "profiling_info": info})


def _symbols(model: TypedModel, inputs: Sequence[Array] | None) -> Mapping[str, int]:
    """What the inputs say of the sizes of a model."""
    plan = BindingPlan.of([model.outlet_fact(outlet) for outlet in model.inputs], model.symbols.definitions)
    return plan.values([np.shape(array) for array in inputs]) or {} if inputs is not None else {}


def _rates(model: TypedModel, part: Part, seconds: float, symbols: Mapping[str, int]) -> dict[str, Any]:
    """How much a part has to do, and how much of that in a second; nulls where the sizes are not known."""
    work = work_of(model, part, symbols)
    fast = work if seconds else None
    return {
        "operations": work and work.operations,
        "bytes": work and work.bytes,
        "gflop_per_s": fast and fast.operations / seconds / 1e9,
        "gb_per_s": fast and fast.bytes / seconds / 1e9,
    }


def _nodes(
    model: TypedModel, seconds: Mapping[Part, float], groups: Sequence[Part], symbols: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Every node of a model, and of the bodies in it."""
    group_of = {(part.body, node): number for number, part in enumerate(groups) for node in part.nodes}
    for path, body in bodies_within(model):
        for node_id in body.eval_order():
            node, part = body.nodes[node_id], Part((node_id,), path)
            yield {
                "qualified_id": [path, node_id],
                "op_name": node.op.name,
                "node_name": node.name,
                "cost": {kind: str(count) for kind, count in node_cost(body, node).items()},
                "secs_per_iter": seconds.get(part),
                **(_rates(model, part, seconds[part], symbols) if part in seconds else {}),
                **({"group": group_of[path, node_id]} if (path, node_id) in group_of else {}),
            }


def _group(model: TypedModel, part: Part, seconds: float) -> dict[str, Any]:
    return {
        "qualified_ids": [(part.body, node) for node in part.nodes],
        "op_names": part.ops(model),
        "node_names": [node.name for node in part.within(model)],
        "secs_per_iter": seconds,
    }


def _measure(
    plan: Plan, inputs: Sequence[Array], max_seconds: float, max_turns: int
) -> tuple[Sequence[float], Mapping[Part, float]]:
    """The seconds of each turn, and those of each part in the mean of the turns, in all iterations of bodies."""
    _turn(plan, inputs)
    turns: list[float] = []
    total = 0.0
    spent: dict[Part, float] = {}
    while not turns or (total < max_seconds and len(turns) < max_turns):
        start = perf_counter()
        for timing in _turn(plan, inputs):
            spent[timing.part] = spent.get(timing.part, 0.0) + timing.seconds
        turns.append(perf_counter() - start)
        total += turns[-1]
    return turns, {part: seconds / len(turns) for part, seconds in spent.items()}


def _turn(plan: Plan, inputs: Sequence[Array]) -> list[Timing]:
    if isinstance(plan, TimedPlan):
        return plan.timed_run(inputs)
    plan.spawn().run(inputs)
    return []


def chrome_trace(given: TypedModel, plan: Plan, inputs: Sequence[Array]) -> str:
    """The JSON of `tract_core.Runnable.chrome_trace`. Raises Unsupported when the plan cannot time single nodes."""
    runtime = plan.explain().runtime
    if not isinstance(plan, TimedPlan):
        raise Unsupported(f"runtime {runtime!r} does not time single nodes", hint="'reference' does; or profile_json")
    timings = sorted(plan.timed_run(inputs), key=lambda timing: (timing.start, len(timing.part.body)))
    process, model = os.getpid(), running_model(plan, given)
    named = {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": runtime}}
    events = [named, *(_event(model, timing, process) for timing in timings)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _event(model: TypedModel, timing: Timing, process: int) -> dict[str, Any]:
    part = timing.part
    graph, ops = body_at(model, part.body), part.ops(model)
    facts = [str(graph.outlet_fact(outlet)) for outlet in part.results(model)]
    return {
        "name": ", ".join(part.names(model)),
        "cat": ", ".join(dict.fromkeys(ops)),
        "ph": "X",
        "ts": timing.start * 1e6,
        "dur": timing.seconds * 1e6,
        "pid": process,
        "tid": 0,
        "args": {"op": ", ".join(ops), "outputs": facts},
    }
