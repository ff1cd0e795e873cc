"""Recurrent networks on the CPU runtime beside ONNX Runtime: ``python bench/bench_loops.py``

One thread each; ``--threads 2`` for two. Prints the median time of a call in microseconds, and the time of ONNX
Runtime divided by ours: both are called in turn, and the ratio is the median of those of the rounds. Wants onnx and
onnxruntime.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from stopwatch import seconds

import tract_core as tract

ROUNDS = 15
SECONDS = 0.02
"""How long one round of one of them takes."""

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": ["h", "c"], "GRU": ["h"], "RNN": ["h"]}

Case = tuple[str, int, int, int, int, bool, dict[str, Any]]
"""Operator, layers, steps, batch, hidden units (and inputs), whether in both directions, attributes."""

CASES: dict[str, Case] = {
    "LSTM 128, 100 steps": ("LSTM", 1, 100, 1, 128, False, {}),
    "LSTM 128, 100 steps, batch 8": ("LSTM", 1, 100, 8, 128, False, {}),
    "LSTM 2 x 128, 100 steps": ("LSTM", 2, 100, 1, 128, False, {}),
    "LSTM 2 x 128, 100 steps, batch 8": ("LSTM", 2, 100, 8, 128, False, {}),
    "LSTM both ways 128, 100 steps": ("LSTM", 1, 100, 1, 128, True, {}),
    "LSTM both ways 2 x 128, 100 steps, batch 8": ("LSTM", 2, 100, 8, 128, True, {}),
    "LSTM 512, 20 steps": ("LSTM", 1, 20, 1, 512, False, {}),
    "LSTM 32, 100 steps": ("LSTM", 1, 100, 1, 32, False, {}),
    "GRU 128, 100 steps": ("GRU", 1, 100, 1, 128, False, {}),
    "GRU 128, reset behind the product": ("GRU", 1, 100, 1, 128, False, {"linear_before_reset": 1}),
    "GRU both ways 2 x 128, batch 8": ("GRU", 2, 100, 8, 128, True, {"linear_before_reset": 1}),
    "RNN 128, 100 steps": ("RNN", 1, 100, 1, 128, False, {}),
}


def network(case: Case) -> Any:
    """Layers of one kind, one on the other."""
    kind, layers, steps, batch, size, both, attributes = case
    rng, directions = np.random.default_rng(0), 1 + both
    nodes: list[Any] = []
    weights: list[Any] = []
    x, width, last = "x", size, list[str]()
    for layer in range(layers):
        rows = GATES[kind] * size
        shapes = {"w": [directions, rows, width], "r": [directions, rows, size], "b": [directions, 2 * rows]}
        for label, shape in shapes.items():
            array = (rng.standard_normal(shape) / np.sqrt(size)).astype(np.float32)
            weights.append(onnx.numpy_helper.from_array(array, f"{label}{layer}"))
        direction = "bidirectional" if both else "forward"
        last = [f"{name}{layer}" for name in STATES[kind]]
        inputs = [x, f"w{layer}", f"r{layer}", f"b{layer}"]
        nodes.append(
            helper.make_node(kind, inputs, [f"y{layer}", *last], hidden_size=size, direction=direction, **attributes)
        )
        nodes.append(helper.make_node("Transpose", [f"y{layer}"], [f"t{layer}"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [f"t{layer}", "shape"], [f"x{layer}"]))
        x, width = f"x{layer}", size * directions
    weights.append(onnx.numpy_helper.from_array(np.array([steps, batch, -1], np.int64), "shape"))
    outputs = [x, *last]
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [steps, batch, size])],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def ours(path: Path, x: np.ndarray[Any, Any], threads: int) -> Callable[[], Any]:
    runnable = tract.runtime_for_name("cpu", threads=threads).prepare(tract.load(path))
    return lambda: runnable.run([x])


def theirs(path: Path, x: np.ndarray[Any, Any], threads: int) -> Callable[[], Any]:
    engine: Any = onnxruntime  # its types are not known
    options = engine.SessionOptions()
    options.intra_op_num_threads = threads
    session = engine.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})


def main() -> None:
    threads = int(sys.argv[2]) if sys.argv[1:2] == ["--threads"] else 1
    print(f"{'':50}{'us':>9}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.onnx"
        for name, case in CASES.items():
            onnx.save(network(case), path)
            _, _, steps, batch, size, _, _ = case
            x = np.random.default_rng(0).standard_normal([steps, batch, size]).astype(np.float32)
            mine, other = ours(path, x, threads), theirs(path, x, threads)
            for found, wanted in zip(mine(), other(), strict=True):
                np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-3, atol=1e-4)
            rounds = [(seconds(mine, SECONDS), seconds(other, SECONDS)) for _ in range(ROUNDS)]
            median = statistics.median(one for one, _ in rounds)
            ratio = statistics.median(their / one for one, their in rounds)
            print(f"{name:50}{median * 1e6:9.1f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
