"""How much a network computes, and which of our kernels its time goes to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np


def bounds_of(runnable: Any, inputs: Sequence[np.ndarray]) -> dict[str, Any]:
    """Of one run of a `tract_core.Runnable`: ``operations``, multiplications and additions; ``kernels``: the share of
    the time of each kind, the largest first, as `Runnable.explain` calls them.

    A profile goes step by step through a network, which takes some microseconds for each.
    """
    found = json.loads(runnable.profile_json(inputs))
    single = [(entry, entry["qualified_id"]) for entry in found["nodes"] if "group" not in entry]
    timed = [*single, *((entry, entry["qualified_ids"][0]) for entry in found["groups"])]
    kinds = {node: one.how for one in runnable.explain().placements for node in one.part.nodes if not one.part.body}
    operations, seconds = 0, dict[str, float]()
    for entry, (way, node) in timed:
        if not way and entry.get("secs_per_iter") is not None:
            operations += entry["operations"] or 0
            seconds[kinds[node]] = seconds.get(kinds[node], 0.0) + entry["secs_per_iter"]
    total = sum(seconds.values())
    kernels = {kind: part / total for kind, part in sorted(seconds.items(), key=lambda one: -one[1])}
    return {"operations": operations, "kernels": kernels}
