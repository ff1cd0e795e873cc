"""Weights in blocks, which products and look-ups read packed: what the reference gives, on every instruction set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tract_cpu.ahead.targets import SIMD128
from tract_cpu.kernels.in_blocks.bytes import BlockBytesPlan, grouping_of_bytes
from tract_cpu.kernels.in_blocks.matmul import FEW_ROWS, BlockMatMulPlan
from tract_cpu.kernels.in_blocks.rows import BlockRowsPlan
from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.kernels.map import MapPlan
from tract_cpu.kernels.matmul import MatMulPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import HostStep, NativeStep
from tract_cpu.target import Rounding
from tract_llvm.isa import ISAS, Isa, of_this_machine, portable

from tract_core.data import DatumType
from tract_core.data.constant import Constant
from tract_core.errors import RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Neg
from tract_core.ops.gather import Gather
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.wiring import wire_binary

Array = np.ndarray[Any, Any]

PLAIN = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q8_1")
NESTED = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k")
CODED = ("iq4_nl", "iq4_xs", "mxfp4", "nvfp4")
GROUPED = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s")
TERNARY = ("tq1_0", "tq2_0")
SETS = [portable(one) for one in (*ISAS, SIMD128)]
OWN = of_this_machine()[-1]
ROUNDS = next(one for one in SETS if grouping_of_bytes(one) is not None)
EACH = [
    *((portable(OWN), form) for form in (*PLAIN, *NESTED, *CODED, *GROUPED, *TERNARY)),
    *(
        (isa, form)
        for isa in SETS
        for form in ("q4_0", "q5_1", "q2_k", "q6_k", "iq1_s", "iq2_xs", "tq2_0")
        if isa != portable(OWN)
    ),
]
"""Every form as this machine has it; on each instruction set those that others are like."""
SMALLEST = {
    **dict.fromkeys(("q2_k", "q3_k", "q6_k", "iq1_m", "iq2_xs", "iq2_s", "nvfp4"), 16),
    **dict.fromkeys(TERNARY, 256),
}
"""How many elements have a scale, where they are not 32."""
OF_ODD = ("iq1_s", "iq1_m", "iq3_s")
"""Those whose integers are halved, and get an offset that files do not have."""
ROWS = (0, 1, 2, 3, 5, FEW_ROWS - 1, FEW_ROWS, FEW_ROWS + 5)
ROUNDING = 2e-6
"""Of a sum of 200 products, relative to the largest one: each addition rounds by 6e-8."""


HALVES = {
    **dict.fromkeys(("q4_1", "q5_1", "q4_k", "q5_k"), (0, 2)),
    "q2_k": (80, 82),
    "q3_k": (108,),
    "q6_k": (208,),
    "tq1_0": (52,),
    "tq2_0": (64,),
    **dict.fromkeys(("mxfp4", "nvfp4", "iq1_m"), ()),
}
"""Where numbers of 16 bits are in blocks that have others than one at the begin."""


def blocks(form: str, rows: int, count: int, seed: int = 0) -> Array:
    """Random blocks [rows, count, bytes] whose scales, and what is added, are small numbers."""
    random, size = np.random.default_rng(seed), FORMATS[form].size
    found = random.integers(0, 256, (rows, count, size)).astype(np.uint8)
    for place in HALVES.get(form, (0,)):
        found[..., place : place + 2] = random.uniform(-0.1, 0.1, (rows, count, 1)).astype("<f2").view(np.uint8)
    if form == "mxfp4":
        found[..., 0] = random.integers(120, 128, (rows, count))  # exponents of two, 127 more
    if form == "nvfp4":
        found[..., :4] = random.integers(0, 48, (rows, count, 4))  # floats of 8 bits below 0.5, some of them tiny
    if form == "iq1_m":
        for block in found.reshape(-1, size):
            put_half(form, block, random.uniform(-0.1, 0.1))
    return found


def put_half(form: str, block: Array, number: float) -> None:
    """Make a number the one of 16 bits that a block begins with, or has elsewhere; IQ1_M has it in four parts."""
    half = np.array([number], "<f2").view(np.uint8)
    if form == "iq1_m":
        block[49:56:2] = block[49:56:2] & 15 | np.array(
            [half[0] << 4, half[0] & 240, half[1] << 4, half[1] & 240], "u1"
        )
        return
    (place,) = HALVES.get(form, (0,))
    block[place : place + 2] = half


def numbers(form: str, packed: Array) -> Array:
    return FORMATS[form].decode(packed.reshape(-1, packed.shape[-1])).reshape(len(packed), -1).astype("f8")


def product(form: str, packed: Array, fact: str, axes: str = "ak,nk->an") -> tuple[TypedModel, OutletId]:
    """A model whose one output is a product with weights in blocks, and where the weights are."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    (w,) = model.wire_node("w", UnpackBlocks(form), [model.add_const("w.blocks", packed)])
    op = EinSum(AxesMapping.parse(axes), DatumType.F32)
    model.set_outputs(model.wire_node("y", op, [x, w]))
    return model, w


