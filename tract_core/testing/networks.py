"""Networks of any size, as frontends wire them: for tests and measurements of passes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add, Binary, Div, Mul, Sub
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.elementwise import Erf, Sqrt
from tract_core.ops.norm import wire_batch_norm
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.reduce import wire_mean
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_binary, wire_one, wire_reshape, wire_transpose

_SEED: Final = 1


class _Writer:
    """Wires like a frontend: a constant per use, ranks aligned by new axes."""

    def __init__(self, model: TypedModel) -> None:
        self.model = model
        self.count = 0
        self.random = np.random.default_rng(_SEED)

    def weights(self, *shape: int) -> OutletId:
        return self.const(self.random.normal(size=shape) / 8)

    def name(self) -> str:
        self.count += 1
        return f"node{self.count}"

    def const(self, value: np.ndarray[Any, Any] | float) -> OutletId:
        return self.model.add_const(self.name(), np.asarray(value, dtype=np.float32))

    def binary(self, op: type[Binary], a: OutletId, b: OutletId | float) -> OutletId:
        return wire_binary(self.model, self.name(), op(), a, b if isinstance(b, OutletId) else self.const(b))

    def linear(self, x: OutletId, size: int, to: int) -> OutletId:
        product = wire_matmul(self.model, self.name(), x, self.weights(size, to))
        return self.binary(Add, product, self.weights(to))

    def layer_norm(self, x: OutletId, size: int) -> OutletId:
        centred = self.binary(Sub, x, wire_mean(self.model, self.name(), x, [2]))
        variance = wire_mean(self.model, self.name(), self.binary(Mul, centred, centred), [2])
        root = wire_one(self.model, self.name(), Sqrt(), self.binary(Add, variance, 1e-5))
        scaled = self.binary(Mul, self.binary(Div, centred, root), self.weights(size))
        return self.binary(Add, scaled, self.weights(size))

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
    """Self-attention and feed-forward layers on ``x`` [B, S, size], about 135 nodes each."""
    model = TypedModel()
    write = _Writer(model)
    x = model.add_source("x", parse_typed_fact(f"B,S,{size},f32", model.symbols))
    for _ in range(layers):
        x = write.binary(Add, x, write.attention(write.layer_norm(x, size), size))
        x = write.binary(Add, x, write.linear(write.gelu(write.linear(write.layer_norm(x, size), size, 64)), 64, size))
    model.set_outputs([x])
    return model


def convolutional(blocks: int, channels: int = 8) -> TypedModel:
    """Convolutions with batch normalisation and residuals on ``x`` [B, channels, H, W], about 23 nodes each."""
    model = TypedModel()
    write = _Writer(model)
    x = model.add_source("x", parse_typed_fact(f"B,{channels},H,W,f32", model.symbols))
    spec = PoolSpec(DataFormat.NCHW, (3, 3), Explicit((1, 1), (1, 1)), (1, 1), (1, 1), channels, channels)
    for _ in range(blocks):
        kernel, bias = write.weights(channels, channels, 3, 3), write.weights(channels)
        y = wire_one(model, write.name(), Conv(spec), x, kernel, bias)
        scale, bias, mean = (write.weights(channels) for _ in range(3))
        variance = write.const(np.ones(channels))
        y = wire_batch_norm(model, write.name(), y, scale=scale, bias=bias, mean=mean, variance=variance, eps=1e-5)
        x = write.binary(Add, x, y)
    model.set_outputs([x])
    return model
