"""Convolutions of every shape class, on every instruction set of this machine, against the NumPy meaning in float64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from tract_cpu.caches import Caches
from tract_cpu.kernels.conv import ConvPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.products import direct
from tract_cpu.target import Rounding
from tract_llvm.elements.plan_text import plan_text
from tract_llvm.isa import Isa

from tract_core.data import DatumType
from tract_core.dims import parse_dim
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Max
from tract_core.ops.conv import Conv, KernelFormat, reference
from tract_core.ops.deconv import Deconv
from tract_core.ops.einsum import EinSum
from tract_core.ops.pool_spec import DataFormat, Explicit, Padding, PoolSpec, SameLower, SameUpper, Valid
from tract_core.plugins.keys import Array
from tract_core.runtime.parts import Part
from tract_core.runtime.reference import ReferenceRuntime

SAME = SameUpper()


@dataclass(frozen=True)
class Shape:
    """A convolution. ``size``: of the spatial axes; ``kernel``, ``strides``, ``dilations``: along them."""

    inputs: int
    outputs: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    padding: Padding = SAME
    group: int = 1
    layout: DataFormat = DataFormat.NCHW
    batch: int = 2

    def __str__(self) -> str:
        return f"{self.inputs}-{self.outputs} {self.size} {self.kernel} g{self.group} {self.layout.name}"

    @property
    def op(self) -> Conv:
        pool = PoolSpec(self.layout, self.kernel, self.padding, self.dilations, self.strides)
        return Conv(pool, KernelFormat.OIHW, self.group)

    @property
    def data(self) -> tuple[int, ...]:
        channels = (self.inputs, *self.size) if self.layout.channels_first else (*self.size, self.inputs)
        return (self.batch, *channels) if self.layout.has_n else channels


SHAPES = [
    Shape(3, 8, (9, 11), (3, 3)),
    Shape(3, 20, (17, 17), (7, 7), (2, 2), padding=Explicit((3, 3), (3, 3))),
    Shape(16, 16, (7, 7), (3, 3)),
    Shape(33, 70, (5, 29), (3, 3)),
    Shape(1, 1, (4, 4), (3, 3)),
    Shape(64, 48, (8, 8), (3, 3), (2, 2), padding=Explicit((0, 1), (1, 0))),
    Shape(20, 24, (9, 9), (3, 3), dilations=(2, 3)),
    Shape(24, 17, (6, 5), (1, 1)),
    Shape(24, 40, (6, 5), (1, 1), (2, 2), padding=Valid()),
    Shape(40, 40, (12, 13), (3, 3), group=40),
    Shape(21, 21, (12, 30), (5, 5), (2, 2), group=21, padding=SameLower()),
    Shape(64, 32, (6, 7), (3, 3), group=2),
    Shape(12, 20, (6, 7), (3, 3), (2, 1), group=4),
    Shape(6, 18, (6, 7), (3, 3), group=6),
    Shape(40, 34, (9,), (3,), group=2),
    Shape(6, 8, (6, 7), (1, 1), group=2, layout=DataFormat.NHWC),
    Shape(48, 96, (40,), (5,), dilations=(2,), padding=Explicit((8,), (0,))),
    Shape(5, 6, (1,), (1,)),
    Shape(20, 40, (23, 1), (5, 1)),
    Shape(3, 17, (23, 1), (5, 1), (2, 3)),
    Shape(17, 17, (23, 1, 1), (4, 1, 1), dilations=(2, 1, 1), group=17),
    Shape(16, 18, (9, 1), (3, 1), (1, 2), padding=Explicit((1, 1), (1, 1))),
    Shape(16, 18, (9, 2), (3, 2), padding=Valid()),
    Shape(19, 33, (23, 1), (5, 1), layout=DataFormat.NHWC),
    Shape(4, 18, (5, 6, 7), (3, 3, 3)),
    Shape(16, 16, (5, 6, 7), (2, 3, 1), (1, 2, 1), padding=Valid()),
    Shape(19, 33, (8, 9), (3, 3), layout=DataFormat.NHWC),
    Shape(19, 33, (8, 9), (3, 3), layout=DataFormat.CHW),
    Shape(32, 16, (8, 9), (3, 3), layout=DataFormat.HWC),
    Shape(16, 16, (3, 3), (3, 3), padding=Valid()),
    Shape(16, 16, (0, 5), (1, 3)),
    Shape(3, 4, (), ()),
    Shape(16, 16, (5, 5), (3, 3), batch=0),
]


def wired(shape: Shape, weights: np.ndarray, bias: np.ndarray, fact: str) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    model.set_outputs(model.wire_node("conv", shape.op, [x, model.add_const("w", weights), model.add_const("b", bias)]))
    return model


def wired_with_inputs(op: Conv | Deconv, *facts: str) -> TypedModel:
    """Weights and bias are inputs too."""
    model = TypedModel()
    names = ("x", "w", "b")
    sources = [
        model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in zip(names, facts, strict=True)
    ]
    model.set_outputs(model.wire_node("conv", op, sources))
    return model


def arrays(shape: Shape, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((shape.outputs, shape.inputs // shape.group, *shape.kernel))
    return [one.astype(dtype) for one in (rng.standard_normal(shape.data), weights, rng.standard_normal(shape.outputs))]


def same(found: np.ndarray, wanted: np.ndarray, depth: int) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=np.finfo(found.dtype).eps * 20 * depth)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_convolutions_are_those_of_numpy(isa: Isa, shape: Shape, dtype: str) -> None:
    x, weights, bias = arrays(shape, dtype)
    wanted = reference(shape.op, x.astype("f8"), weights.astype("f8"), bias.astype("f8"))
    short = DatumType.from_numpy(x.dtype).short
    facts = [",".join([*map(str, x.shape), short])]
    if shape.layout.has_n and shape.batch:
        symbols = ["N", *(str(size) if size == shape.inputs else f"S{axis}" for axis, size in enumerate(x.shape[1:]))]
        facts.append(",".join([*symbols, short]))
    for fact in facts:
        plan = CpuPlan(wired(shape, weights, bias, fact), isa)
        if 0 not in x.shape:
            assert all(placement.how != "numpy" for placement in plan.explain().placements), fact
        same(plan.spawn().run([x])[0], wanted, weights[0].size)


@pytest.mark.parametrize("channels", [1, 16, 37])
def test_blocks_go_from_end_to_end(isa: Isa, channels: int) -> None:
    """Two convolutions, the second with a residual: what lies between them is in blocks, with a border."""
    rng = np.random.default_rng(0)
    model = TypedModel()
    x = outlet = model.add_source("x", parse_typed_fact(f"N,{channels},10,12,f32", model.symbols))
    shape = Shape(channels, channels, (10, 12), (3, 3))
    parameters = []
    for number in range(2):
        weights = rng.standard_normal((channels, channels, 3, 3)).astype("f4") / channels
        bias = rng.standard_normal(channels).astype("f4")
        parameters.append((weights, bias))
        constants = [model.add_const(f"w{number}", weights), model.add_const(f"b{number}", bias)]
        (outlet,) = model.wire_node(f"conv{number}", shape.op, [outlet, *constants])
        if number == 0:
            zero = model.add_const("zero", np.zeros((1, 1, 1, 1), "f4"))
            (outlet,) = model.wire_node("relu", Max(), [outlet, zero])
    (outlet,) = model.wire_node("residual", Add(), [outlet, x])
    model.set_outputs([outlet])
    plan = CpuPlan(model, isa)
    ops = [placement.ops for placement in plan.explain().placements]
    assert ops == [("Conv", "Max"), ("Conv", "Add")] or channels == 37
    image = rng.standard_normal((2, channels, 10, 12)).astype("f4")
    (first, second) = ([one.astype("f8") for one in pair] for pair in parameters)
    hidden = np.maximum(reference(shape.op, image.astype("f8"), *first), 0)
    same(plan.spawn().run([image])[0], reference(shape.op, hidden, *second) + image, 9 * channels)


@pytest.mark.parametrize(
    ("mapping", "data"), [("nchw,oc->nohw", (2, 24, 5, 6)), ("cw,co->ow", (24, 7)), ("nct,oc->not", (2, 24, 9))]
)
def test_products_over_channels_are_convolutions(isa: Isa, mapping: str, data: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal(data).astype("f4"), rng.standard_normal((24, 24)).astype("f4")
    model = TypedModel()
    source = model.add_source("x", TypedFact.of(DatumType.F32, data))
    inputs = [source, model.add_const("w", weights)]
    model.set_outputs(model.wire_node("product", EinSum(AxesMapping.parse(mapping), DatumType.F32), inputs))
    plan = CpuPlan(model, isa)
    assert plan.explain().placements[0].how == "conv"
    wanted = np.einsum(mapping, x.astype("f8"), weights.astype("f8"))
    same(plan.spawn().run([x])[0], wanted, 24)


def test_nothing_is_hidden_by_zeros_around(isa: Isa) -> None:
    """An infinite weight times the zeros of the padding is not a number, as the meaning says."""
    shape = Shape(16, 16, (4, 4), (3, 3))
    x, weights, bias = arrays(shape, "f4")
    weights[3, 2, 0, 0] = np.inf
    plan = CpuPlan(wired(shape, weights, bias, "N,16,4,4,f32"), isa)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            np.isnan(plan.spawn().run([x])[0]), np.isnan(reference(shape.op, x, weights, bias))
        )


def test_tensors_in_blocks_are_shown_and_exchanged(isa: Isa) -> None:
    shape = Shape(16, 20, (5, 6), (3, 3))
    x, weights, bias = arrays(shape, "f4")
    model = wired(shape, weights, bias, "2,16,5,6,f32")
    again = Shape(20, 8, (5, 6), (3, 3))
    _, further, more = arrays(again, "f4")
    inputs = [model.outputs[0], model.add_const("w2", further), model.add_const("b2", more)]
    model.set_outputs(model.wire_node("again", again.op, inputs))
    wanted, seen = reference(shape.op, x, weights, bias), {}

    def twice(part: Part, given: Mapping[OutletId, Array]) -> Mapping[OutletId, Array]:
        seen.update({model.nodes[outlet.node].name: array.copy() for outlet, array in given.items()})
        return {outlet: 2 * array for outlet, array in given.items()} if part.names(model) == ("conv",) else {}

    (found,) = CpuPlan(model, isa).spawn_observed(twice).run([x])
    same(seen["conv"], wanted, 144)
    same(found, reference(again.op, 2 * wanted, further, more), 500)


def test_what_is_shown_is_what_was_written_not_a_copy_that_comes_later(isa: Isa) -> None:
    """Two readers want borders of which nobody knows which one is larger: a copy with the second one is made later."""
    first = Shape(16, 20, (5, 6), (3, 3))
    x, weights, bias = arrays(first, "f4")
    model = wired(first, weights, bias, "2,16,H,W,f32")
    before, after = (parse_dim(text) for text in ("H", "W"))
    (hidden,), results = model.outputs, []
    for number, ends in enumerate([(before, after), (after, before)]):
        op = Shape(20, 8, (5, 6), (3, 3), padding=Explicit(ends, ends)).op
        constants = [model.add_const(f"{name}{number}", np.ones(size, "f4")) for name, size in KERNELS]
        results += model.wire_node(f"reader{number}", op, [hidden, *constants])
    model.set_outputs(results)
    seen = {}

    def look(part: Part, given: Mapping[OutletId, Array]) -> None:
        seen.update({model.nodes[outlet.node].name: array for outlet, array in given.items()})

    CpuPlan(model, isa).spawn_observed(look).run([x])
    same(seen["conv"], reference(first.op, x, weights, bias), 144)


KERNELS = [("w", (8, 20, 3, 3)), ("b", (8,))]


@pytest.mark.parametrize("operand", ["1,20,5,6,f32", "2,20,5,6,f32", "1,20,1,1,f32", "2,1,5,6,f32", "2,20,1,6,f32"])
def test_operands_behind_a_convolution_lie_anyhow(isa: Isa, operand: str) -> None:
    """As inputs and as constants, whatever axes they have: their channels are not side by side."""
    shape = Shape(16, 20, (5, 6), (3, 3))
    x, weights, bias = arrays(shape, "f4")
    other = np.random.default_rng(1).standard_normal([int(size) for size in operand.split(",")[:-1]]).astype("f4")
    wanted = reference(shape.op, x, weights, bias) + other
    for constant in (True, False):
        model = wired(shape, weights, bias, "2,16,5,6,f32")
        added = model.add_const("other", other) if constant else model.add_source("other", parse_typed_fact(operand))
        model.set_outputs(model.wire_node("sum", Add(), [*model.outputs, added]))
        plan = CpuPlan(model, isa)
        assert plan.explain().placements[0].ops == ("Conv", "Add")
        same(plan.spawn().run([x] if constant else [x, other])[0], wanted, 144)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_convolutions_of_integers_wrap_around_as_the_references(isa: Isa, shape: Shape, dtype: str) -> None:
    rng, ends = np.random.default_rng(0), np.iinfo(dtype)
    per_group = shape.inputs // shape.group
    parts = [shape.data, (shape.outputs, per_group, *shape.kernel), (shape.outputs,)]
    x, weights, bias = (rng.integers(ends.min, ends.max, part, dtype, endpoint=True) for part in parts)
    fact = TypedFact.of(DatumType.from_numpy(np.dtype(dtype)), shape.data)
    plan = CpuPlan(wired(shape, weights, bias, str(fact)), isa)
    assert all(placement.how != "numpy" for placement in plan.explain().placements)
    np.testing.assert_array_equal(plan.spawn().run([x])[0], reference(shape.op, x, weights, bias))


def test_long_rows_are_cut_into_pieces_for_which_all_channels_are_computed(isa: Isa) -> None:
    """A product over channels at 2,688 positions: more tasks than output channels, and the result is the same."""
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((2, 80, 48, 56)).astype("f4"), rng.standard_normal((48, 80)).astype("f4")
    model = TypedModel()
    inputs = [model.add_source("x", TypedFact.of(DatumType.F32, x.shape)), model.add_const("w", weights)]
    model.set_outputs(model.wire_node("product", EinSum(AxesMapping.parse("nchw,oc->nohw"), DatumType.F32), inputs))
    plan = CpuPlan(model, isa)
    (step,) = [step for step in plan.steps if step.nodes]
    assert isinstance(step.kernel, ConvPlan)
    runs = -(-48 // (step.kernel.vectors * step.kernel.lanes))
    assert int(step.tasks) > 2 * runs
    same(plan.spawn().run([x])[0], np.einsum("nchw,oc->nohw", x.astype("f8"), weights.astype("f8")), 80)


def fact_of(array: np.ndarray) -> str:
    return ",".join([*map(str, array.shape), DatumType.from_numpy(array.dtype).short])


GIVEN = [
    Shape(33, 70, (5, 29), (3, 3)),
    Shape(40, 40, (12, 13), (3, 3), group=40),
    Shape(12, 20, (6, 7), (3, 3), (2, 1), group=4),
    Shape(4, 18, (5, 6, 7), (3, 3, 3)),
    Shape(19, 33, (8, 9), (3, 3), layout=DataFormat.NHWC),
    Shape(3, 4, (), ()),
]


def test_weights_that_are_inputs_give_the_same_bits_as_weights_of_the_model(isa: Isa) -> None:
    for shape in GIVEN:
        x, weights, bias = arrays(shape, "f4")
        facts = [fact_of(one) for one in (x, weights, bias)]
        wanted = CpuPlan(wired(shape, weights, bias, facts[0]), isa).spawn().run([x])[0]
        plan = CpuPlan(wired_with_inputs(shape.op, *facts), isa)
        assert all(one.how != "numpy" for one in plan.explain().placements)
        np.testing.assert_array_equal(plan.spawn().run([x, weights, bias])[0], wanted)
        one = np.array(0.5, "f4")
        scalar = CpuPlan(wired_with_inputs(shape.op, *facts[:2], "f32"), isa).spawn().run([x, weights, one])[0]
        same(scalar, reference(shape.op, x.astype("f8"), weights.astype("f8"), one.astype("f8")), weights[0].size)


@pytest.mark.parametrize("group", [1, 2])
def test_input_channels_may_be_symbolic(isa: Isa, group: int) -> None:
    shape = Shape(21 * group, 34, (9,), (3,), group=group)
    facts = (f"N,{group}*C,S,f32", "34,C,3,f32", "34,f32")
    plan = CpuPlan(wired_with_inputs(shape.op, *facts), isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    x, weights, bias = arrays(shape, "f4")
    wanted = reference(shape.op, x.astype("f8"), weights.astype("f8"), bias.astype("f8"))
    same(plan.spawn().run([x, weights, bias])[0], wanted, weights[0].size)


@pytest.mark.parametrize("dtype", ["i1", "u1"])
def test_symbolic_channels_of_bytes_are_summed_one_by_one(isa: Isa, dtype: str) -> None:
    shape = Shape(8, 34, (9,), (3,))
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 127, shape.data).astype(dtype)
    weights, bias = rng.integers(-128, 127, (34, 8, 3), "i1"), rng.integers(-99, 99, 34, "i4")
    plan = CpuPlan(wired(shape, weights, bias, f"N,C,9,{DatumType.from_numpy(x.dtype).short}"), isa)
    np.testing.assert_array_equal(plan.spawn().run([x])[0], reference(shape.op, x, weights, bias))


@pytest.mark.parametrize("shape", [SHAPES[9], SHAPES[11], SHAPES[12]], ids=str)
def test_symbolic_channels_of_groups_whose_weights_are_known_are_all_read(isa: Isa, shape: Shape) -> None:
    x, weights, bias = arrays(shape, "f4")
    plan = CpuPlan(wired(shape, weights, bias, "N,C,H,W,f32"), isa)
    wanted = reference(shape.op, x.astype("f8"), weights.astype("f8"), bias.astype("f8"))
    same(plan.spawn().run([x])[0], wanted, weights[0].size)


@pytest.mark.parametrize("shape", [SHAPES[3], SHAPES[9], SHAPES[11]], ids=str)
def test_narrow_integers_of_two_types_are_summed_in_i32(isa: Isa, shape: Shape) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, shape.data, "u1", endpoint=True)
    weights = rng.integers(-128, 127, (shape.outputs, shape.inputs // shape.group, *shape.kernel), "i1", endpoint=True)
    bias = rng.integers(-999, 999, shape.outputs, "i4")
    plan = CpuPlan(wired(shape, weights, bias, fact_of(x)), isa)
    assert all(placement.how != "numpy" for placement in plan.explain().placements)
    np.testing.assert_array_equal(plan.spawn().run([x])[0], reference(shape.op, x, weights, bias))


def test_a_product_over_channels_may_have_factors_of_two_types(isa: Isa) -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.integers(0, 255, (2, 24, 5, 6), "u1"), rng.integers(-128, 127, (24, 24), "i1")
    model = TypedModel()
    inputs = [model.add_source("x", parse_typed_fact(fact_of(x))), model.add_const("w", weights)]
    model.set_outputs(model.wire_node("product", EinSum(AxesMapping.parse("nchw,oc->nohw"), DatumType.I32), inputs))
    wanted = np.einsum("nchw,oc->nohw", x.astype("i4"), weights.astype("i4"))
    np.testing.assert_array_equal(CpuPlan(model, isa).spawn().run([x])[0], wanted)


@pytest.mark.parametrize("shape", ["2,16,7,{}", "2,16,7,W"])
@pytest.mark.parametrize("width", [1, 2, 13, 14, 28, 31, 129])
def test_kernels_have_the_tiles_that_some_row_needs(isa: Isa, shape: str, width: int) -> None:
    """Where the length of rows is known that is one tile for what whole ones leave over, or none."""
    op = Shape(16, 33, (7, width), (3, 3))
    x, weights, bias = arrays(op, "f4")
    plan = CpuPlan(wired(op, weights, bias, shape.format(width) + ",f32"), isa, rounding=Rounding(winograd=False))
    (kernel,) = [step.kernel for step in plan.steps if isinstance(step.kernel, ConvPlan)]
    rest = [tile.columns for tile in kernel.rest]
    if "W" in shape:
        assert rest[-1] == 1
        assert rest == sorted(set(rest), reverse=True)
    else:
        over = width % kernel.columns
        assert rest == ([over] if over else [])
    same(plan.spawn().run([x])[0], reference(op.op, *(one.astype("f8") for one in (x, weights, bias))), 16 * 9)


@pytest.mark.parametrize("dtype", ["f4", "i1"])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 9])
def test_what_tiles_leave_over_is_summed_for_more_channels_at_once(
    isa: Isa, blocks: int, group: int, dtype: str
) -> None:
    """Rows whose length is known, and those whose length only a run tells."""
    outputs = (blocks * isa.lanes(32) - 1) * group
    for width in (0, 1, 2, 3, 4, 8, 15, 31, 32):
        shape = Shape(8 * group, outputs, (width,), (3,), padding=Explicit((1,), (1,)), group=group)
        x, weights, bias = (10 * one for one in arrays(shape, "f4"))
        x, weights, bias = x.astype(dtype), weights.astype(dtype), bias.astype("i4" if dtype == "i1" else dtype)
        sized = f"2,{8 * group},{{}},{DatumType.from_numpy(x.dtype).short}"
        models = [wired(shape, weights, bias, sized.format(size)) for size in (width, "W")]
        plans = [CpuPlan(model, isa, rounding=Rounding(winograd=False)) for model in models]
        results = [plan.spawn().run([x])[0] for plan in plans]
        wanted = reference(shape.op, *(one.astype("f8") for one in (x, weights, bias)))
        for result in results:
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-2 if dtype == "f4" else 0)
        (kernel,) = [step.kernel for step in plans[1].steps if isinstance(step.kernel, ConvPlan)]
        for tile in kernel.rest:
            assert tile.runs > 1 or tile.columns * kernel.vectors > 2 or kernel.vectors >= blocks


@pytest.mark.parametrize("ones", [(), (1,), (1, 1)], ids=len)
def test_axes_of_one_position_behind_the_others_take_nothing_from_tiles(isa: Isa, ones: tuple[int, ...]) -> None:
    """These are as wide as without them."""
    op = Shape(16, 64, (60, *ones), (5, *ones), padding=Valid(), batch=1)
    x, weights, bias = arrays(op, "f4")
    plan = CpuPlan(wired(op, weights, bias, fact_of(x)), isa)
    (kernel,) = [step.kernel for step in plan.steps if isinstance(step.kernel, ConvPlan)]
    assert (kernel.spatial, kernel.columns > 1) == (1, True)
    same(plan.spawn().run([x])[0], reference(op.op, *(one.astype("f8") for one in (x, weights, bias))), 16 * 5)


@pytest.mark.parametrize("outputs", [6, 9, 10])
def test_no_vector_of_a_tile_is_without_channels_where_that_can_be(isa: Isa, outputs: int) -> None:
    """Blocks of channels of which tiles of four vectors leave some over; the positions fill tiles of any width."""
    lanes = isa.lanes(32)
    op = Shape(3, outputs * lanes, (4, 84), (3, 3), batch=1)
    x, weights, bias = arrays(op, "f4")
    plan = CpuPlan(wired(op, weights, bias, fact_of(x)), isa)
    (kernel,) = [step.kernel for step in plan.steps if isinstance(step.kernel, ConvPlan)]
    assert outputs % kernel.vectors == 0
    factors = kernel.vectors + 1
    assert kernel.columns * kernel.vectors + factors <= isa.registers
    same(plan.spawn().run([x])[0], reference(op.op, *(one.astype("f8") for one in (x, weights, bias))), 27)


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_weights_of_a_tile_stay_in_the_second_cache(isa: Isa, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it keeps those of fewer vectors than tiles have else."""
    lanes = isa.lanes(32)
    op = Shape(16, 4 * lanes, (7, 7), (3, 3), strides=(2, 2), batch=1)
    x, weights, bias = arrays(op, "f4")
    size = 16 * 9 * lanes * 4
    monkeypatch.setattr(direct, "caches", lambda: Caches(1 << 10, kept * size * 4 // 3 + 4))
    plan = CpuPlan(wired(op, weights, bias, fact_of(x)), isa)
    (kernel,) = [step.kernel for step in plan.steps if isinstance(step.kernel, ConvPlan)]
    assert kernel.vectors <= kept
    assert kept == 1 or kernel.vectors > 1
    same(plan.spawn().run([x])[0], reference(op.op, *(one.astype("f8") for one in (x, weights, bias))), 16 * 9)


def kernels(plan: CpuPlan) -> set[str]:
    return {plan_text(step.kernel) for step in plan.steps if isinstance(step.kernel, ConvPlan)}


def test_one_kernel_serves_weights_of_any_size(isa: Isa) -> None:
    """Those that stay in the cache are used for all output channels before the next row, others for all rows before."""
    model, op = TypedModel(), Shape(192, 192, (8, 8), (3, 3)).op
    x = model.add_source("x", TypedFact.of(DatumType.F32, (1, 192, 8, 8)))
    rng = np.random.default_rng(0)
    for name, inputs, outputs in (("large", 192, 192), ("small", 192, 96), ("last", 96, 192)):
        weights = (rng.standard_normal((outputs, inputs, 3, 3)) / 48).astype("f4")
        w, b = model.add_const(f"{name}.w", weights), model.add_const(f"{name}.b", np.zeros(outputs, "f4"))
        (x,) = model.wire_node(name, op, [x, w, b])
    model.set_outputs([x])
    plan = CpuPlan(model, isa, threads=2, rounding=Rounding(winograd=False))
    near = [step.arguments[3] for step in plan.steps if isinstance(step.kernel, ConvPlan)]
    assert near[0] == 1
    assert len(kernels(plan)) == 1
    data = rng.standard_normal((1, 192, 8, 8)).astype("f4")
    (wanted,) = ReferenceRuntime().prepare(model).spawn().run([data])
    same(plan.spawn().run([data])[0], wanted, 192 * 9)


def test_the_order_of_operands_that_commute_makes_no_kernel_of_its_own(isa: Isa) -> None:
    shape = Shape(16, 16, (7, 7), (1, 1), batch=1)
    _, weights, bias = arrays(shape, "f4")
    model = wired(shape, weights, bias, "1,16,7,7,f32")
    (found,) = model.outputs
    for name in ("right", "left"):
        other = model.add_source(name, TypedFact.of(DatumType.F32, (1, 16, 7, 7)))
        (found,) = model.wire_node(f"{name}.add", Add(), [found, other] if name == "right" else [other, found])
        w, b = model.add_const(f"{name}.w", weights), model.add_const(f"{name}.b", bias)
        (found,) = model.wire_node(f"{name}.conv", shape.op, [found, w, b])
    model.set_outputs([found])
    assert len(kernels(CpuPlan(model, isa))) == 2
