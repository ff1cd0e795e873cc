"""Networks of TFLite beside LiteRT: ``python bench/bench_tflite.py [NAME ...] [--kinds int8] [--threads 1 2] [--json]``

Keras makes the networks, with random weights and statistics, and TensorFlow converts them: in floats, with weights in
bytes (``dynamic``), and in bytes altogether (``int8``). For each: milliseconds of a run on `cpu` and in LiteRT with
XNNPACK, which is how it runs by default, medians of rounds in turn in one process; how many times as fast that is; and
how far both lie from LiteRT's reference kernels, in steps of the output or relative to its largest number.

Needs an environment of its own: `make bench-tflite`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from stopwatch import seconds

KINDS = ("int8", "dynamic", "float")
ROUNDS = 15
AT_LEAST = 0.05  # seconds of a round


def mobilenet_v2(keras: Any) -> Any:
    """Images of 224 by 224."""
    return keras.applications.MobileNetV2((224, 224, 3), weights=None, classifier_activation=None)


def mobilenet_v3(keras: Any) -> Any:
    """The small one, with HARD_SWISH and with scales of channels."""
    return keras.applications.MobileNetV3Small(
        (224, 224, 3), weights=None, classifier_activation=None, include_preprocessing=False
    )


BLOCKS = (
    (3, 1, 1, 16, 1), (3, 2, 6, 24, 2), (5, 2, 6, 40, 2), (3, 2, 6, 80, 3), (5, 1, 6, 112, 3), (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)  # fmt: skip
"""Of EfficientNet-Lite0: the kernel's size, the stride of the first block, how much wider it is inside, the channels
that come out, and how many such blocks there are."""


def efficientnet_lite(keras: Any) -> Any:
    """EfficientNet-Lite0: images of 224 by 224; EfficientNet without scales of channels, with RELU6."""
    layers = keras.layers

    def conv(x: Any, layer: Any, relu: bool = True) -> Any:
        x = layers.BatchNormalization()(layer(x))
        return layers.ReLU(6.0)(x) if relu else x

    def plain(channels: int, size: int = 1, stride: int = 1) -> Any:
        return layers.Conv2D(channels, size, stride, "same", use_bias=False)

    x = given = keras.Input((224, 224, 3))
    x = conv(x, plain(32, 3, 2))
    for size, first, wider, channels, times in BLOCKS:
        for stride in (first, *(1,) * (times - 1)):
            before = x
            x = conv(x, plain(x.shape[-1] * wider)) if wider > 1 else x
            x = conv(x, layers.DepthwiseConv2D(size, stride, "same", use_bias=False))
            x = conv(x, plain(channels), relu=False)
            x = layers.Add()([before, x]) if stride == 1 and before.shape[-1] == channels else x
    x = layers.GlobalAveragePooling2D()(conv(x, plain(1280)))
    return keras.Model(given, layers.Dense(1000)(x))


def keyword_spotter(keras: Any) -> Any:
    """Separable convolutions over 49 windows of 10 coefficients, which tell 12 words."""
    layers = keras.layers
    x = given = keras.Input((49, 10, 1))
    for block in range(5):
        kernel, stride = ((10, 4), (2, 2)) if block == 0 else ((3, 3), (1, 1))
        if block:
            x = layers.DepthwiseConv2D(kernel, padding="same", use_bias=False)(x)
            x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
            kernel = (1, 1)
        x = layers.Conv2D(64, kernel, stride, "same", use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(given, layers.Dense(12, "softmax")(x))


NETWORKS: dict[str, Callable[[Any], Any]] = {
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3": mobilenet_v3,
    "efficientnet_lite": efficientnet_lite,
    "keyword_spotter": keyword_spotter,
}


def make(name: str, kind: str, path: Path) -> None:
    """Write a network, with batches of one."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    model, random = NETWORKS[name](tf.keras), np.random.default_rng(0)
    for layer in model.layers:
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            scale, shift, mean, variance = (one.shape for one in layer.get_weights())
            layer.set_weights([
                random.uniform(0.7, 1.3, scale), random.normal(0, 0.2, shift), random.normal(0, 0.1, mean),
                random.uniform(0.5, 1.5, variance),
            ])  # fmt: skip
    shape = (1, *model.input_shape[1:])
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "int8":
        converter.representative_dataset = lambda: (
            [random.standard_normal(shape).astype(np.float32)] for _ in range(8)
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    path.write_bytes(converter.convert())


class LiteRt:
    """A network in LiteRT. ``kernels``: which; those that run by default, with XNNPACK, where none are named."""

    def __init__(self, content: bytes, threads: int, kernels: str = "AUTO") -> None:
        from ai_edge_litert import interpreter

        which = interpreter.OpResolverType[kernels]
        self._engine: Any = interpreter.Interpreter(
            model_content=content, num_threads=threads, experimental_op_resolver_type=which
        )
        (self.given,), (self._result,) = self._engine.get_input_details(), self._engine.get_output_details()
        self._engine.resize_tensor_input(self.given["index"], [1, *self.given["shape"][1:]])
        self._engine.allocate_tensors()

    def __call__(self, x: Any) -> Any:
        """The output."""
        self._engine.set_tensor(self.given["index"], x)
        self._engine.invoke()
        return self._engine.get_tensor(self._result["index"])


def measured(content: bytes, threads: int) -> dict[str, float]:
    """Milliseconds, and distances from the reference kernels."""
    import tract_core as tract

    theirs = LiteRt(content, threads)
    x = np.random.default_rng(1).standard_normal([1, *theirs.given["shape"][1:]]).astype(np.float32)
    if theirs.given["dtype"] is np.int8:
        scale, zero = theirs.given["quantization"]
        x = np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8)
    runnable = tract.runtime_for_name("cpu", threads=threads).prepare(tract.load_bytes(content))
    wanted = LiteRt(content, threads, "BUILTIN_REF")(x).astype(np.float64)
    unit = 1.0 if x.dtype == np.int8 else float(np.abs(wanted).max())
    distances = [
        float(np.abs(found.astype(np.float64) - wanted).max()) / unit
        for found in (runnable.run([x])[0].to_numpy(), theirs(x))
    ]
    pairs = [
        (seconds(lambda: runnable.run([x]), AT_LEAST), seconds(lambda: theirs(x), AT_LEAST)) for _ in range(ROUNDS)
    ]
    ours, lite = (1e3 * median(column) for column in zip(*pairs, strict=True))
    return {"ours": ours, "litert": lite, "distance": distances[0], "litert distance": distances[1]}


def rows(names: list[str], kinds: list[str], threads: list[int]) -> Iterator[dict[str, Any]]:
    """Each network is made in a process of its own, as TensorFlow keeps threads."""
    for name in names:
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "network.tflite"
                subprocess.run([sys.executable, __file__, "--make", name, kind, path], check=True, capture_output=True)
                for count in threads:
                    yield {"network": name, "kind": kind, "threads": count, **measured(path.read_bytes(), count)}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *NETWORKS], metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.make[0], options.make[1], Path(options.make[2]))
        return
    for row in rows(options.names or list(NETWORKS), options.kinds, options.threads):
        if options.json:
            print(json.dumps(row), flush=True)
            continue
        faster = row["litert"] / row["ours"]
        print(
            f"{row['network']:17} {row['kind']:8} {row['threads']} threads  {row['ours']:8.2f} ms  LiteRT "
            f"{row['litert']:8.2f} ms  {faster:5.2f} times as fast  from the reference: {row['distance']:.2g}, LiteRT "
            f"{row['litert distance']:.2g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
