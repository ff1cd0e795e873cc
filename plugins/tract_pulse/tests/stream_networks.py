"""Random networks of what streams: every operator with random windows, strides, paddings and places."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import stream_layers as layers
from stream_layers import CHANNELS

from tract_core.data import Constant
from tract_core.dims import Dim, evaluate
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.deconv import Deconv
from tract_core.ops.downsample import Downsample
from tract_core.ops.pad import Pad, PadConstant, PadEdge, PadMode, PadReflect
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, ExplicitOnnxPool, Padding, PoolSpec, SameUpper, Valid
from tract_core.ops.slice import wire_slice
from tract_core.ops.wiring import wire_one


class Writer:
    """A network as it grows, at ``x``. ``unit``: the product of the strides so far: pulses are multiples of it.

    ``more``: outputs beside the last one. ``gain``: an input that is whole.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.model = TypedModel()
        self.unit = 1
        self.count = 0
        self.more: list[OutletId] = []
        self.gain: OutletId | None = None
        self.x = self.source("x", f"1,{CHANNELS},S,f32")

    def source(self, name: str, fact: str) -> OutletId:
        return self.model.add_source(name, parse_typed_fact(fact, self.model.symbols))

    def name(self) -> str:
        self.count += 1
        return f"node{self.count}"

    def between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def length(self) -> Dim:
        return self.model.outlet_fact(self.x).shape[2]

    def weights(self, *shape: int) -> OutletId:
        return self.model.add_const(self.name(), (self.numbers.normal(size=shape) / 2).astype(np.float32))

    def add(self, op: Any, *inputs: OutletId) -> OutletId:
        return wire_one(self.model, self.name(), op, *inputs)

    def wire(self, op: Any, *others: OutletId) -> OutletId:
        return self.add(op, self.x, *others)

    def inputs(self, length: int) -> list[Any]:
        """Random inputs for a signal of that length."""
        facts = [self.model.outlet_fact(outlet) for outlet in self.model.inputs]
        shapes = [[evaluate(size, {"S": length}) for size in fact.shape] for fact in facts]
        return [self.numbers.normal(size=shape).astype(np.float32) for shape in shapes]

    def spec(self, padding: Padding, kernel: int, dilation: int = 1, stride: int = 1) -> PoolSpec:
        return PoolSpec(DataFormat.NCHW, (kernel,), padding, (dilation,), (stride,))

    def pads(self, most: int) -> tuple[tuple[int, int], ...]:
        return ((0, 0), (0, 0), (self.between(0, most), self.between(0, most)))


def conv(net: Writer) -> OutletId:
    kernel, stride, dilation = net.between(1, 3), net.between(1, 2), net.between(1, 2)
    paddings: list[Padding] = [Explicit((net.between(0, kernel),), (net.between(0, kernel),)), Valid()]
    padding = net.random.choice(paddings if stride > 1 else [*paddings, SameUpper()])
    net.unit *= stride
    op = Conv(net.spec(padding, kernel, dilation, stride))
    return net.wire(op, net.weights(CHANNELS, CHANNELS, kernel), net.weights(CHANNELS))


def pool(net: Writer) -> OutletId:
    kernel, stride = net.between(1, 3), net.between(1, 2)
    net.unit *= stride
    ends = (net.between(0, kernel - 1),), (net.between(0, kernel - 1),)
    include = net.random.random() < 0.3
    spec = net.spec(ExplicitOnnxPool(*ends, not include and net.random.random() < 0.3), kernel, 1, stride)
    return net.wire(MaxPool(spec) if net.random.random() < 0.5 else SumPool(spec, include))


def deconv(net: Writer) -> OutletId:
    kernel, stride, dilation = net.between(1, 3), net.between(1, 2), net.between(1, 2)
    padding = Explicit((net.between(0, kernel - 1) // 2,), (net.between(0, kernel - 1) // 2,))
    op = Deconv(net.spec(padding, kernel, dilation, stride), adjustments=(net.between(0, stride - 1),))
    return net.wire(op, net.weights(CHANNELS, CHANNELS, kernel), net.weights(CHANNELS))


def pad(net: Writer) -> OutletId:
    modes: list[PadMode] = [PadConstant(Constant(np.float32(net.random.choice([0, 1.5])).reshape(()))), PadEdge()]
    return net.wire(Pad(net.pads(4), net.random.choice([*modes, PadReflect()])))


def shorter(net: Writer) -> OutletId:
    end = None if net.random.random() < 0.5 else -net.between(1, 3)
    return wire_slice(net.model, net.name(), net.x, 2, start=net.between(0, 4), end=end)


def thinned(net: Writer) -> OutletId:
    net.unit *= 2
    return net.wire(Downsample(2, 2, net.between(0, 1)))


def concat(net: Writer) -> OutletId:
    pieces = [net.weights(1, CHANNELS, net.between(1, 4)) for _ in range(2)]
    before, behind = net.random.choice([(pieces, []), ([], pieces), (pieces[:1], pieces[1:])])
    return wire_one(net.model, net.name(), TypedConcat(2), *before, net.x, *behind)


def running_sum(net: Writer) -> OutletId:
    return net.wire(CumSum(2, exclusive=net.random.random() < 0.5))


def residual(net: Writer) -> OutletId:
    kernel = net.random.choice([1, 3, 5])
    op = Conv(net.spec(Explicit((kernel // 2,), (kernel // 2,)), kernel))
    branch = net.wire(op, net.weights(CHANNELS, CHANNELS, kernel), net.weights(CHANNELS))
    return net.wire(Add(), branch)


WINDOWS: list[Callable[[Writer], OutletId]] = [conv, pool, deconv, pad, shorter, thinned, concat, running_sum, residual]
JOINTS: list[Callable[[Writer], OutletId]] = [
    layers.branches,
    layers.stacked,
    layers.recurrent,
    layers.mixed,
    layers.interleaved,
    layers.positions,
    layers.late_sum,
    layers.frames,
    layers.other_layout,
    layers.normalised,
    layers.resized,
    layers.shifted,
    layers.gained,
    layers.told,
]


def network(seed: int) -> Writer:
    """A network of one to five layers, with its outputs. Raises FactError where no signal is long enough for it."""
    net = Writer(seed)
    if net.random.random() < 0.2:
        net.x = layers.joined_inputs(net)
    for _ in range(net.between(1, 5)):
        net.x = net.random.choice(net.random.choice([WINDOWS, JOINTS]))(net)
    net.model.set_outputs([*net.more, net.x])
    return net