def kernels(plan: CpuPlan) -> list[KernelPlan]:
    return [step.kernel for step in plan.steps if isinstance(step, NativeStep)]


def assert_near(found: Array, x: Array, w: Array) -> None:
    """``x``: [rows, depth]; ``w``: [columns, depth]."""
    bound = ROUNDING * (np.abs(x.astype("f8")) @ np.abs(w).T).max(initial=1)
    np.testing.assert_allclose(found, x.astype("f8") @ w.T, rtol=0, atol=bound)


@pytest.mark.parametrize(("isa", "form"), EACH, ids=lambda one: one if isinstance(one, str) else one.name)
def test_products_are_those_of_unpacked_weights(isa: Isa, form: str) -> None:
    packed = blocks(form, 37, 3)
    depth = 3 * FORMATS[form].length
    model, _ = product(form, packed, f"S,{depth},f32")
    plan = CpuPlan(model, isa)
    assert [type(one) for one in kernels(plan)] == [BlockMatMulPlan]
    state = plan.spawn()
    for rows in ROWS:
        x = np.random.default_rng(rows).standard_normal((rows, depth)).astype("f4")
        assert_near(state.run([x])[0], x, numbers(form, packed))


@pytest.mark.parametrize("bytes_", [False, True])
def test_a_row_does_not_depend_on_the_few_beside_it(bytes_: bool) -> None:
    model, _ = product("q4_0", blocks("q4_0", 37, 3), "S,96,f32")
    state, x = CpuPlan(model, OWN, rounding=Rounding(bytes=bytes_)).spawn(), np.random.default_rng(5)
    rows = x.standard_normal((FEW_ROWS - 1, 96)).astype("f4")
    alone = np.concatenate([state.run([rows[one : one + 1]])[0] for one in range(len(rows))])
    for count in range(2, FEW_ROWS):
        np.testing.assert_array_equal(state.run([rows[:count]])[0], alone[:count])


@pytest.mark.parametrize("rows", [1, 3, FEW_ROWS, 200])
@pytest.mark.parametrize("columns", [2, 7, 8, 16, 33])
def test_of_sizes_that_are_known(rows: int, columns: int) -> None:
    packed = blocks("q4_0", columns, 2)
    model, _ = product("q4_0", packed, f"{rows},64,f32")
    plan, x = CpuPlan(model, OWN), np.random.default_rng(1).standard_normal((rows, 64)).astype("f4")
    assert [type(one) for one in kernels(plan)] == [BlockMatMulPlan]
    assert_near(plan.spawn().run([x])[0], x, numbers("q4_0", packed))


