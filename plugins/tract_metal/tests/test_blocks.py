"""Weights in blocks: multiplied as they lie, close to what they stand for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from on_mlx import parsed, plan_of

from tract_core.data import DatumType
from tract_core.data.blocks import Q8_0, encode_q4_0
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.quantize import DequantizeLinear
from tract_core.runtime.plan import TypedSimplePlan

RNG = np.random.default_rng(0)
ROWS, SUMMED = 48, 96
KINDS = {"f32": (DatumType.F32, 3e-6), "f16": (DatumType.F16, 3e-3)}


def model_with(op, constants, axes: AxesMapping, x: str) -> TypedModel:
    model = TypedModel()
    source = model.add_source("x", parse_typed_fact(x, model.symbols))
    weights = model.wire_node("weights", op, [model.add_const(f"c{n}", one) for n, one in enumerate(constants)])
    model.set_outputs(model.wire_node("y", EinSum(axes, DatumType.F32), [source, *weights]))
    return model


def check(model: TypedModel, x: np.ndarray, tolerance: float, *others: np.ndarray, kind: str = "packedproduct") -> None:
    plan = plan_of(model)
    assert [one.group.kind for one in plan.placed] == [kind]
    (found,), (right,) = plan.run([x, *others]), TypedSimplePlan(model).run([x, *others])
    assert found.dtype == right.dtype
    scale = max(float(np.abs(right.astype("f8")).max(initial=0)), 1e-6)
    assert np.abs(found.astype("f8") - right.astype("f8")).max(initial=0) <= tolerance * scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("axes", ["bk,nk->bn", "kb,nk->nb"])
def test_blocks_of_archives(kind: str, rows: int, axes: str) -> None:
    blocks = encode_q4_0(RNG.standard_normal((ROWS, SUMMED)).astype("f4"))
    packed = blocks.content.reshape(ROWS, SUMMED // 32, 18)
    to, tolerance = KINDS[kind]
    terms, _, result = axes.partition("->")
    mapping = AxesMapping(tuple(terms.split(",")), (result,))
    fact = f"B,{SUMMED},{kind}" if axes.startswith("bk") else f"{SUMMED},B,{kind}"
    shape = (rows, SUMMED) if axes.startswith("bk") else (SUMMED, rows)
    model = model_with(UnpackBlocks("q4_0", to), [packed], mapping, fact)
    check(model, RNG.standard_normal(shape).astype(to.numpy), tolerance)


@pytest.mark.parametrize("code", ["u4", "i4", "u8", "i8"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("block", [32, 96])
def test_blocks_of_onnx(code: str, axis: int, block: int) -> None:
    dtype = {"u4": ml_dtypes.uint4, "i4": ml_dtypes.int4, "u8": np.uint8, "i8": np.int8}[code]
    low, high = (ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max)
    shape = (ROWS, SUMMED) if axis else (SUMMED, ROWS)
    blocks = tuple(size // block if one == axis else size for one, size in enumerate(shape))
    codes, zero = (RNG.integers(low, high + 1, size).astype(dtype) for size in (shape, blocks))
    scale = RNG.uniform(0.01, 0.1, blocks).astype("f4")
    mapping = AxesMapping(("abk", "nk" if axis else "kn"), ("abn",))
    model = model_with(DequantizeLinear(DatumType.F32, axis, block), [codes, scale, zero], mapping, f"A,2,{SUMMED},f32")
    x = RNG.standard_normal((3, 2, SUMMED)).astype("f4")
    if block in (32, 64, 128):
        check(model, x, 1e-5)
    else:
        assert all(one.group.kind != "packedproduct" for one in plan_of(model, all_of_it=False).placed)


def test_bytes_of_archives() -> None:
    draw = RNG.standard_normal((ROWS, SUMMED // 32, 1)).astype("f2").view("u1")
    packed = np.concatenate([draw, RNG.integers(0, 256, (ROWS, SUMMED // 32, 32), dtype=np.uint8)], axis=-1)
    assert Q8_0.decode(packed.reshape(-1, 34)).size == ROWS * SUMMED
    model = model_with(UnpackBlocks("q8_0"), [packed], AxesMapping(("bk", "nk"), ("bn",)), f"B,{SUMMED},f32")
    check(model, RNG.standard_normal((5, SUMMED)).astype("f4"), 1e-5)


# --- matrices that rows choose ---


def model_of_experts(op, constants, x: str, which: str) -> TypedModel:
    model = TypedModel()
    rows, choice = (
        model.add_source(name, parse_typed_fact(one, model.symbols)) for name, one in (("x", x), ("w", which))
    )
    weights = model.wire_node("weights", op, [model.add_const(f"c{n}", one) for n, one in enumerate(constants)])
    model.set_outputs(model.wire_node("y", IndexedMatMul(), [rows, *weights, choice]))
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 3, 80])
def test_rows_choose_among_matrices_in_blocks(kind: str, rows: int) -> None:
    """Of archives, also as many rows as are put in order before."""
    blocks = encode_q4_0(RNG.standard_normal((3 * ROWS, SUMMED)).astype("f4"))
    packed = blocks.content.reshape(3, ROWS, SUMMED // 32, 18)
    to, tolerance = KINDS[kind]
    model = model_of_experts(UnpackBlocks("q4_0", to), [packed], f"S,1,{SUMMED},{kind}", "S,2,i64")
    x, which = RNG.standard_normal((rows, 1, SUMMED)).astype(to.numpy), RNG.integers(-3, 3, (rows, 2))
    check(model, x, tolerance, which, kind="packedchoice")


@pytest.mark.parametrize("code", ["u4", "i8"])
def test_rows_choose_among_matrices_of_onnx(code: str) -> None:
    dtype = {"u4": ml_dtypes.uint4, "i8": np.int8}[code]
    low, high = (ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max)
    codes, zero = (RNG.integers(low, high + 1, (3, ROWS, size)).astype(dtype) for size in (SUMMED, SUMMED // 32))
    scale = RNG.uniform(0.01, 0.1, (3, ROWS, SUMMED // 32)).astype("f4")
    model = model_of_experts(DequantizeLinear(DatumType.F32, 2, 32), [codes, scale, zero], f"S,{SUMMED},f32", "S,i64")
    check(model, RNG.standard_normal((7, SUMMED)).astype("f4"), 1e-5, np.arange(7) % 3, kind="packedchoice")


def test_weights_are_repacked_once_for_all_sizes() -> None:
    blocks = encode_q4_0(RNG.standard_normal((ROWS, SUMMED)).astype("f4"))
    packed = blocks.content.reshape(ROWS, SUMMED // 32, 18)
    model = model_with(UnpackBlocks("q4_0"), [packed], AxesMapping(("bk", "nk"), ("bn",)), f"B,{SUMMED},f32")
    plan = plan_of(model)
    state = plan.spawn()
    for rows in (1, 2, 3):
        state.run([np.zeros((rows, SUMMED), "f4")])
    assert len(plan.functions.made) == 1
    assert not plan._on_device


def test_weights_that_somebody_else_reads_are_unpacked() -> None:
    nodes = "d = DequantizeLinear<axis=1, block_size=32>(w, s) t = Transpose(d) y = MatMul(x, t) z = Neg(d)"
    codes = ",".join(map(str, RNG.integers(-8, 8, 2 * 32)))
    weights = f"<int8[2,32] w = {{{codes}}}, float[2,1] s = {{0.5, 0.25}}>"
    graph = f"(float[B,32] x) => (float[B,2] y, float[2,32] z) {weights} {{ {nodes} }}"
    model = parsed(graph.replace("17]", "21]"))
    assert all(one.group.kind != "packedproduct" for one in plan_of(model, all_of_it=False).placed)
