"""Tensors stay in blocks of channels from one operator to the next: nothing between convolutions is copied."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_llvm.isa import Isa

from tract_core.data import Constant, DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.downsample import Downsample
from tract_core.ops.einsum import EinSum
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec, SameUpper
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.keys import REFERENCE, Array
from tract_core.runtime.parts import Part


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


def check(net: Net, isa: Isa, shape: tuple[int, ...], *, copies: int | None = 0) -> None:
    """The outputs are those of the reference in f64, and between convolutions there are so many copies."""
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
    if copies is None:
        return
    steps = [step for step in plan.program.steps if isinstance(step, NativeStep)]
    convs = [place for place, step in enumerate(steps) if step.kernel.name in {"conv", "depthwise", "winograd"}]
    between = steps[convs[0] : convs[-1]]
    assert sum(step.kernel.name in {"map", "transpose"} and not step.nodes for step in between) == copies


POOL = PoolSpec(DataFormat.NCHW, (3, 2), Explicit((1, 0), (0, 1)), strides=(2, 1))
POOLS = [MaxPool(POOL), SumPool(POOL), SumPool(POOL, normalize=False), SumPool(POOL, count_include_pad=True)]


@pytest.mark.parametrize("op", POOLS, ids=str)
@pytest.mark.parametrize("channels", [16, 21])
def test_pools_read_and_write_blocks_and_compute_what_is_behind_them(isa: Isa, op: TypedOp, channels: int) -> None:
    net = Net(f"N,{channels},H,W,f32")
    pooled = net.add(op, net.conv(net.x, channels))
    scaled = net.add(Add(), net.add(Mul(), pooled, net.constant(1, channels, 1, 1)), net.constant(1, 1, 1, 1))
    net.model.set_outputs([net.conv(scaled, channels)])
    for size in ((2, channels, 9, 10), (1, channels, 2, 1), (1, channels, 1, 37)):
        check(net, isa, size)
    kernels = [step.kernel.name for step in CpuPlan(net.model, isa).program.steps if step.nodes]
    assert kernels == ["winograd", "pool", "winograd"]


@pytest.mark.parametrize("channels", [16, 21])
@pytest.mark.parametrize("reducer", [Reducer.SUM, Reducer.MAX, Reducer.MEAN_OF_SQUARES])
def test_positions_are_reduced_in_blocks(isa: Isa, channels: int, reducer: Reducer) -> None:
    """As in squeeze-and-excite layers: channels are weighted by what is computed of all their positions."""
    net = Net(f"N,{channels},H,W,f32")
    x = net.conv(net.x, channels)
    weights = net.conv(net.add(Reduce((2, 3), reducer), x), channels, (1, 1))
    net.model.set_outputs([net.conv(net.add(Mul(), x, weights), 8)])
    check(net, isa, (2, channels, 9, 10))
    check(net, isa, (1, channels, 1, 1))


def test_channels_are_not_reduced_in_blocks(isa: Isa) -> None:
    net = Net("N,21,H,W,f32")
    x = net.conv(net.x, 21)
    net.model.set_outputs([net.add(Sub(), x, net.add(Reduce((1,), Reducer.MAX), x))])
    check(net, isa, (2, 21, 3, 5), copies=None)


def joined(net: Net, *inputs: OutletId) -> OutletId:
    return net.add(TypedConcat(1), *inputs)


@pytest.mark.parametrize("last", [16, 21])
def test_what_is_put_together_is_written_in_its_place(isa: Isa, last: int) -> None:
    """Whether the parts come from convolutions, pools or element-wise operators; they have readers of their own."""
    net = Net("N,16,H,W,f32")
    first = net.conv(net.x, 32)
    second = net.add(MaxPool(PoolSpec(DataFormat.NCHW, (3, 3), SameUpper())), first)
    third = net.add(Add(), first, net.conv(second, 32, (1, 1)))
    whole = joined(net, first, second, third, net.conv(third, last, (5, 5)))
    net.model.set_outputs([net.conv(whole, 8), net.conv(second, 8), first])
    check(net, isa, (2, 16, 5, 7))
    check(net, isa, (1, 16, 1, 1))


@pytest.mark.parametrize("nested", [True, False])
def test_wholes_are_parts_of_wholes(isa: Isa, nested: bool) -> None:
    """As in networks whose layers read all layers before them, with the last whole or with all parts as inputs."""
    net = Net("N,3,H,W,f32")
    parts = [net.conv(net.x, 16)]
    whole = parts[0]
    for _ in range(4):
        parts.append(net.conv(net.conv(whole, 20, (1, 1)), 16))
        whole = joined(net, whole, parts[-1]) if nested else joined(net, *parts)
    net.model.set_outputs([net.conv(whole, 8)])
    check(net, isa, (2, 3, 4, 6))


def test_parts_that_lie_elsewhere_are_copied_in_blocks(isa: Isa) -> None:
    """One that comes twice, one in two wholes, and the input of the model."""
    net = Net("N,16,H,W,f32")
    first, second = net.conv(net.x, 16), net.conv(net.x, 32)
    whole = joined(net, first, second, net.x, first)
    net.model.set_outputs([net.conv(whole, 8), net.conv(joined(net, second, first), 8)])
    check(net, isa, (2, 16, 4, 3), copies=None)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_parts_that_do_not_begin_with_a_block_are_put_together_as_they_are(isa: Isa, axis: int) -> None:
    net = Net("N,16,4,3,f32")
    whole = net.add(TypedConcat(axis), net.conv(net.x, 21), net.conv(net.x, 21))
    net.model.set_outputs([net.conv(whole, 8)])
    check(net, isa, (2, 16, 4, 3), copies=None)


def test_parts_of_wholes_are_shown_and_exchanged(isa: Isa) -> None:
    net = Net("N,16,4,3,f32")
    first, second = net.conv(net.x, 16), net.conv(net.x, 16)
    net.model.set_outputs([net.conv(joined(net, first, second), 8)])
    x, seen = net.random.standard_normal((1, 16, 4, 3)).astype("f4"), {}
    plan = CpuPlan(net.model, isa)

    def nothing_of_the_first(part: Part, given: Mapping[OutletId, Array]) -> Mapping[OutletId, Array]:
        seen.update(given)
        return {first: 0 * given[first]} if first in given else {}

    plan.spawn_observed(nothing_of_the_first).run([x])
    (whole,) = [array for outlet, array in seen.items() if array.shape[1] == 32]
    np.testing.assert_array_equal(whole[:, 16:], seen[second])
    assert not whole[:, :16].any()


def test_products_over_channels_read_blocks(isa: Isa) -> None:
    net = Net("N,16,9,10,f32")
    x = net.product(net.conv(net.product(net.conv(net.x, 32), 48), 48, group=48), 20)
    net.model.set_outputs([net.conv(x, 16)])
    check(net, isa, (2, 16, 9, 10))


@pytest.mark.parametrize("strides", [(2, 3), (-2, 1), (1, -1)])
@pytest.mark.parametrize("channels", [16, 21])
def test_every_nth_position_is_read_where_the_blocks_are(isa: Isa, channels: int, strides: tuple[int, int]) -> None:
    """As in front of a product over channels, which a convolution with a stride and windows of one element is."""
    net = Net(f"N,{channels},H,W,f32")
    x = net.conv(net.x, channels)
    some = net.add(Downsample(3, strides[1], 0), net.add(Downsample(2, strides[0], strides[0] > 1), x))
    net.model.set_outputs([net.add(Add(), net.product(some, 40), net.constant(1, 40, 1, 1)), net.product(x, 8)])
    for size in ((2, channels, 9, 10), (1, channels, 2, 1), (1, channels, 3, 2)):
        check(net, isa, size)


def test_some_channels_of_blocks_are_taken_one_by_one(isa: Isa) -> None:
    net = Net("N,32,4,3,f32")
    x = net.conv(net.x, 32)
    net.model.set_outputs([net.conv(net.add(Downsample(1, 2, 1), x), 8)])
    check(net, isa, (2, 32, 4, 3), copies=None)


@pytest.mark.parametrize("channels", [16, 21])
def test_what_is_put_around_a_tensor_is_there_before_it_is_computed(isa: Isa, channels: int) -> None:
    """As a quantised convolution has its zero point around its data; others read the tensor without that."""
    net = Net(f"N,{channels},H,W,f32")
    x = net.conv(net.x, channels)
    value = PadConstant(Constant(np.array(2.5, "f4")))
    padded = net.add(Pad(((0, 0), (0, 0), (1, 1), (0, 1)), value), x)
    valid = Conv(PoolSpec(DataFormat.NCHW, (3, 2), Explicit((0, 0), (0, 0))), KernelFormat.OIHW)
    y = net.add(valid, padded, net.constant(channels, channels, 3, 2), net.constant(channels))
    net.model.set_outputs([net.conv(net.add(Add(), x, y), 8, (1, 1))])
    for size in ((2, channels, 9, 10), (1, channels, 1, 1), (3, channels, 2, 0)):
        check(net, isa, size, copies=None)
    net.model.set_outputs([net.conv(y, 8, (1, 1))])
    check(net, isa, (2, channels, 9, 10))


@pytest.mark.parametrize(
    "pads",
    [((1, 0), (0, 0), (2, 1), (0, 0)), ((0, 0), (1, 2), (0, 0), (1, 0)), ((0, 0), (0, 0), (0, 0), (0, 0))],
    ids=str,
)
def test_several_paddings_of_a_tensor_in_blocks_are_right(isa: Isa, pads: tuple[tuple[int, int], ...]) -> None:
    net = Net("N,21,H,W,f32")
    x = net.conv(net.x, 21)
    first, second = (net.add(Pad(pads, PadConstant(Constant(np.array(one, "f4")))), x) for one in (-1.0, 3.0))
    net.model.set_outputs([first, second, net.conv(first, 4), net.conv(x, 5)])
    for size in ((2, 21, 4, 5), (0, 21, 4, 5)):
        check(net, isa, size, copies=None)
