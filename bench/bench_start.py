"""How long does a cold start take? CPU time of fresh processes, as a multiple of that of ``import numpy, onnx``.

    python bench/bench_start.py [ROUNDS]

The processes take turns, so that what else the machine does hits all of them alike; the least of each is compared, as
only that is the same from run to run. Bytecode is kept, as installed packages have it. ResNet-50 is built here, with
random weights.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

DIGITS = str(Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx")
BASE = "import numpy, onnx"
LOAD = "import sys, tract_core as tract; model = tract.onnx().load(sys.argv[1]).into_model()"
PREPARE = f"{LOAD}; tract.runtime_for_name('reference').prepare(model)"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        resnet = Path(folder) / "resnet50.onnx"
        resnet.write_bytes(resnet50().SerializeToString())
        starts = {
            BASE: ["-c", BASE],
            "import numpy": ["-c", "import numpy"],
            "import tract_core": ["-c", "import tract_core"],
            "tract --help": ["-m", "tract_core", "--help"],
            "digits loaded and prepared": ["-c", PREPARE, DIGITS],
            "ResNet-50 loaded and decluttered": ["-c", LOAD, str(resnet)],
            "tract digits.onnx": ["-m", "tract_core", DIGITS],
        }
        least = dict.fromkeys(starts, float("inf"))
        for _ in range(rounds):
            for name, arguments in starts.items():
                least[name] = min(least[name], cpu_seconds(arguments))
    for name, seconds in least.items():
        print(f"{name:<40} {seconds * 1e3:7.0f} ms {seconds / least[BASE]:6.2f}")


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of a fresh interpreter, whose output goes nowhere."""
    null = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = os.posix_spawn(sys.executable, [sys.executable, *arguments], environment, file_actions=[null])
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{arguments} failed")
    return usage.ru_utime + usage.ru_stime


class Network:
    """A graph that grows: each method adds a layer on top of a tensor and returns the name of the result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(0)

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def weight(self, *shape: int) -> str:
        array = self.random.standard_normal(shape, np.float32) * np.float32(0.05)
        self.weights.append(numpy_helper.from_array(array, f"weight{len(self.weights)}"))
        return self.weights[-1].name

    def conv(self, x: str, channels: tuple[int, int], size: int = 1, stride: int = 1) -> str:
        weights = self.weight(channels[1], channels[0], size, size), self.weight(channels[1])
        return self.add("Conv", x, *weights, strides=[stride] * 2, pads=[size // 2] * 4, kernel_shape=[size] * 2)

    def bottleneck(self, x: str, before: int, inside: int, stride: int) -> str:
        y = self.add("Relu", self.conv(x, (before, inside)))
        y = self.add("Relu", self.conv(y, (inside, inside), 3, stride))
        y = self.conv(y, (inside, 4 * inside))
        if before != 4 * inside:
            x = self.conv(x, (before, 4 * inside), 1, stride)
        return self.add("Relu", self.add("Add", y, x))


def resnet50() -> onnx.ModelProto:
    """ResNet-50 as exporters write it, the batch normalisations folded into the convolutions."""
    network = Network()
    x = network.add("Relu", network.conv("x", (3, 64), 7, 2))
    x = network.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            x = network.bottleneck(x, channels, 64 << stage, 2 if stage and not block else 1)
            channels = 256 << stage
    x = network.add("Flatten", network.add("GlobalAveragePool", x))
    y = network.add("Gemm", x, network.weight(1000, 2048), network.weight(1000), transB=1)
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 3, 224, 224])
    result = helper.make_tensor_value_info(y, onnx.TensorProto.FLOAT, ["batch", 1000])
    graph = helper.make_graph(network.nodes, "resnet50", [given], [result], network.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    main()
