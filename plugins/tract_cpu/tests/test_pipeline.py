"""Convolutions that are computed row by row, one with the other, against the NumPy meaning in float64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from tract_cpu.kernels.pipeline import PipelinePlan
from tract_cpu.plan import CpuPlan
from tract_cpu.schedule import rows as pipeline
from tract_cpu.target import Rounding
from tract_llvm.isa import Isa

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Max
from tract_core.ops.conv import Conv, KernelFormat, reference
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec, SameUpper
from tract_core.plugins.keys import Array
from tract_core.runtime.parts import Part


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be computed row by row is."""
    monkeypatch.setattr(pipeline, "_LARGE", -1)
    monkeypatch.setattr(pipeline, "_TRAFFIC", 1 << 40)


@dataclass
class Net:
    """Convolutions one after the other; ``wanted``: what comes out, in float64."""

    x: Array
    fact: str = ""
    layout: DataFormat = DataFormat.NCHW
    model: TypedModel = field(default_factory=TypedModel)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        fact = self.fact or ",".join(map(str, self.x.shape)) + ",f32"
        self.last = self.model.add_source("x", parse_typed_fact(fact, self.model.symbols))
        self.values = {self.last: self.x.astype("f8")}

    @property
    def wanted(self) -> Array:
        return self.values[self.last]

    def constant(self, *shape: int) -> tuple[OutletId, Array]:
        array = (self.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("f4")
        return self.model.add_const(f"c{len(self.model.nodes)}", array), array.astype("f8")

    def conv(self, channels: int, kernel: int = 1, stride: int = 1, group: int = 1, **more: object) -> None:
        """With a bias, and nothing below zero."""
        data, axis = self.values[self.last], 1 if self.layout.channels_first else -1
        pool = PoolSpec(self.layout, (kernel, kernel), more.get("padding", SameUpper()), strides=(stride, stride))
        op = Conv(pool, KernelFormat.OIHW, group)
        weights, w = self.constant(channels, data.shape[axis] // group, kernel, kernel)
        bias, b = self.constant(channels)
        name = f"conv{len(self.model.nodes)}"
        (found,) = self.model.wire_node(name, op, [self.last, weights, bias])
        zero = self.model.add_const(f"{name}.zero", np.zeros((1, 1, 1, 1), "f4"))
        (self.last,) = self.model.wire_node(f"{name}.relu", Max(), [found, zero])
        self.values[self.last] = np.maximum(reference(op, data, w, b), 0)

    def add(self, other: OutletId) -> None:
        both = self.values[self.last] + self.values[other]
        (self.last,) = self.model.wire_node(f"sum{len(self.model.nodes)}", Add(), [self.last, other])
        self.values[self.last] = both

    def check(self, isa: Isa, *, steps: int | None = 1, threads: int = 1) -> Array:
        """So many steps compute all of it; returns what comes out."""
        self.model.set_outputs([self.last])
        plan = CpuPlan(self.model, isa, threads, rounding=Rounding(winograd=False))
        if steps is not None:
            assert len([step for step in plan.steps if step.nodes]) == steps
        (found,) = plan.spawn().run([self.x])
        assert found.shape == self.wanted.shape
        np.testing.assert_allclose(found, self.wanted, rtol=1e-5, atol=1e-5 * np.abs(self.wanted).max(initial=1))
        return found


def image(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype("f4")


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("size", [(0, 5), (1, 1), (2, 1), (3, 5), (9, 17), (30, 31)], ids=str)
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (5, 1), (5, 2), (1, 2), (7, 3)])
def test_expanded_summed_alone_and_projected(isa: Isa, size: tuple[int, int], kernel: int, stride: int) -> None:
    """As in inverted residual blocks."""
    net = Net(image(2, 17, *size))
    net.conv(50)
    net.conv(50, kernel, stride, group=50)
    net.conv(21)
    net.check(isa, steps=1 if all(size) else None)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("size", [(4, 4), (23, 9)], ids=str)
def test_windows_over_windows(isa: Isa, size: tuple[int, int]) -> None:
    net = Net(image(1, 3, *size))
    net.conv(33, 3, 2)
    net.conv(33, 3, group=33)
    net.conv(33, 5, group=33)
    net.conv(16)
    net.conv(40, 3)
    net.conv(40, 3, 2, group=40)
    net.conv(64, 3, group=1)
    net.check(isa)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("size", [(1, 1), (2, 5), (9, 17)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_expanded_behind_another_one(isa: Isa, size: tuple[int, int], stride: int) -> None:
    """Several rows of what is expanded are computed at once: it reads each from where that lies."""
    net = Net(image(1, 3, *size))
    net.conv(20, 3)
    net.conv(50)
    net.conv(50, 3, stride, group=50)
    net.conv(21)
    net.conv(40)
    net.conv(40, 5, group=40)
    net.check(isa)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("before", [(0, 0), (2, 0), (3, 3)])
def test_any_padding(isa: Isa, before: tuple[int, int]) -> None:
    padding = Explicit(before, (1, 3) if any(before) else (0, 0))
    net = Net(image(1, 20, 8, 7))
    net.conv(36)
    net.conv(36, 3, 2, group=36, padding=padding)
    net.conv(24, 3, padding=padding)
    net.check(isa)


@pytest.mark.usefixtures("always")
def test_groups_are_computed_one_by_one(isa: Isa) -> None:
    lanes = isa.lanes(32)
    net = Net(image(1, lanes, 9, 6))
    net.conv(4 * lanes)
    net.conv(6 * lanes, 3, group=2)
    net.conv(6 * lanes, 3, group=6 * lanes)
    net.conv(2 * lanes, 3, 2, group=2)
    net.check(isa)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_the_number_of_images_need_not_be_known(isa: Isa, batch: int) -> None:
    net = Net(image(batch, 17, 6, 5), "N,17,6,5,f32")
    net.conv(33)
    net.conv(33, 3, group=33)
    net.check(isa)


@pytest.mark.usefixtures("always")
def test_channels_may_come_last(isa: Isa) -> None:
    net = Net(image(2, 8, 9, 17), layout=DataFormat.NHWC)
    net.conv(33)
    net.conv(33, 3, group=33)
    net.conv(5)
    net.check(isa, steps=None)


@pytest.mark.usefixtures("always")
def test_what_others_read_too_is_in_memory(isa: Isa) -> None:
    """The sum of a block with what it began with, and a tensor between two convolutions that is an output."""
    net = Net(image(1, 17, 9, 8))
    net.conv(24)
    first = net.last
    net.conv(48)
    net.conv(48, 3, group=48)
    net.conv(24)
    net.add(first)
    net.conv(48)
    net.check(isa, steps=2)
    seen = net.last
    net.conv(9, 3)
    net.model.set_outputs([net.last, seen])
    found = CpuPlan(net.model, isa).spawn().run([net.x])
    for one, outlet in zip(found, (net.last, seen), strict=True):
        np.testing.assert_allclose(one, net.values[outlet], rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("always")
def test_results_do_not_depend_on_threads_and_are_shown(isa: Isa) -> None:
    net = Net(image(1, 17, 37, 8))
    net.conv(48)
    net.conv(48, 3, group=48)
    net.conv(24)
    alone = net.check(isa)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(net.check(isa, threads=threads), alone)
        (step,) = [step for step in CpuPlan(net.model, isa, threads).steps if step.nodes]
        assert step.tasks == threads
    seen: dict[OutletId, Array] = {}

    def look(part: Part, given: Mapping[OutletId, Array]) -> None:
        seen.update(given)

    CpuPlan(net.model, isa).spawn_observed(look).run([net.x])
    np.testing.assert_array_equal(seen[net.last], alone)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_finite_number_stays_where_windows_reach(isa: Isa, number: float) -> None:
    net = Net(image(1, 17, 12, 9))
    net.x[0, 3, 6, 4] = number
    net.values = {net.last: net.x.astype("f8")}
    with np.errstate(invalid="ignore"):
        net.conv(20)
        net.conv(20, 3, group=20)
    net.model.set_outputs([net.last])
    (found,) = CpuPlan(net.model, isa).spawn().run([net.x])
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(net.wanted))


def test_only_what_does_not_stay_in_the_cache_is_computed_row_by_row(isa: Isa) -> None:
    def pipelines(size: int) -> int:
        net = Net(image(1, 16, size, size))
        net.conv(96)
        net.conv(96, 3, group=96)
        net.conv(24)
        net.model.set_outputs([net.last])
        return sum(isinstance(step.kernel, PipelinePlan) for step in CpuPlan(net.model, isa).steps)

    assert [pipelines(size) for size in (14, 56)] == [0, 1]
