"""Networks of convolutions on the CPU runtime beside ONNX Runtime: ``python bench/bench_convs.py [NAME ... | layers]``

One thread each, random weights. Prints the median time of a run in milliseconds, ONNX Runtime's time divided by ours
(both are called in turn; the ratio is the median of those of the rounds), the largest difference of the outputs beside
the largest output, and operators that native code leaves to the host.
``layers`` are single 3 x 3 convolutions, each four times behind one another: the time of one, operations a second that
direct sums would take, beside what the processor can do, how many times as fast as direct sums Winograd's method is,
and the largest errors of both beside the largest output.
Wants onnx and onnxruntime.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from stopwatch import seconds
from tract_cpu.ceilings import Meter
from tract_llvm.isa import chosen

import tract_core as tract

ROUNDS = 9
SECONDS = 0.15
"""How long one round of one of them takes, at least."""


class Net:
    """An ONNX graph while it is made: methods add nodes behind a tensor, and return the name of what comes out."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.channels: dict[str, int] = {}
        self._random = np.random.default_rng(0)

    def add(self, kind: str, *inputs: str, channels: int | None = None, **attributes: Any) -> str:
        """One node; ``channels``: of the output, those of the first input by default."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        self.channels[name] = self.channels[inputs[0]] if channels is None else channels
        return name

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def _random_weights(self, shape: Sequence[int], inputs: int) -> str:
        return self.constant((self._random.standard_normal(shape) * np.sqrt(1.5 / inputs)).astype(np.float32))

    def conv(
        self,
        x: str,
        channels: int,
        kernel: Sequence[int],
        stride: int = 1,
        *,
        group: int = 1,
        dilation: int = 1,
        pads: Any = None,
    ) -> str:
        """A convolution with a bias, its padding such that a stride of 1 keeps the sizes."""
        inputs = self.channels[x] // group
        if pads is None:
            pads = [dilation * (size - 1) // 2 for size in kernel] * 2
        weights = self._random_weights([channels, inputs, *kernel], inputs * prod(kernel))
        bias, rank = self._random_weights([channels], 10), len(kernel)
        return self.add(
            "Conv", x, weights, bias, channels=channels, group=group, pads=pads,
            strides=[stride] * rank, dilations=[dilation] * rank, kernel_shape=list(kernel),
        )  # fmt: skip

    def deconv(self, x: str, channels: int, kernel: int, stride: int) -> str:
        """A deconvolution that multiplies the sizes by its stride."""
        inputs, cut = self.channels[x], kernel - stride
        weights = self._random_weights([inputs, channels, kernel, kernel], inputs)
        pads = [cut // 2] * 2 + [cut - cut // 2] * 2
        bias = self._random_weights([channels], 10)
        return self.add(
            "ConvTranspose",
            x,
            weights,
            bias,
            channels=channels,
            strides=[stride] * 2,
            pads=pads,
            kernel_shape=[kernel] * 2,
        )

    def relu(self, x: str) -> str:
        return self.add("Relu", x)

    def relu6(self, x: str) -> str:
        return self.add("Clip", x, self.constant(np.array(0, np.float32)), self.constant(np.array(6, np.float32)))

    def hard_swish(self, x: str) -> str:
        return self.add("HardSwish", x)

    def pool(self, x: str, kind: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self.add(kind, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def classes(self, x: str, count: int) -> str:
        """The mean over all positions, then one number for every class."""
        flat = self.add("Flatten", self.add("GlobalAveragePool", x), axis=1)
        weights = self._random_weights([self.channels[x], count], self.channels[x])
        return self.add("Gemm", flat, weights, self._random_weights([count], 10), channels=count)

    def model(self, shape: Sequence[Any], output: str) -> bytes:
        """The graph with one input, ``x``."""
        kind = onnx.TensorProto.FLOAT
        x, y = helper.make_tensor_value_info("x", kind, shape), helper.make_tensor_value_info(output, kind, None)
        graph = helper.make_graph(self.nodes, "net", [x], [y], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return model.SerializeToString()


def resnet50(net: Net, x: str) -> str:
    x = net.pool(net.relu(net.conv(x, 64, (7, 7), 2, pads=[3] * 4)), "MaxPool", 3, 2, 1)
    for number, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
        for block in range(blocks):
            stride = 2 if number and not block else 1
            y = net.relu(net.conv(x, width, (1, 1)))
            y = net.conv(net.relu(net.conv(y, width, (3, 3), stride)), 4 * width, (1, 1))
            x = net.relu(net.add("Add", y, x if block else net.conv(x, 4 * width, (1, 1), stride)))
    return net.classes(x, 1000)


def mobilenet_v2(net: Net, x: str) -> str:
    x = net.relu6(net.conv(x, 32, (3, 3), 2))
    for expand, width, blocks, first in [
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ]:  # fmt: skip
        for block in range(blocks):
            stride, hidden = first if not block else 1, net.channels[x] * expand
            y = net.relu6(net.conv(x, hidden, (1, 1))) if expand > 1 else x
            y = net.conv(net.relu6(net.conv(y, hidden, (3, 3), stride, group=hidden)), width, (1, 1))
            x = net.add("Add", y, x) if block else y
    return net.classes(net.relu6(net.conv(x, 1280, (1, 1))), 1000)


def vgg(net: Net, x: str) -> str:
    for width, layers in [(64, 2), (128, 2), (256, 3), (512, 3)]:
        for _ in range(layers):
            x = net.relu(net.conv(x, width, (3, 3)))
        x = net.pool(x, "MaxPool", 2, 2)
    return net.classes(x, 1000)


def squeeze_excite(net: Net, x: str) -> str:
    """Depthwise-separable layers with hard-swish, and channels weighted by what their means say."""
    x = net.hard_swish(net.conv(x, 16, (3, 3), 2))
    for width, kernel, stride, expand in [
        (16, 3, 2, 1), (24, 3, 2, 4), (24, 3, 1, 4), (40, 5, 2, 4), (40, 5, 1, 6), (48, 5, 1, 3),
        (96, 5, 2, 6), (96, 5, 1, 6),
    ]:  # fmt: skip
        hidden = net.channels[x] * expand
        y = net.hard_swish(net.conv(x, hidden, (1, 1)))
        y = net.hard_swish(net.conv(y, hidden, (kernel, kernel), stride, group=hidden))
        squeezed = net.relu(net.conv(net.add("GlobalAveragePool", y), hidden // 4, (1, 1)))
        y = net.add("Mul", y, net.add("HardSigmoid", net.conv(squeezed, hidden, (1, 1)), alpha=1 / 6))
        y = net.conv(y, width, (1, 1))
        x = net.add("Add", y, x) if stride == 1 and width == net.channels[x] else y
    return net.classes(net.hard_swish(net.conv(x, 576, (1, 1))), 1000)


def unet(net: Net, x: str) -> str:
    kept: list[str] = []

    def twice(x: str, width: int) -> str:
        return net.relu(net.conv(net.relu(net.conv(x, width, (3, 3))), width, (3, 3)))

    for width in (32, 64, 128):
        x = twice(x, width)
        kept.append(x)
        x = net.pool(x, "MaxPool", 2, 2)
    x = twice(x, 256)
    for width in (128, 64, 32):
        x = net.deconv(x, width, 2, 2)
        x = twice(net.add("Concat", x, kept.pop(), channels=2 * width, axis=1), width)
    return net.conv(x, 2, (1, 1))


def unet_resized(net: Net, x: str) -> str:
    """Sizes are doubled by linear interpolation, and by deconvolutions of overlapping windows."""
    first = x = net.relu(net.conv(x, 32, (3, 3)))
    second = x = net.relu(net.conv(x, 64, (3, 3), 2))
    x = net.relu(net.conv(x, 128, (3, 3), 2))
    x = net.relu(net.deconv(x, 64, 4, 2))
    x = net.relu(net.conv(net.add("Concat", x, second, channels=128, axis=1), 64, (3, 3)))
    scales = net.constant(np.array([1, 1, 2, 2], np.float32))
    x = net.add("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
    x = net.relu(net.conv(net.add("Concat", x, first, channels=96, axis=1), 32, (3, 3)))
    return net.conv(x, 2, (1, 1))


def squeezenet(net: Net, x: str) -> str:
    x = net.pool(net.relu(net.conv(x, 64, (3, 3), 2, pads=[0] * 4)), "MaxPool", 3, 2)
    for number, (squeeze, expand) in enumerate([(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (64, 256)]):
        if number in (2, 4):
            x = net.pool(x, "MaxPool", 3, 2)
        x = net.relu(net.conv(x, squeeze, (1, 1)))
        parts = [net.relu(net.conv(x, expand, (size, size))) for size in (1, 3)]
        x = net.add("Concat", *parts, channels=2 * expand, axis=1)
    return net.add("GlobalAveragePool", net.relu(net.conv(x, 1000, (1, 1))))


def densenet(net: Net, x: str) -> str:
    x = net.pool(net.relu(net.conv(x, 64, (7, 7), 2, pads=[3] * 4)), "MaxPool", 3, 2, 1)
    for number, layers in enumerate((6, 12)):
        for _ in range(layers):
            y = net.relu(net.conv(net.relu(x), 128, (1, 1)))
            y = net.conv(y, 32, (3, 3))
            x = net.add("Concat", x, y, channels=net.channels[x] + 32, axis=1)
        if not number:
            x = net.pool(net.conv(net.relu(x), net.channels[x] // 2, (1, 1)), "AveragePool", 2, 2)
    return net.classes(net.relu(x), 1000)


def grouped(net: Net, x: str) -> str:
    """Layers of 32 groups of 4 channels, and of 4 groups of 32."""
    x = net.relu(net.conv(x, 64, (7, 7), 4, pads=[3] * 4))
    for group in (32, 32, 4, 4):
        y = net.relu(net.conv(x, 128, (1, 1)))
        y = net.conv(net.relu(net.conv(y, 128, (3, 3), group=group)), 256, (1, 1))
        x = net.relu(net.add("Add", y, x) if net.channels[x] == net.channels[y] else y)
    return net.classes(x, 1000)


def causal_depthwise(net: Net, x: str) -> str:
    x = net.conv(x, 128, (1,))
    for number in range(8):
        dilation = 2 ** (number % 4)
        y = net.relu(net.conv(x, 128, (5,), group=128, dilation=dilation, pads=[4 * dilation, 0]))
        x = net.add("Add", x, net.relu(net.conv(y, 128, (1,))))
    return net.conv(x, 20, (1,))


def wavenet(net: Net, x: str) -> str:
    x = net.conv(x, 32, (1,))
    skips: list[str] = []
    for number in range(10):
        dilation = 2 ** (number % 5)
        both = [net.conv(x, 32, (2,), dilation=dilation, pads=[dilation, 0]) for _ in range(2)]
        gated = net.add("Mul", net.add("Tanh", both[0]), net.add("Sigmoid", both[1]))
        skips.append(net.conv(gated, 32, (1,)))
        x = net.add("Add", x, net.conv(gated, 32, (1,)))
    total = skips[0]
    for skip in skips[1:]:
        total = net.add("Add", total, skip)
    return net.conv(net.relu(net.conv(net.relu(total), 32, (1,))), 12, (1,))


def speech_encoder(net: Net, x: str) -> str:
    """Strided layers on samples, then wide ones on frames."""
    for number, (kernel, stride) in enumerate([(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]):
        x = net.add("Tanh", net.conv(x, 256 if number else 128, (kernel,), stride, pads=[0, 0]))
    for _ in range(3):
        y = net.conv(x, 256, (31,), group=256)
        y = net.conv(net.add("Mul", y, net.add("Sigmoid", y)), 512, (1,))
        x = net.add("Add", x, net.conv(net.relu(y), 256, (3,)))
    return net.conv(x, 80, (1,))


NETS: dict[str, tuple[Callable[[Net, str], str], list[int]]] = {
    "resnet50": (resnet50, [1, 3, 224, 224]),
    "mobilenet_v2": (mobilenet_v2, [1, 3, 224, 224]),
    "vgg": (vgg, [1, 3, 128, 128]),
    "squeeze_excite": (squeeze_excite, [1, 3, 224, 224]),
    "unet": (unet, [1, 3, 192, 192]),
    "unet_resized": (unet_resized, [1, 3, 160, 160]),
    "squeezenet": (squeezenet, [1, 3, 224, 224]),
    "densenet": (densenet, [1, 3, 160, 160]),
    "grouped": (grouped, [1, 3, 224, 224]),
    "causal_depthwise": (causal_depthwise, [1, 40, 400]),
    "wavenet": (wavenet, [1, 20, 200]),
    "speech_encoder": (speech_encoder, [1, 1, 16000]),
}


def measure(name: str) -> float:
    """One line, and the ratio."""
    make, shape = NETS[name]
    net = Net()
    net.channels["x"] = shape[1]
    output = make(net, "x")
    content = net.model(shape, output)
    model = loaded(content)
    begin = perf_counter()
    runnable = tract.runtime_for_name("cpu", threads=1).prepare(model)
    prepared = perf_counter() - begin
    engine: Any = onnxruntime  # its types are not known
    options = engine.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session: Any = engine.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    image = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    state = runnable.spawn_state()
    ours, theirs = (lambda: state.run([image])), (lambda: session.run(None, {"x": image}))
    found, wanted = np.asarray(ours()[0]), theirs()[0]
    error, scale = float(np.abs(found - wanted).max()), float(np.abs(wanted).max())
    pairs = [(seconds(ours, SECONDS), seconds(theirs, SECONDS)) for _ in range(ROUNDS)]
    own, ratio = statistics.median(one for one, _ in pairs), statistics.median(b / a for a, b in pairs)
    hosted = sorted({op for one in runnable.explain().placements if one.how == "numpy" for op in one.ops})
    print(
        f"{name:17} {own * 1e3:9.3f} ms {ratio:6.2f} {error / scale:9.1e} {prepared:7.2f} s {' '.join(hosted)}",
        flush=True,
    )
    return ratio


LAYERS = [(16, 64), (32, 128), (64, 128), (64, 56), (128, 64), (128, 28), (256, 32), (256, 14), (512, 16), (512, 7)]
"""Channels, and the size of both axes."""

BEHIND = 4
"""How often a layer is there."""


def measure_layer(channels: int, size: int) -> float:
    """One line for a layer, by Winograd's method and directly, and the ratio."""
    net, shape = Net(), [1, channels, size, size]
    net.channels["x"] = channels
    output = "x"
    for _ in range(BEHIND):
        output = net.relu(net.conv(output, channels, (3, 3)))
    image = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    x = image.astype(np.float64)
    for place in range(BEHIND):
        weights, bias = (numpy_helper.to_array(one) for one in net.weights[2 * place : 2 * place + 2])
        x = np.maximum(summed(x, weights.astype(np.float64)) + bias[:, None, None], 0)
    states = [
        tract.runtime_for_name("cpu", threads=1, winograd=way).prepare(loaded(net.model(shape, output))).spawn_state()
        for way in (True, False)
    ]
    calls = [partial(state.run, [image]) for state in states]
    errors = [float(np.abs(np.asarray(call()[0]) - x).max() / np.abs(x).max()) for call in calls]
    rounds = [[seconds(call, SECONDS) for call in calls] for _ in range(ROUNDS)]
    peak = Meter(chosen(""), 0.05).ceilings(1).operations_per_s / 1e9
    own = statistics.median(one for one, _ in rounds) / BEHIND
    ratio = statistics.median(direct / one for one, direct in rounds)
    speed = 18 * channels**2 * size**2 / own / 1e9
    print(
        f"{channels:4} at {size:3} x {size:3} {own * 1e3:8.3f} ms {speed:5.0f} GFLOP/s of {peak:4.0f} {ratio:6.2f} "
        f"{errors[0]:9.1e} {errors[1]:9.1e}",
        flush=True,
    )
    return ratio


def summed(x: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The 3 x 3 convolution of [1, channels, height, width], which keeps the sizes."""
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    size, total = x.shape[-1], np.zeros((1, len(weights), *x.shape[2:]))
    for i, j in np.ndindex(3, 3):
        part = wide[..., i : i + size, j : j + size]
        total += np.einsum("ncyx,oc->noyx", part, weights[..., i, j], optimize=True)
    return total


def loaded(content: bytes) -> Any:
    """The model of an ONNX file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        path.write_bytes(content)
        return tract.onnx().load(str(path)).into_model()


def main() -> None:
    if sys.argv[1:] == ["layers"]:
        print(f"{'geometric mean':17} {statistics.geometric_mean(measure_layer(*one) for one in LAYERS):6.2f}")
        return
    names = sys.argv[1:] or list(NETS)
    print(f"{'network':17} {'tract cpu':>12} {'x ORT':>6} {'error':>9} {'prepare':>9}  left to the host")
    ratios = [measure(name) for name in names]
    print(f"{'geometric mean':17} {'':12} {statistics.geometric_mean(ratios):6.2f}")


if __name__ == "__main__":
    main()
