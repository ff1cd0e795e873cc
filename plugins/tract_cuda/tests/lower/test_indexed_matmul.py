"""Products whose matrix each row chooses, with weights as they lie in files too, beside sums in f64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from on_virtual import device, model_of, run
from tract_cuda.kernels.indexed_matmul import IndexedMatMulPlan
from tract_cuda.language.arch import ARCHS
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.program import Launch

from tract_core.data import DatumType
from tract_core.data.blocks import encode_q4_0
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.quantize import DequantizeLinear
from tract_core.runtime.plan import TypedSimplePlan

RNG = np.random.default_rng(0)
MATRICES = 3
BOUNDS = {"f32": 2e-6, "f64": 1e-14, "f16": 1e-3, "bf16": 8e-3}
"""Relative to the sum of the sizes of products; narrow floats are rounded once."""


def check(found: np.ndarray, x: np.ndarray, weights: np.ndarray, which: np.ndarray, bound: float) -> None:
    """``x``: [..., depth], of as many rows as ``which``, or stretched to them."""
    rows = np.broadcast_to(x, (*which.shape, x.shape[-1])).astype("f8")
    wanted, sizes = (
        np.einsum("...d,...cd->...c", a, b) for a, b in ((rows, weights[which]), _sizes(rows, weights[which]))
    )
    assert found.shape == wanted.shape
    assert (np.abs(found.astype("f8") - wanted) <= bound * sizes).all()


def _sizes(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.abs(rows), np.abs(weights)


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize(("columns", "depth"), [(1, 1), (9, 33), (16, 64), (7, 136)])
def test_each_type_and_size(kind: str, columns: int, depth: int) -> None:
    dtype = DatumType[kind.upper()].numpy
    x = RNG.standard_normal((5, 1, depth)).astype(dtype)
    weights = RNG.standard_normal((MATRICES, columns, depth)).astype(dtype)
    which = RNG.integers(-MATRICES, MATRICES, (5, 2))
    model = model_of(
        IndexedMatMul(), f"S,1,{depth},{kind}", f"3,{columns},{depth},{kind}", "S,2,i64", constants={1: weights}
    )
    (found,) = run(model, x, which)
    assert found.dtype == dtype
    check(found, x, weights.astype("f8"), which, BOUNDS[kind])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_weights_that_come_in_the_run(count: int) -> None:
    x, weights = (RNG.standard_normal(shape).astype("f4") for shape in ((count, 12), (MATRICES, 5, 12)))
    which = np.arange(count, dtype="u1") % MATRICES
    (found,) = run(model_of(IndexedMatMul(), "S,12,f32", "E,C,12,f32", "S,u8"), x, weights, which)
    check(found, x, weights.astype("f8"), which, BOUNDS["f32"])


@pytest.mark.parametrize("index", [3, -4])
def test_a_matrix_that_does_not_exist_is_refused_by_name(index: int) -> None:
    model = model_of(IndexedMatMul(), "2,4,f32", "3,5,4,f32", "2,i64")
    x, weights = np.ones((2, 4), "f4"), np.ones((3, 5, 4), "f4")
    with pytest.raises(RunError, match=f"index {index} is outside axis 0, which has size 3"):
        run(model, x, weights, np.array([0, index]))


# --- matrices in blocks ---


def model_with(op: TypedOp, constants: list[np.ndarray], x: str) -> TypedModel:
    model = TypedModel()
    rows, which = (
        model.add_source(name, parse_typed_fact(one, model.symbols)) for name, one in (("x", x), ("w", "S,2,i64"))
    )
    weights = model.wire_node("weights", op, [model.add_const(f"c{n}", one) for n, one in enumerate(constants)])
    model.set_outputs(model.wire_node("y", IndexedMatMul(), [rows, *weights, which]))
    return model


def check_in_blocks(model: TypedModel, x: np.ndarray, bound: float) -> None:
    """Beside the reference, of which the same numbers are multiplied; the matrices are nowhere whole."""
    which = RNG.integers(-MATRICES, MATRICES, (len(x), 2))
    plan = CudaPlan(model, device(0), Target(ARCHS[0], 4))
    (launch,) = (step for step in plan.program.steps if isinstance(step, Launch))
    assert isinstance(launch.kernel, IndexedMatMulPlan)
    assert launch.kernel.form is not None
    (found,), (wanted,) = run(model, x, which), TypedSimplePlan(model).run([x, which])
    assert found.dtype == wanted.dtype
    largest = np.abs(wanted.astype("f8")).max(initial=0)
    assert (np.abs(found.astype("f8") - wanted) <= bound * largest).all()


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("form", ["q4_0", "q8_0", "q8_1"])
def test_blocks_of_archives(form: str, rows: int, kind: str) -> None:
    numbers = RNG.standard_normal((MATRICES * 11, 96)).astype("f4")
    if form == "q4_0":
        packed = encode_q4_0(numbers).content
    else:
        packed = RNG.integers(0, 256, (MATRICES * 11 * 3, FORMATS[form].size), "u1")
        packed[:, :2] = np.full((len(packed), 1), 0.02, "<f2").view("u1")
    packed = packed.reshape(MATRICES, 11, 3, FORMATS[form].size)
    to = DatumType[kind.upper()]
    model = model_with(UnpackBlocks(form, to), [packed], f"S,1,96,{kind}")
    check_in_blocks(model, RNG.standard_normal((rows, 1, 96)).astype(to.numpy), BOUNDS[kind])


@pytest.mark.parametrize("code", ["u4", "i8"])
@pytest.mark.parametrize("depth", [96, 40])
def test_blocks_of_onnx(code: str, depth: int) -> None:
    """The last block may be a short one."""
    dtype = {"u4": ml_dtypes.uint4, "i8": np.int8}[code]
    low, high = ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max
    sizes = (depth, -(-depth // 32))
    codes, zero = (RNG.integers(low, high + 1, (MATRICES, 9, size)).astype(dtype) for size in sizes)
    scale = RNG.uniform(0.01, 0.1, (MATRICES, 9, sizes[1])).astype("f4")
    model = model_with(DequantizeLinear(DatumType.F32, 2, 32), [codes, scale, zero], f"S,1,{depth},f32")
    check_in_blocks(model, RNG.standard_normal((3, 1, depth)).astype("f4"), BOUNDS["f32"])
