"""Reductions, softmax, norms and pools on the CPU runtime beside ONNX Runtime: ``python bench/bench_rows.py``

One thread each. Prints the median time of a call in microseconds, and ONNX Runtime's time divided by ours: both are
called in turn, and the ratio is the median of those of the rounds. Wants onnx and onnxruntime.
"""

from __future__ import annotations

import statistics
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
SECONDS = 0.01
"""How long one round of one of them takes."""

Case = tuple[str, list[int], dict[str, Any], list[np.ndarray[Any, Any]]]


def ones(size: int) -> list[np.ndarray[Any, Any]]:
    return [np.ones(size, np.float32), np.ones(size, np.float32)]


def along(*axes: int) -> list[np.ndarray[Any, Any]]:
    return [np.array(axes, np.int64)]


CASES: dict[str, Case] = {
    "softmax of 1,536 rows of 128": ("Softmax", [12, 128, 128], {"axis": -1}, []),
    "softmax of 197 x 12 rows of 197": ("Softmax", [12, 197, 197], {"axis": -1}, []),
    "softmax of one row of 32,000": ("Softmax", [1, 32000], {"axis": -1}, []),
    "softmax across 21 channels": ("Softmax", [1, 21, 128, 128], {"axis": 1}, []),
    "log-softmax of 64 rows of 1,000": ("LogSoftmax", [64, 1000], {"axis": -1}, []),
    "layer norm of 128 rows of 768": ("LayerNormalization", [128, 768], {"axis": -1}, ones(768)),
    "layer norm of 4,096 rows of 64": ("LayerNormalization", [4096, 64], {"axis": -1}, ones(64)),
    "instance norm of 64 planes of 56 x 56": ("InstanceNormalization", [1, 64, 56, 56], {}, ones(64)),
    "sum along rows of 1,024 x 1,024": ("ReduceSum", [1024, 1024], {}, along(1)),
    "sum along columns of 1,024 x 1,024": ("ReduceSum", [1024, 1024], {}, along(0)),
    "sum of 1,024 x 1,024": ("ReduceSum", [1024, 1024], {}, along(0, 1)),
    "norm of rows of 1,024 x 1,024": ("ReduceL2", [1024, 1024], {}, along(1)),
    "largest of rows of 1,024 x 1,024": ("ReduceMax", [1024, 1024], {}, along(1)),
    "place of the largest of rows of 1,024 x 1,024": ("ArgMax", [1024, 1024], {"axis": 1}, []),
    "global average of 2,048 planes of 7 x 7": ("GlobalAveragePool", [1, 2048, 7, 7], {}, []),
    "max pool 3 x 3, stride 2, of 64 planes of 112 x 112": (
        "MaxPool",
        [1, 64, 112, 112],
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        [],
    ),
    "max pool 2 x 2, stride 2, of 64 planes of 224 x 224": (
        "MaxPool",
        [1, 64, 224, 224],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        [],
    ),
    "average pool 3 x 3 of 64 planes of 56 x 56": (
        "AveragePool",
        [1, 64, 56, 56],
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        [],
    ),
    "running sums along rows of 1,024 x 1,024": ("CumSum", [1024, 1024], {}, [np.array(1, np.int64)]),
    "10 largest of 64 rows of 1,000": ("TopK", [64, 1000], {}, [np.array([10], np.int64)]),
}


def write(case: Case, path: Path) -> None:
    kind, shape, attributes, constants = case
    names = [f"c{number}" for number in range(len(constants))]
    outputs = ["y", "places"] if kind == "TopK" else ["y"]
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", *names], outputs, **attributes)],
        "case",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [onnx.numpy_helper.from_array(array, name) for array, name in zip(constants, names, strict=True)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


def ours(path: Path, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
    runnable = tract.runtime_for_name("cpu", threads=1).prepare(tract.load(path))
    return lambda: runnable.run([x])


def theirs(path: Path, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
    engine: Any = onnxruntime  # its types are not known
    options = engine.SessionOptions()
    options.intra_op_num_threads = 1
    session = engine.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})


def main() -> None:
    print(f"{'':55}{'us':>9}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.onnx"
        for name, case in CASES.items():
            write(case, path)
            x = np.random.default_rng(0).standard_normal(case[1]).astype(np.float32)
            mine, other = ours(path, x), theirs(path, x)
            np.testing.assert_allclose(np.asarray(mine()[0]), other()[0], rtol=1e-3, atol=1e-4)
            rounds = [(seconds(mine, SECONDS), seconds(other, SECONDS)) for _ in range(ROUNDS)]
            median = statistics.median(one for one, _ in rounds)
            ratio = statistics.median(their / one for one, their in rounds)
            print(f"{name:55}{median * 1e6:9.1f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
