"""How long simplifying takes: networks of about 2,000 nodes with symbolic sizes, as a frontend would wire them.

    python bench/bench_declutter.py            # a table
    python bench/bench_declutter.py --profile  # where the time goes, by function

Units: seconds, best of three. ``dims`` is the share spent in ``tract_core.dims``, from a separate, profiled run scaled to
the unprofiled one.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.model.spec import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add, Div, Mul, Sub
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.elementwise import Erf, Sqrt
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.norm import wire_batch_norm
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.reduce import wire_mean
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_binary, wire_one, wire_reshape, wire_transpose
from tract_core.rules import declutter_with_report, declutter_rules

RANDOM = np.random.default_rng(1)


def weights(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


class Writer:
    """Wires like a frontend: a constant per use, ranks aligned by new axes."""

    def __init__(self, model: TypedModel) -> None:
        self.model = model
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"node{self.count}"

    def const(self, value: np.ndarray | float) -> OutletId:
        return self.model.add_const(self.name(), np.asarray(value, dtype=np.float32))

    def binary(self, op: type, a: OutletId, b: OutletId | float) -> OutletId:
        return wire_binary(self.model, self.name(), op(), a, self.const(b) if isinstance(b, float) else b)

    def linear(self, x: OutletId, size: int, to: int) -> OutletId:
        product = wire_matmul(self.model, self.name(), x, self.const(weights(size, to)))
        return self.binary(Add, product, self.const(weights(to)))

    def layer_norm(self, x: OutletId, size: int) -> OutletId:
        centred = self.binary(Sub, x, wire_mean(self.model, self.name(), x, [2]))
        variance = wire_mean(self.model, self.name(), self.binary(Mul, centred, centred), [2])
        root = wire_one(self.model, self.name(), Sqrt(), self.binary(Add, variance, 1e-5))
        scaled = self.binary(Mul, self.binary(Div, centred, root), self.const(weights(size)))
        return self.binary(Add, scaled, self.const(weights(size)))

    def gelu(self, x: OutletId) -> OutletId:
        gate = wire_one(self.model, self.name(), Erf(), self.binary(Div, x, 2.0**0.5))
        return self.binary(Mul, self.binary(Mul, x, self.binary(Add, gate, 1.0)), 0.5)

    def heads(self, x: OutletId, count: int) -> OutletId:
        batch, length, size = self.model.outlet_fact(x).shape
        split = wire_reshape(self.model, self.name(), x, (batch, length, count, size // count))
        return wire_transpose(self.model, self.name(), split, (0, 2, 1, 3))

    def attention(self, x: OutletId, size: int) -> OutletId:
        q, k, v = (self.heads(self.linear(x, size, size), 4) for _ in range(3))
        scores = wire_matmul(self.model, self.name(), q, wire_one(self.model, self.name(), MoveAxis(2, 3), k))
        share = wire_one(self.model, self.name(), Softmax((3,)), self.binary(Div, scores, 4.0))
        mixed = wire_transpose(self.model, self.name(), wire_matmul(self.model, self.name(), share, v), (0, 2, 1, 3))
        batch, length, *_ = self.model.outlet_fact(x).shape
        return self.linear(wire_reshape(self.model, self.name(), mixed, (batch, length, size)), size, size)


def transformer(layers: int, size: int = 32) -> TypedModel:
    model = TypedModel()
    write = Writer(model)
    x = model.add_source("x", parse_typed_fact(f"B,S,{size},f32", model.symbols))
    for _ in range(layers):
        x = write.binary(Add, x, write.attention(write.layer_norm(x, size), size))
        x = write.binary(Add, x, write.linear(write.gelu(write.linear(write.layer_norm(x, size), size, 64)), 64, size))
    model.set_outputs([x])
    return model


def convolutional(blocks: int, channels: int = 8) -> TypedModel:
    model = TypedModel()
    write = Writer(model)
    x = model.add_source("x", parse_typed_fact(f"B,{channels},H,W,f32", model.symbols))
    spec = PoolSpec(DataFormat.NCHW, (3, 3), Explicit((1, 1), (1, 1)), (1, 1), (1, 1), channels, channels)
    for _ in range(blocks):
        kernel, bias = write.const(weights(channels, channels, 3, 3)), write.const(weights(channels))
        y = wire_one(model, write.name(), Conv(spec, KernelFormat.OIHW, 1), x, kernel, bias)
        parameters = {label: write.const(weights(channels)) for label in ("scale", "bias", "mean")}
        y = wire_batch_norm(model, write.name(), y, variance=write.const(np.ones(channels)), eps=1e-5, **parameters)
        x = write.binary(Add, x, y)
    model.set_outputs([x])
    return model


def measure(name: str, build: Callable[[], TypedModel]) -> None:
    declutter_rules()
    model = build()
    seconds: list[float] = []
    for _ in range(3):
        copy = model.clone()
        start = time.perf_counter()
        report = declutter_with_report(copy, check=False)
        seconds.append(time.perf_counter() - start)
    dims, total = profiled(model)
    print(
        f"{name:14} {len(model.nodes):6} {len(copy.nodes):6} {report.patches.total():8} {report.visits.total():7} "
        f"{min(seconds):8.3f} {min(seconds) * dims / total:8.3f}"
    )


def profiled(model: TypedModel) -> tuple[float, float]:
    copy = model.clone()
    profile = cProfile.Profile()
    profile.runcall(declutter_with_report, copy, check=False)
    stats = pstats.Stats(profile)
    if "--profile" in sys.argv:
        stats.sort_stats("tottime").print_stats(25)
    rows = stats.stats.items()  # type: ignore[attr-defined]: typeshed does not know it
    dims = sum(row[2] for (file, _, _), row in rows if "/dims/" in file)
    return dims, stats.total_tt  # type: ignore[attr-defined]: the same


def main() -> None:
    print(f"{'network':14} {'nodes':>6} {'after':>6} {'patches':>8} {'visits':>7} {'seconds':>8} {'dims':>8}")
    measure("transformer", lambda: transformer(13))
    measure("convolutional", lambda: convolutional(110))


if __name__ == "__main__":
    main()
