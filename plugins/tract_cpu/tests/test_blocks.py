"""Tensors stay in blocks of channels from one operator to the next: nothing between convolutions is copied."""

from __future__ import annotations

import numpy as np
from tract_cpu.isa import Isa
from tract_cpu.lower.program import NativeStep
from tract_cpu.plan import CpuPlan

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.einsum import EinSum
from tract_core.ops.pool_spec import DataFormat, PoolSpec, SameUpper
from tract_core.plugins.keys import REFERENCE, Array


class Net:
    """A model of one input, ``fact``, while it is made."""

    def __init__(self, fact: str) -> None:
        self.model = TypedModel()
        self.x = self.model.add_source("x", parse_typed_fact(fact, self.model.symbols))
        self.random = np.random.default_rng(0)
        self._count = 0

    def add(self, op: TypedOp, *inputs: OutletId) -> OutletId:
        self._count += 1
        return self.model.wire_node(f"{op.name}{self._count}", op, list(inputs))[0]

    def constant(self, *shape: int) -> OutletId:
        self._count += 1
        return self.model.add_const(f"c{self._count}", self.random.standard_normal(shape).astype("f4"))

    def conv(self, x: OutletId, channels: int, kernel: tuple[int, ...] = (3, 3), group: int = 1) -> OutletId:
        inputs = int(self.model.outlet_fact(x).shape[1])
        pool = PoolSpec(DataFormat.NCHW, kernel, SameUpper())
        weights = self.constant(channels, inputs // group, *kernel)
        return self.add(Conv(pool, KernelFormat.OIHW, group), x, weights, self.constant(channels))

    def product(self, x: OutletId, channels: int) -> OutletId:
        weights = self.constant(channels, int(self.model.outlet_fact(x).shape[1]))
        return self.add(EinSum(AxesMapping.parse("nchw,oc->nohw"), DatumType.F32), x, weights)


def check(net: Net, isa: Isa, shape: tuple[int, ...], *, copies: int = 0) -> None:
    """The outputs are those of the reference in f64, and between convolutions there are just so many copies."""
    model = net.model
    x = net.random.standard_normal(shape).astype("f4")
    values: dict[OutletId, Array] = {net.x: x.astype("f8")}
    for number in model.eval_order():
        node = model.nodes[number]
        row = model.registry[REFERENCE].find(type(node.op))
        constant = model.outlet_fact(OutletId(number)).constant
        if constant is not None:
            values[OutletId(number)] = np.asarray(constant).astype("f8")
        elif row is not None and number != net.x.node:
            found = row(node.op, *(values[outlet] for outlet in node.inputs))
            values[OutletId(number)] = found
    plan = CpuPlan(model, isa)
    for found, outlet in zip(plan.spawn().run([x]), model.outputs, strict=True):
        wanted = values[outlet]
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max(initial=1))
    steps = [step for step in plan.program.steps if isinstance(step, NativeStep)]
    convs = [place for place, step in enumerate(steps) if step.kernel.name in {"conv", "depthwise"}]
    between = steps[convs[0] : convs[-1]]
    assert sum(step.kernel.name in {"map", "transpose"} and not step.nodes for step in between) == copies


def test_products_over_channels_read_blocks(isa: Isa) -> None:
    net = Net("N,16,9,10,f32")
    x = net.product(net.conv(net.product(net.conv(net.x, 32), 48), 48, group=48), 20)
    net.model.set_outputs([net.conv(x, 16)])
    check(net, isa, (2, 16, 9, 10))
