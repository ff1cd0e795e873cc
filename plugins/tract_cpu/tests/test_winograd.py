"""Convolutions by Winograd's method, on every instruction set of this machine, against the NumPy meaning in float64."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from tract_cpu.group import winograd
from tract_cpu.kernels.winograd import WinogradPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.runtime import CpuRuntime
from tract_cpu.target import Rounding
from tract_llvm.isa import Isa

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Max
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv, KernelFormat, reference
from tract_core.ops.pool_spec import DataFormat, Padding, PoolSpec, SameUpper, Valid

SAME = SameUpper()


@dataclass
class Layer:
    """One convolution of random numbers. ``size``: of the spatial axes of the data."""

    inputs: int
    outputs: int
    size: tuple[int, ...]
    window: tuple[int, ...] = (3, 3)
    padding: Padding = SAME
    batch: int = 1
    layout: DataFormat = DataFormat.NCHW
    scale: float = 1.0
    x: np.ndarray = field(init=False)
    weights: np.ndarray = field(init=False)
    bias: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        shape = (self.inputs, *self.size) if self.layout.channels_first else (*self.size, self.inputs)
        self.x = rng.standard_normal((self.batch, *shape)).astype("f4")
        self.weights = rng.standard_normal((self.outputs, self.inputs, *self.window)).astype("f4") * np.float32(
            self.scale
        )
        self.bias = rng.standard_normal(self.outputs).astype("f4")

    def __str__(self) -> str:
        return f"{self.inputs}-{self.outputs} {self.size} {self.window} {self.layout.name} b{self.batch}"

    @property
    def op(self) -> Conv:
        return Conv(PoolSpec(self.layout, self.window, self.padding), KernelFormat.OIHW)

    def model(self, fact: str = "") -> TypedModel:
        model = TypedModel()
        x = model.add_source("x", parse_typed_fact(fact or f"{','.join(map(str, self.x.shape))},f32", model.symbols))
        constants = [model.add_const("w", self.weights), model.add_const("b", self.bias)]
        model.set_outputs(model.wire_node("conv", self.op, [x, *constants]))
        return model

    def wanted(self, x: np.ndarray | None = None) -> np.ndarray:
        data = self.x if x is None else x
        return reference(self.op, data.astype("f8"), self.weights.astype("f8"), self.bias.astype("f8"))


def kernels(plan: CpuPlan) -> list[WinogradPlan]:
    return [step.kernel for step in plan.steps if isinstance(step.kernel, WinogradPlan)]


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    """Within 1e-5 of the largest one, as direct sums in f32 are."""
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max(initial=1))


SIZES = [
    *(Layer(16, 16, (height, width)) for height, width in ((1, 4), (2, 2), (3, 3), (4, 8), (5, 7), (9, 17), (20, 21))),
    Layer(33, 70, (7, 29)),
    Layer(17, 20, (12, 3), batch=2),
    Layer(64, 32, (14, 14), batch=3),
    Layer(16, 16, (8, 9), padding=Valid()),
    Layer(40, 24, (8, 9), layout=DataFormat.NHWC),
    Layer(160, 48, (16, 16)),
    Layer(24, 16, (33,), (3,)),
    Layer(16, 40, (9, 31), (1, 3)),
    Layer(16, 16, (30, 6), (3, 1)),
    Layer(16, 17, (5, 6, 7), (3, 3, 3)),
    Layer(16, 16, (12, 12), batch=0),
]


@pytest.mark.parametrize("layer", SIZES, ids=str)
def test_sums_are_those_of_numpy_at_sizes_that_tiles_fit_and_at_others(
    isa: Isa, layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where direct sums are less work."""
    monkeypatch.setattr(winograd, "GAIN", 0)
    shape = layer.x.shape
    symbols = [str(size) if size == layer.inputs else f"S{axis}" for axis, size in enumerate(shape[1:])]
    for fact in ("", ",".join(["N", *symbols, "f32"])):
        plan = CpuPlan(layer.model(fact), isa)
        assert kernels(plan) or not layer.batch, fact
        close(plan.spawn().run([layer.x])[0], layer.wanted())


