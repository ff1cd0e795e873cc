"""What the nodes of a model cost, and how long they take."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Final

from tract_core.errors import Unsupported
from tract_core.model.questions import node_cost
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import Array
from tract_core.runtime.protocol import NodeTiming, Plan, TimedPlan

MAX_SECONDS: Final = 1.0
"""A profile repeats the model for this long by default, but at least once and no more than `MAX_TURNS` times."""
MAX_TURNS: Final = 50


def profile(
    model: TypedModel,
    plan: Plan,
    inputs: Sequence[Array] | None,
    *,
    max_seconds: float = MAX_SECONDS,
    max_turns: int = MAX_TURNS,
) -> str:
    """The JSON of `tract_core.Runnable.profile_json`. ``max_seconds``: begin no turn after that time."""
    seconds: Mapping[int, float] = {}
    info: dict[str, Any] | None = None
    if inputs is not None:
        turns, total, seconds = _measure(plan, inputs, max_seconds, max_turns)
        info = {"iterations": turns, "secs_per_iter": total / turns}
    nodes = [_node_json(model, model.nodes[node_id], seconds.get(node_id)) for node_id in model.eval_order()]
    return json.dumps({"nodes": nodes, "profiling_info": info})


def _node_json(model: TypedModel, node: TypedNode, seconds: float | None) -> dict[str, Any]:
    return {
        "qualified_id": [[], node.id],
        "op_name": node.op.name,
        "node_name": node.name,
        "cost": {kind: str(count) for kind, count in node_cost(model, node).items()},
        "secs_per_iter": seconds,
    }


def _measure(
    plan: Plan, inputs: Sequence[Array], max_seconds: float, max_turns: int
) -> tuple[int, float, Mapping[int, float]]:
    """Number of turns, seconds they took in all, and seconds per turn of each node."""
    _turn(plan, inputs)
    total, turns = 0.0, 0
    spent: dict[int, float] = {}
    while turns == 0 or (total < max_seconds and turns < max_turns):
        start = perf_counter()
        for timing in _turn(plan, inputs):
            spent[timing.node] = spent.get(timing.node, 0.0) + timing.seconds
        total += perf_counter() - start
        turns += 1
    return turns, total, {node: seconds / turns for node, seconds in spent.items()}


def _turn(plan: Plan, inputs: Sequence[Array]) -> list[NodeTiming]:
    if isinstance(plan, TimedPlan):
        return plan.timed_run(inputs)
    plan.spawn().run(inputs)
    return []


def chrome_trace(model: TypedModel, plan: Plan, inputs: Sequence[Array]) -> str:
    """The JSON of `tract_core.Runnable.chrome_trace`. Raises Unsupported when the plan cannot time single nodes."""
    if not isinstance(plan, TimedPlan):
        raise Unsupported(
            f"runtime {plan.explain().runtime!r} does not time single nodes", hint="'reference' does; or profile_json"
        )
    timings = plan.timed_run(inputs)
    process = os.getpid()
    named = {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": plan.explain().runtime}}
    events = [named, *(_event(model, timing, process) for timing in timings)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _event(model: TypedModel, timing: NodeTiming, process: int) -> dict[str, Any]:
    facts = [str(fact) for fact in model.output_facts(model.nodes[timing.node])]
    return {
        "name": timing.name,
        "cat": timing.op,
        "ph": "X",
        "ts": timing.start * 1e6,
        "dur": timing.seconds * 1e6,
        "pid": process,
        "tid": 0,
        "args": {"op": timing.op, "outputs": facts},
    }
