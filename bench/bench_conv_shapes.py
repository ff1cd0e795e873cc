"""Convolutions of single shapes, one thread: ``python bench/bench_conv_shapes.py [WORD ...]``

Behind each, the mean of all positions is taken, so that no large result is written as its shape says. Prints for each
the time of a run, its multiply-adds beside what registers alone do, and its bytes (what is read and written at least:
tensors and weights) beside what reading from the second cache does. Both are measured between the rounds; shares are
medians of those of the rounds. Outputs are compared with ONNX Runtime's. Wants onnx and onnxruntime.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from bench_convs import Net
from stopwatch import seconds
from tract_cpu.ceilings import Meter
from tract_llvm.isa import chosen

import tract_core as tract

ROUNDS = 9
SECONDS = 0.03
"""How long one round takes."""
NEAR = 1 << 19
"""Bytes that stay in the second cache."""


def plain(channels: tuple[int, int], size: int, kernel: int = 1, stride: int = 1, group: int = 1) -> Any:
    """One convolution with a rectifier. ``channels``: of its input and its output."""
    inputs, outputs = channels

    def make(net: Net, x: str) -> str:
        y = net.relu(net.conv(x, outputs, (kernel, kernel), stride, group=group))
        return net.add("GlobalAveragePool", y)

    work = outputs * (size // stride) ** 2 * inputs // group * kernel**2
    moved = inputs * size**2 + outputs * (size // stride) ** 2 + outputs * inputs // group * kernel**2
    return make, [1, inputs, size, size], work, moved


def inverted(width: int, inside: int, size: int, kernel: int = 3, stride: int = 1) -> Any:
    """An inverted residual block: expanded, summed channel by channel, projected."""

    def make(net: Net, x: str) -> str:
        y = net.relu6(net.conv(x, inside, (1, 1)))
        y = net.relu6(net.conv(y, inside, (kernel, kernel), stride, group=inside))
        return net.add("GlobalAveragePool", net.conv(y, width, (1, 1)))

    after = (size // stride) ** 2
    work = inside * (width * size**2 + (kernel**2 + width) * after)
    return make, [1, width, size, size], work, width * (size**2 + after) + inside * (2 * width + kernel**2)


SHAPES: dict[str, Any] = {
    "stem 7x7/2": plain((3, 64), 224, 7, 2),
    "stem 3x3/2": plain((3, 32), 224, 3, 2),
    "first 3x3": plain((3, 64), 128, 3),
    "3x3 64": plain((64, 64), 56, 3),
    "3x3 128": plain((128, 128), 28, 3),
    "3x3/2 128": plain((128, 128), 56, 3, 2),
    "pointwise 16-96": plain((16, 96), 112),
    "pointwise 24-144": plain((24, 144), 56),
    "pointwise 64-256": plain((64, 256), 56),
    "pointwise 480-80": plain((480, 80), 14),
    "pointwise 960-160": plain((960, 160), 7),
    "pointwise/2 256-512": plain((256, 512), 56, 1, 2),
    "depthwise 3x3": plain((192, 192), 28, 3, 1, 192),
    "depthwise 3x3/2": plain((96, 96), 112, 3, 2, 96),
    "depthwise 5x5": plain((240, 240), 28, 5, 1, 240),
    "depthwise 7x7": plain((96, 96), 56, 7, 1, 96),
    "grouped 3x3": plain((128, 128), 56, 3, 1, 4),
    "inverted 16-96": inverted(16, 96, 112),
    "inverted 24-144": inverted(24, 144, 56),
    "inverted 32-192": inverted(32, 192, 28),
    "inverted 40-240, 5x5": inverted(40, 240, 28, 5),
}


def measure(name: str, meter: Meter) -> None:
    """One line."""
    make, shape, work, moved = SHAPES[name]
    net = Net()
    net.channels["x"] = shape[1]
    content = net.model(shape, make(net, "x"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        path.write_bytes(content)
        model = tract.onnx().load(str(path)).into_model()
    state = tract.runtime_for_name("cpu", threads=1).prepare(model).spawn_state()
    engine: Any = onnxruntime  # its types are not known
    session: Any = engine.InferenceSession(content, providers=["CPUExecutionProvider"])
    image = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    found, wanted = np.asarray(state.run([image])[0]), session.run(None, {"x": image})[0]
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    times, operations, bytes_ = list[float](), list[float](), list[float]()
    for _ in range(ROUNDS):
        peak, read = meter.flops("f32", 1), meter.bytes_read(NEAR, 1)
        times.append(seconds(lambda: state.run([image]), SECONDS))
        operations.append(2 * work / times[-1] / peak)
        bytes_.append(4 * moved / times[-1] / read)
    time = statistics.median(times)
    of_peak, of_cache = statistics.median(operations), statistics.median(bytes_)
    done = f"{2 * work / time / 1e9:7.1f} GFLOP/s {of_peak:5.0%} {4 * moved / time / 1e9:6.1f} GB/s {of_cache:5.0%}"
    print(f"{name:22} {time * 1e6:9.1f} us {done} {error:9.1e}", flush=True)


def main() -> None:
    meter = Meter(chosen(""), 0.004)
    for name in SHAPES:
        if all(word in name for word in sys.argv[1:]):
            measure(name, meter)


if __name__ == "__main__":
    main()