def test_rows_may_be_several_axes_and_operands_may_follow() -> None:
    packed = blocks("q8_1", 24, 2)
    model, _ = product("q8_1", packed, "B,S,64,f32", "abk,nk->abn")
    bias = np.arange(24, dtype="f4")
    other = model.add_source("z", parse_typed_fact("B,S,24,f32", model.symbols))
    sums = wire_binary(model, "sum", Add(), model.outputs[0], model.add_const("bias", bias.reshape(1, 1, 24)))
    model.set_outputs([wire_binary(model, "all", Add(), sums, other)])
    plan = CpuPlan(model, OWN)
    assert [type(one) for one in kernels(plan)] == [BlockMatMulPlan]
    random = np.random.default_rng(2)
    for shape in ((1, 1), (3, 1), (2, 9), (0, 2)):
        x, z = (random.standard_normal((*shape, size)).astype("f4") for size in (64, 24))
        wanted = x.astype("f8") @ numbers("q8_1", packed).T + bias + z
        np.testing.assert_allclose(plan.spawn().run([x, z])[0], wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 3, FEW_ROWS])
def test_what_is_not_finite_comes_out_as_with_unpacked_weights(rows: int) -> None:
    """Infinities, what is no number, and sums of codes that overflow where those of weights do not."""
    packed = blocks("q4_0", 16, 2)
    packed[3, 0, :2] = np.array([0], "<f2").view(np.uint8)
    packed[4, 1, :2] = np.array([np.inf], "<f2").view(np.uint8)
    packed[5, :, :2] = np.array([1e-7], "<f2").view(np.uint8)
    model, _ = product("q4_0", packed, f"{rows},64,f32")
    with np.errstate(invalid="ignore"):
        state, w = CpuPlan(model, OWN).spawn(), numbers("q4_0", packed).astype("f4")
    for strange in (np.inf, -np.inf, np.nan, 3e38, 1e30):
        x = np.ones((rows, 64), "f4")
        x[0, 7] = strange
        with np.errstate(all="ignore"):
            wanted = (x[:, None, :] * w).sum(axis=2, dtype="f8")
            bound = 1e-5 * np.abs(x[:, None, :] * w).max(axis=2)
            found = state.run([x])[0].astype("f8")
            near = np.abs(found - wanted) <= bound
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        assert (same | near).all(), strange


@pytest.mark.parametrize("scale", [np.inf, -np.inf, np.nan], ids=str)
@pytest.mark.parametrize("form", ["iq2_xs", "iq3_xxs", "tq1_0", "tq2_0", *OF_ODD])
def test_scales_that_are_not_finite_make_what_they_make_of_unpacked_weights(form: str, scale: float) -> None:
    """Where integers would get an offset, weights with infinities are unpacked: both cancel to what is no number."""
    packed = blocks(form, 9, 2)
    put_half(form, packed[4, 1], scale)
    model, _ = product(form, packed, "S,512,f32")
    plan = CpuPlan(model, OWN)
    assert any(isinstance(one, BlockMatMulPlan) for one in kernels(plan)) == (
        form not in OF_ODD or bool(np.isnan(scale))
    )
    x = np.random.default_rng(4).standard_normal((FEW_ROWS + 1, 512)).astype("f4")
    with np.errstate(invalid="ignore"):
        w = numbers(form, packed)
        wanted = (x[:, None, :] * w[4:5]).sum(axis=2)[:, 0]
    for rows in (1, 3, FEW_ROWS + 1):
        found = plan.spawn().run([x[:rows]])[0]
        np.testing.assert_array_equal(found[:, 4], wanted[:rows])
        assert_near(np.delete(found, 4, 1), x[:rows], np.delete(w, 4, 0))


@pytest.mark.parametrize("form", OF_ODD)
def test_infinite_rows_meet_offsets_that_files_do_not_have(form: str) -> None:
    packed = blocks(form, 9, 2)
    model, _ = product(form, packed, "S,512,f32")
    plan, w = CpuPlan(model, OWN), numbers(form, packed)
    for rows in (1, 3, FEW_ROWS + 1):
        x = np.ones((rows, 512), "f4")
        x[0, 300] = np.inf
        found = plan.spawn().run([x])[0]
        np.testing.assert_array_equal(found[0], np.inf * np.sign(w[:, 300]))
        assert_near(found[1:], x[1:], w)


