"""A policy for many agents: ``python bench/bench_inferers.py [--runtime NAME]``

One thread, a policy of 64-256-256-8. Prints, for several numbers of agents, the median time of a step in microseconds:
of the bare ``Runnable.run`` on rows that lie side by side; through whole arrays (`infer_many`); through dictionaries
(`infer_batch`, with every response looked at); of ONNX Runtime with the same rows, with rows that are stacked by hand
from the dictionaries first, and called once per agent. All are called in turn, a short round each; what a column says
in addition to another one, and ratios, are medians of those of the rounds. Outputs are compared first. What was
measured is kept in ``bench/.measured/inferers`` for `docs/performance.md`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from stopwatch import seconds
from tract_inferers import DynamicInferer

import tract_core as tract
from networks.signals import policy

AGENTS = (1, 32, 100, 1024)
ROUNDS = 25
SECONDS = 0.02
"""How long one round of one of them takes."""
MEASURED = Path(__file__).parent / ".measured" / "inferers"
Step = Callable[[], Any]


def session_of(model: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def steps(inferer: DynamicInferer, runnable: Any, session: Any, count: int) -> dict[str, Step]:
    """What is compared, by name: each gives one action per agent, in the order of the agents."""
    rows = np.random.default_rng(count).standard_normal((count, 64), np.float32)
    ids = np.arange(count)
    batch = {agent: {"x": row} for agent, row in enumerate(rows)}
    (output,) = inferer.output_shapes()

    def dictionaries() -> list[np.ndarray]:
        return [response[output.name] for _, response in inferer.infer_batch(batch).items()]

    return {
        "bare": lambda: np.asarray(runnable.run([rows])[0]),
        "arrays": lambda: inferer.infer_many(ids, {"x": rows}).arrays[output.name],
        "dictionaries": dictionaries,
        "onnxruntime": lambda: session.run(None, {"x": rows})[0],
        "stacked": lambda: list(session.run(None, {"x": np.stack([one["x"] for one in batch.values()])})[0]),
        "per agent": lambda: [session.run(None, {"x": one["x"][None]})[0][0] for one in batch.values()],
    }


def measure(found: dict[str, Step]) -> list[dict[str, float]]:
    """The microseconds of each, by name, in each round."""
    want = found["stacked"]()
    for name, step in found.items():
        np.testing.assert_allclose(step(), want, rtol=1e-4, atol=1e-5, err_msg=name)
    return [{name: seconds(step, SECONDS) * 1e6 for name, step in found.items()} for _ in range(ROUNDS)]


def figures(count: int, rounds: list[dict[str, float]]) -> dict[str, float]:
    """What is told of so many agents: times in microseconds, and ratios."""

    def middle(of: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(map(of, rounds))

    return {
        "agents": count,
        **{name: middle(lambda one, name=name: one[name]) for name in rounds[0]},
        "arrays add": middle(lambda one: one["arrays"] - one["bare"]),
        "arrays / bare": middle(lambda one: one["arrays"] / one["bare"]),
        "dictionaries add per agent": middle(lambda one: (one["dictionaries"] - one["bare"]) / count),
        "onnxruntime / arrays": middle(lambda one: one["onnxruntime"] / one["arrays"]),
        "stacked / dictionaries": middle(lambda one: one["stacked"] / one["dictionaries"]),
        "per agent / arrays": middle(lambda one: one["per agent"] / one["arrays"]),
        "per agent / dictionaries": middle(lambda one: one["per agent"] / one["dictionaries"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", default="cpu")
    options = parser.parse_args()
    runtime = tract.runtime_for_name(options.runtime, **({"threads": 1} if options.runtime == "cpu" else {}))
    network = policy(2).model
    for value in (*network.graph.input, *network.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del network.graph.value_info[:]
    content = network.SerializeToString()
    inferer = DynamicInferer.from_model(tract.onnx().load_bytes(content), runtime=runtime)
    runnable = runtime.prepare(tract.onnx().load_bytes(content).into_model())
    session = session_of(content)
    kept = [figures(count, measure(steps(inferer, runnable, session, count))) for count in AGENTS]
    for name in kept[0]:
        print(f"{name:28}" + "".join(f"{one[name]:10.2f}" for one in kept))
    if options.runtime == "cpu":
        MEASURED.mkdir(parents=True, exist_ok=True)
        (MEASURED / "policy.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
