"""Deconvolutions of every shape class, on every instruction set of this machine, against the meaning in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tract_cpu.group.phases import Phase, phases
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import Isa

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Max, Mul
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.conv import reference as convolved
from tract_core.ops.deconv import Deconv, reference
from tract_core.ops.pool_spec import (
    AxisPlan,
    DataFormat,
    Explicit,
    Padding,
    PoolSpec,
    SameLower,
    SameUpper,
    Valid,
    Window,
)

VALID = Valid()


@dataclass(frozen=True)
class Shape:
    """A deconvolution. ``size``: of the spatial axes; ``kernel``, ``strides``, ``dilations``: along them."""

    inputs: int
    outputs: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    padding: Padding = VALID
    adjustments: tuple[int, ...] = ()
    group: int = 1
    layout: DataFormat = DataFormat.NCHW

    def __str__(self) -> str:
        return f"{self.inputs}-{self.outputs} {self.size} {self.kernel} {self.strides} g{self.group} {self.layout.name}"

    @property
    def op(self) -> Deconv:
        pool = PoolSpec(self.layout, self.kernel, self.padding, self.dilations, self.strides)
        return Deconv(pool, KernelFormat.OIHW, self.adjustments, self.group)

    def data(self, batch: int) -> tuple[int, ...]:
        return self.layout.replaced((batch,) * self.layout.rank(len(self.size)), self.inputs, self.size)


SHAPES = [
    Shape(16, 8, (5, 7), (2, 2), (2, 2)),
    Shape(17, 21, (5, 7), (3, 3)),
    Shape(32, 20, (4, 9), (4, 4), (2, 2), padding=Explicit((1, 1), (1, 1))),
    Shape(3, 5, (4, 9), (3, 3), (2, 2), padding=Explicit((1, 1), (1, 1)), adjustments=(1, 1)),
    Shape(16, 16, (5, 4), (2, 3), (3, 1), padding=SameUpper()),
    Shape(16, 16, (5, 4), (3, 2), (2, 3), (2, 2), padding=SameLower()),
    Shape(16, 16, (5, 4), (3, 5), (3, 4), (2, 3), padding=Explicit((4, 2), (5, 0))),
    Shape(20, 16, (6,), (16,), (8,), padding=Explicit((4,), (4,))),
    Shape(4, 18, (3, 2, 4), (2, 3, 2), (2, 1, 2)),
    Shape(24, 24, (7, 6), (4, 4), (2, 2), padding=Explicit((1, 1), (1, 1)), group=24),
    Shape(32, 32, (4, 5), (3, 3), (2, 2), group=2),
    Shape(12, 6, (4, 5), (3, 3), (2, 2), group=3),
    Shape(16, 7, (5, 3), (2, 2), (2, 2), layout=DataFormat.NHWC),
    Shape(16, 7, (5, 3), (2, 2), (2, 2), layout=DataFormat.CHW),
    Shape(5, 7, (), ()),
    Shape(16, 16, (0, 3), (3, 3), (2, 2)),
    Shape(16, 16, (1, 2), (3, 3), (1, 1), padding=Explicit((1, 2), (1, 2))),
]


def wired(shape: Shape, weights: Any, bias: Any, fact: str) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    inputs = [x, model.add_const("w", weights), model.add_const("b", bias)]
    model.set_outputs(model.wire_node("deconv", shape.op, inputs))
    return model


def arrays(shape: Shape, batch: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(0)
    sizes = [shape.data(batch), (shape.outputs, shape.inputs // shape.group, *shape.kernel), (shape.outputs,)]
    return [rng.standard_normal(size).astype(dtype) for size in sizes]


def same(found: Any, wanted: Any) -> None:
    assert found.shape == wanted.shape
    tolerance = {"f2": 1e-2, "f4": 1e-5, "f8": 1e-12}[found.dtype.str[1:]]
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max(initial=1) * 4)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_deconvolutions_are_those_of_numpy(isa: Isa, shape: Shape, dtype: str) -> None:
    batch = 2 if shape.layout.has_n else 1
    x, weights, bias = arrays(shape, batch, dtype)
    wanted = reference(shape.op, x.astype("f8"), weights.astype("f8"), bias.astype("f8"))
    short = DatumType.from_numpy(x.dtype).short
    symbols = shape.layout.replaced(("N",) * x.ndim, str(shape.inputs), [f"S{axis}" for axis in range(len(shape.size))])
    for fact in (",".join([*map(str, x.shape), short]), ",".join([*map(str, symbols), short])):
        plan = CpuPlan(wired(shape, weights, bias, fact), isa)
        if 0 not in x.shape:
            assert [one.how for one in plan.explain().placements][:1] != ["numpy"], fact
        same(plan.spawn().run([x])[0], wanted)


def test_what_is_behind_is_computed_along_and_stays_in_blocks(isa: Isa) -> None:
    """The operands have an element per position, or per channel; the convolution behind reads a border."""
    shape = Shape(16, 20, (5, 6), (3, 3), (2, 2))
    x, weights, bias = arrays(shape, 2, "f4")
    model, rng = wired(shape, weights, bias, "N,16,5,6,f32"), np.random.default_rng(1)
    factors = [rng.standard_normal(size).astype("f4") for size in ((1, 20, 11, 13), (1, 20, 1, 1), (1, 1, 1, 13))]
    (outlet,) = model.outputs
    for number, factor in enumerate(factors):
        (outlet,) = model.wire_node(f"m{number}", Mul(), [outlet, model.add_const(f"f{number}", factor)])
    (outlet,) = model.wire_node("relu", Max(), [outlet, model.add_const("zero", np.zeros((1, 1, 1, 1), "f4"))])
    conv = Conv(PoolSpec(DataFormat.NCHW, (3, 3), SameUpper()), KernelFormat.OIHW, 1)
    further, more = rng.standard_normal((8, 20, 3, 3)).astype("f4"), rng.standard_normal(8).astype("f4")
    model.set_outputs(
        model.wire_node("conv", conv, [outlet, model.add_const("w2", further), model.add_const("b2", more)])
    )
    plan = CpuPlan(model, isa)
    assert [one.ops for one in plan.explain().placements] == [("Deconv", "Mul", "Mul", "Mul", "Max"), ("Conv",)]
    hidden = reference(shape.op, *(one.astype("f8") for one in (x, weights, bias)))
    for factor in factors:
        hidden = hidden * factor
    same(plan.spawn().run([x])[0], convolved(conv, np.maximum(hidden, 0), further.astype("f8"), more.astype("f8")))


def test_infinite_data_and_weights_are_as_the_meaning_says(isa: Isa) -> None:
    """Nothing beyond the data is multiplied: an infinite weight makes no zeros around it not a number."""
    shape = Shape(16, 16, (4, 4), (3, 3), (2, 2))
    for place in (0, 1):
        x, weights, bias = arrays(shape, 1, "f4")
        (x, weights)[place][0, 2, 1, 0] = np.inf
        with np.errstate(invalid="ignore"):
            wanted = reference(shape.op, x, weights, bias)
        found = CpuPlan(wired(shape, weights, bias, "N,16,4,4,f32"), isa).spawn().run([x])[0]
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))


def test_a_bias_may_be_one_number_for_all(isa: Isa) -> None:
    shape = Shape(16, 20, (3, 4), (2, 2), (2, 2))
    x, weights, _ = arrays(shape, 1, "f4")
    found = CpuPlan(wired(shape, weights, np.array(2, "f4"), "N,16,3,4,f32"), isa).spawn().run([x])[0]
    same(found, reference(shape.op, x.astype("f8"), weights.astype("f8"), np.array(2.0)))


def test_phases() -> None:
    """Kernel 4, stride 2, one cut off: each phase reads two positions, and one of them reaches beyond each end."""
    assert phases(AxisPlan(Window(4, 1, 2), 5, 10, 1, 1)) == [
        Phase(0, 2, 5, (3, 1), 1, 1, 0),
        Phase(1, 2, 5, (2, 0), 1, 0, 1),
    ]
    assert phases(AxisPlan(Window(1, 1, 2), 3, 5, 0, 0)) == [
        Phase(0, 2, 3, (0,), 1, 0, 0),
        Phase(1, 2, 2, (), 1, 0, -1),
    ]


def with_inputs(shape: Shape, *arrays: Any) -> TypedModel:
    """Weights and bias are inputs too."""
    model = TypedModel()
    facts = [",".join([*map(str, one.shape), DatumType.from_numpy(one.dtype).short]) for one in arrays]
    sources = [model.add_source(f"i{slot}", parse_typed_fact(fact)) for slot, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("deconv", shape.op, sources))
    return model


def test_weights_that_are_inputs_give_the_same_bits_as_weights_of_the_model(isa: Isa) -> None:
    for shape in (SHAPES[0], SHAPES[2], SHAPES[6], SHAPES[11]):
        given = arrays(shape, 2, "f4")
        fact = ",".join([*map(str, given[0].shape), "f32"])
        plan = CpuPlan(with_inputs(shape, *given), isa)
        assert all(one.how != "numpy" for one in plan.explain().placements)
        np.testing.assert_array_equal(
            plan.spawn().run(given)[0], CpuPlan(wired(shape, *given[1:], fact), isa).spawn().run(given[:1])[0]
        )


def test_infinite_weights_of_a_run_are_as_the_meaning_says_also_in_blocks(isa: Isa) -> None:
    """The native step refuses where zeros around the data would meet them; what it gives is read in blocks behind."""
    shape = Shape(16, 16, (4, 4), (3, 3), (2, 2))
    x, weights, bias = arrays(shape, 2, "f4")
    model = with_inputs(shape, x, weights, bias)
    conv = Conv(PoolSpec(DataFormat.NCHW, (1, 1)), KernelFormat.OIHW, 16)
    ones, zeros = model.add_const("w2", np.ones((16, 1, 1, 1), "f4")), model.add_const("b2", np.zeros(16, "f4"))
    model.set_outputs(model.wire_node("conv", conv, [*model.outputs, ones, zeros]))
    plan = CpuPlan(model, isa)
    assert [one.how for one in plan.explain().placements] == ["conv", "depthwise"]
    for strange in (0, np.inf, -np.inf, np.nan):
        weights[12, 2, 1, 0] = strange
        with np.errstate(invalid="ignore"):
            wanted = reference(shape.op, x, weights, bias)
        np.testing.assert_allclose(plan.spawn().run([x, weights, bias])[0], wanted, rtol=1e-5, atol=1e-4)