@pytest.mark.parametrize(("isa", "form"), EACH, ids=lambda one: one if isinstance(one, str) else one.name)
def test_rows_are_looked_up_in_blocks(isa: Isa, form: str) -> None:
    packed = blocks(form, 21, 2)
    depth = 2 * FORMATS[form].length
    model, weights = product(form, packed, f"1,{depth},f32")
    indices = model.add_source("i", parse_typed_fact("B,S,i64", model.symbols))
    (rows,) = model.wire_node("rows", Gather(0), [weights, indices])
    model.set_outputs([*model.outputs, rows])
    plan = CpuPlan(model, isa)
    assert {type(one) for one in kernels(plan)} == {BlockMatMulPlan, BlockRowsPlan}
    x, w = np.ones((1, depth), "f4"), numbers(form, packed)
    for chosen in ([[0, 20, 3]], [[-1], [-21]], [[]]):
        index = np.array(chosen, "i8").reshape(len(chosen), -1)
        product_of, found = plan.spawn().run([x, index])
        np.testing.assert_array_equal(found, w[index].astype("f4"))
        assert_near(product_of, x, w)


def test_the_smallest_and_the_largest_powers_of_two_are_exact_scales() -> None:
    """Of MXFP4: two of them are no normal numbers of f32."""
    packed = blocks("mxfp4", 5, 2)
    packed[..., 0] = np.array([0, 1, 2, 3, 252])[:, None]
    model, weights = product("mxfp4", packed, "1,64,f32")
    indices = model.add_source("i", parse_typed_fact("N,i64", model.symbols))
    model.set_outputs([*model.outputs, *model.wire_node("rows", Gather(0), [weights, indices])])
    x, w = np.zeros((1, 64), "f4"), numbers("mxfp4", packed)
    x[0, 5] = 0.5
    sums, rows = CpuPlan(model, OWN).spawn().run([x, np.arange(5)])
    np.testing.assert_array_equal(rows, w.astype("f4"))
    np.testing.assert_array_equal(sums, (x @ w.T).astype("f4"))


@pytest.mark.parametrize("scale", [253, 255])
def test_powers_of_two_that_make_infinities_are_unpacked(scale: int) -> None:
    packed = blocks("mxfp4", 3, 1)
    packed[1, 0, 0] = scale
    packed[1, 0, 1:] = 0xF7  # 12 and -12 before they are scaled
    model, _ = product("mxfp4", packed, "1,32,f32")
    plan, x = CpuPlan(model, OWN), np.ones((1, 32), "f4")
    assert not [one for one in kernels(plan) if isinstance(one, BlockMatMulPlan)]
    found = plan.spawn().run([x])[0]
    assert np.isnan(found[0, 1])
    assert_near(found[:, ::2], x, numbers("mxfp4", packed[::2]))


@pytest.mark.parametrize("index", [21, -22])
def test_an_index_outside_is_refused(index: int) -> None:
    model = TypedModel()
    (w,) = model.wire_node("w", UnpackBlocks("q4_0"), [model.add_const("w.blocks", blocks("q4_0", 21, 1))])
    indices = model.add_source("i", parse_typed_fact("S,i64", model.symbols))
    model.set_outputs(model.wire_node("rows", Gather(0), [w, indices]))
    plan = CpuPlan(model, OWN)
    assert [type(one) for one in kernels(plan)] == [BlockRowsPlan]
    with pytest.raises(RunError, match=f"node 'rows' .Gather.: index {index} is outside axis 0, which has size 21"):
        plan.spawn().run([np.array([index])])