def test_errors_are_like_those_of_direct_sums(isa: Isa) -> None:
    """The largest error of each, by the largest output: with 16 to 256 channels, both are below 4e-6."""
    for channels in (16, 64, 256):
        layer = Layer(channels, 32, (24, 24), scale=(9 * channels) ** -0.5)
        wanted = layer.wanted()
        for way in (True, False):
            plan = CpuPlan(layer.model(), isa, rounding=Rounding(winograd=way))
            assert bool(kernels(plan)) is way
            found = plan.spawn().run([layer.x])[0]
            assert np.abs(found - wanted).max() < 4e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_goes_no_further_than_windows_reach(isa: Isa, number: float) -> None:
    """Elsewhere in its tile are sums like any others: those of a direct convolution."""
    layer = Layer(20, 20, (9, 10), scale=0.05)
    layer.x[0, 3, 4, 5] = layer.x[0, 19, 8, 0] = number
    with np.errstate(over="ignore", invalid="ignore"):
        found = CpuPlan(layer.model(), isa).spawn().run([layer.x])[0]
        direct = CpuPlan(layer.model(), isa, rounding=Rounding(winograd=False)).spawn().run([layer.x])[0]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(direct))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(direct))
    finite = np.isfinite(direct) & (np.abs(direct) < 1e30)
    assert finite.sum() > direct.size // 2
    np.testing.assert_allclose(found[finite], direct[finite], rtol=0, atol=2e-5)


def test_infinite_weights_give_what_direct_sums_give(isa: Isa) -> None:
    layer = Layer(16, 33, (8, 8))
    layer.weights[32, 3, 1, 1], layer.weights[7, 0, 0, 2] = np.inf, np.nan
    found, direct = (
        CpuPlan(layer.model(), isa, rounding=Rounding(winograd=way)).spawn().run([layer.x])[0] for way in (True, False)
    )
    np.testing.assert_array_equal(np.isnan(found), np.isnan(direct))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(direct))
    close(np.where(np.isfinite(direct), found, 0), np.where(np.isfinite(direct), layer.wanted(), 0))


def test_weights_that_are_inputs_give_the_same_bits(isa: Isa) -> None:
    layer = Layer(19, 33, (18, 19))
    model = TypedModel()
    arrays = [layer.x, layer.weights, layer.bias]
    facts = [f"{','.join(map(str, one.shape))},f32" for one in arrays]
    sources = [model.add_source(f"s{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("conv", layer.op, sources))
    plan = CpuPlan(model, isa)
    assert kernels(plan)
    np.testing.assert_array_equal(plan.spawn().run(arrays)[0], CpuPlan(layer.model(), isa).spawn().run([layer.x])[0])


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_residuals_are_added_and_parts_written_into_a_whole_along_the_way(isa: Isa, batch: int) -> None:
    """Two convolutions, the second one with a residual and a relu behind it, put together, and one more behind them."""
    first, second, last = (
        Layer(32, 32, (10, 11), scale=0.1),
        Layer(32, 32, (10, 11), scale=0.1),
        Layer(64, 21, (10, 11)),
    )
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,32,H,W,f32", model.symbols))
    zero = model.add_const("zero", np.zeros((1, 1, 1, 1), "f4"))

    def wire(name: str, layer: Layer, source: object) -> object:
        constants = [model.add_const(f"{name}.w", layer.weights), model.add_const(f"{name}.b", layer.bias)]
        return model.wire_node(name, layer.op, [source, *constants])[0]

    a = wire("a", first, x)
    b = model.wire_node("relu", Max(), [model.wire_node("add", Add(), [wire("b", second, a), a])[0], zero])[0]
    whole = model.wire_node("whole", TypedConcat(1), [a, b])[0]
    model.set_outputs([wire("c", last, whole)])
    data = np.random.default_rng(1).standard_normal((batch, 32, 10, 11)).astype("f4")
    plan = CpuPlan(model, isa)
    assert len(kernels(plan)) == 3
    one = first.wanted(data)
    two = np.maximum(second.wanted(one) + one, 0)
    close(plan.spawn().run([data])[0], last.wanted(np.concatenate([one, two], 1)))


def test_bits_do_not_depend_on_threads(isa: Isa) -> None:
    layer = Layer(48, 80, (50, 37), batch=2)
    found = [CpuPlan(layer.model(), isa, threads).spawn().run([layer.x])[0] for threads in (1, 2)]
    np.testing.assert_array_equal(*found)


def test_a_parameter_of_the_runtime_turns_it_off() -> None:
    layer = Layer(32, 32, (16, 16))
    ways = {
        choice: [one.how for one in CpuRuntime(winograd=choice).prepare(layer.model()).explain().placements]
        for choice in (True, False)
    }
    assert ways == {True: ["winograd"], False: ["conv"]}


@pytest.mark.parametrize(
    "layer",
    [Layer(16, 16, (1, 1)), Layer(16, 16, (16, 1)), Layer(2, 32, (16, 16)), Layer(32, 2, (16, 16))],
    ids=str,
)
def test_where_it_is_more_work_sums_are_direct(isa: Isa, layer: Layer) -> None:
    plan = CpuPlan(layer.model(), isa)
    assert not kernels(plan)
    close(plan.spawn().run([layer.x])[0], layer.wanted())