def test_what_no_product_reads_is_unpacked_once() -> None:
    packed = blocks("q4_0", 8, 2)
    model, weights = product("q4_0", packed, "1,64,f32")
    (turned,) = model.wire_node("negative", Neg(), [weights])
    model.set_outputs([*model.outputs, turned])
    plan = CpuPlan(model, OWN)
    assert {type(one) for one in kernels(plan)} == {MatMulPlan, MapPlan}
    assert not [step for step in plan.steps if isinstance(step, HostStep)]
    x = np.ones((1, 64), "f4")
    sums, negative = plan.spawn().run([x])
    np.testing.assert_array_equal(negative, -numbers("q4_0", packed).astype("f4"))
    assert_near(sums, x, numbers("q4_0", packed))


def test_who_looks_at_them_sees_their_numbers() -> None:
    packed = blocks("q4_0", 8, 1)
    model, weights = product("q4_0", packed, "1,32,f32")
    seen: dict[OutletId, Array] = {}
    plan = CpuPlan(model, OWN)
    plan.spawn_observed(lambda _, arrays: seen.update(arrays)).run([np.ones((1, 32), "f4")])
    np.testing.assert_array_equal(seen[weights], numbers("q4_0", packed).astype("f4"))


QUANTS = [
    (DatumType.U4, 8, np.float32),
    (DatumType.U4, None, np.float32),
    (DatumType.I4, 0, np.float16),
    (DatumType.I4, None, np.float32),
    (DatumType.U8, 128, np.float32),
    (DatumType.U8, None, np.float16),
    (DatumType.I8, 0, np.float32),
]

RANGES = {DatumType.U4: (0, 15), DatumType.I4: (-8, 7), DatumType.U8: (0, 255), DatumType.I8: (-128, 127)}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("kind", "zero", "scales"), QUANTS, ids=str)
def test_integers_with_scales_by_blocks_are_such(kind: DatumType, zero: int | None, scales: type, axis: int) -> None:
    """As ONNX has them, in blocks of 16; ``zero``: of all blocks, or ``None`` where each has its own."""
    random, (low, high) = np.random.default_rng(3), RANGES[kind]
    sizes = (48, 19) if axis == 0 else (19, 48)
    counts = tuple(3 if one == axis else size for one, size in enumerate(sizes))
    x = random.integers(low, high + 1, sizes)
    zeros = random.integers(low, high + 1, counts) if zero is None else np.full(counts, zero)
    scale = random.uniform(0.01, 0.1, counts).astype(scales)
    model = TypedModel()
    given = [Constant(x.astype(kind.numpy)), Constant(scale), Constant(zeros.astype(kind.numpy))]
    consts = [model.add_const(name, one) for name, one in zip(("x", "scale", "zero"), given, strict=True)]
    (w,) = model.wire_node("w", DequantizeLinear(DatumType.F32, axis, 16), consts)
    data = model.add_source("data", parse_typed_fact("S,48,f32", model.symbols))
    op = EinSum(AxesMapping.parse("ak,kn->an" if axis == 0 else "ak,nk->an"), DatumType.F32)
    model.set_outputs(model.wire_node("y", op, [data, w]))
    plan = CpuPlan(model, OWN)
    assert [type(one) for one in kernels(plan)] == [BlockMatMulPlan]
    wanted = (x - np.repeat(zeros, 16, axis)) * np.repeat(scale.astype("f8"), 16, axis)
    for rows in ROWS:
        given_rows = random.standard_normal((rows, 48)).astype("f4")
        assert_near(plan.spawn().run([given_rows])[0], given_rows, wanted.T if axis == 0 else wanted)


def as_bytes(x: Array, length: int = 32) -> Array:
    """Rows as what they are rounded to: integers up to 127 in blocks, with a scale for each block."""
    cut = x.reshape(len(x), x.shape[1] // length, length)
    largest = np.abs(cut).max(axis=2, keepdims=True)
    inverse = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest > 0)
    scale = largest * np.float32(1 / 127)
    return (np.rint(cut * inverse) * scale.astype("f8")).reshape(x.shape)


@pytest.mark.parametrize(("isa", "form"), EACH, ids=lambda one: one if isinstance(one, str) else one.name)
def test_few_rows_may_be_rounded_to_bytes(isa: Isa, form: str) -> None:
    """Where an instruction multiplies these with codes of 4 bits; many rows never are."""
    packed = blocks(form, 37, 3)
    depth = 3 * FORMATS[form].length
    model, _ = product(form, packed, f"S,{depth},f32")
    plan = CpuPlan(model, isa, rounding=Rounding(bytes=True))
    is_rounded = not form.startswith(("q8", "iq4")) and grouping_of_bytes(isa) is not None
    assert [type(one) for one in kernels(plan)] == [BlockBytesPlan, BlockMatMulPlan][not is_rounded :]
    for rows in ROWS:
        x = np.random.default_rng(rows).standard_normal((rows, depth)).astype("f4")
        x[:1, 32:64] = 0
        rounded = as_bytes(x, SMALLEST.get(form, 32)) if is_rounded and rows < FEW_ROWS else x
        assert_near(plan.spawn().run([x])[0], rounded, numbers(form, packed))


def test_rows_are_rounded_once_for_all_that_read_them() -> None:
    packed = blocks("q4_0", 16, 2)
    model, weights = product("q4_0", packed, "2,64,f32")
    op = EinSum(AxesMapping.parse("ak,nk->an"), DatumType.F32)
    model.set_outputs([*model.outputs, *model.wire_node("again", op, [model.inputs[0], weights])])
    plan = CpuPlan(model, ROUNDS, rounding=Rounding(bytes=True))
    assert [type(one) for one in kernels(plan)] == [BlockBytesPlan, BlockMatMulPlan, BlockMatMulPlan]
    x = np.random.default_rng(3).standard_normal((2, 64)).astype("f4")
    for found in plan.spawn().run([x]):
        assert_near(found, as_bytes(x), numbers("q4_0", packed))


@pytest.mark.parametrize("strange", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_has_no_finite_sum_as_bytes(strange: float) -> None:
    packed = blocks("q4_0", 16, 2)
    model, _ = product("q4_0", packed, "2,64,f32")
    x = np.ones((2, 64), "f4")
    x[0, 40] = strange
    (found,) = CpuPlan(model, ROUNDS, rounding=Rounding(bytes=True)).spawn().run([x])
    assert not np.isfinite(found[0]).any()
    assert_near(found[1:], x[1:], numbers("q4_0", packed))


@pytest.mark.parametrize("isa", SETS, ids=lambda one: one.name)
@pytest.mark.parametrize("form", ["f16", "bf16"])
def test_weights_in_narrow_floats_are_widened_as_they_are_read(isa: Isa, form: str) -> None:
    """Where they are many and there may be one row; and so are rows of them that are looked up."""
    random = np.random.default_rng(6)
    narrow = random.standard_normal((300, 520)).astype(DatumType[form.upper()].numpy)
    model, weights = product(form, narrow.view(np.uint8).reshape(300, 520, 2), "S,520,f32")
    indices = model.add_source("i", parse_typed_fact("N,i64", model.symbols))
    model.set_outputs([*model.outputs, *model.wire_node("rows", Gather(0), [weights, indices])])
    plan, w = CpuPlan(model, isa), narrow.astype("f8")
    (kernel,) = [one for one in kernels(plan) if isinstance(one, MatMulPlan)]
    assert kernel.right.name == form
    for rows in (1, 2, 9, 0):
        x, index = random.standard_normal((rows, 520)).astype("f4"), random.integers(-300, 300, rows)
        sums, found = plan.spawn().run([x, index])
        assert_near(sums, x, w)
        np.testing.assert_array_equal(found, w[index].astype("f4"))
    with pytest.raises(RunError, match="index 300 is outside axis 0, which has size 300"):
        plan.spawn().run([x, np.array([300])])
