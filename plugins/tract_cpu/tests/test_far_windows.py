"""Windows that reach far beyond the data take no memory for what is not there."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.hostile import bounded

FAR = 1_000_000_000


def spec(kernel: int, *, stride: int = 1, dilation: int = 1, padding: int = 0) -> PoolSpec:
    return PoolSpec(DataFormat.NCHW, (kernel,), Explicit((padding,), (padding,)), (dilation,), (stride,))


def both(model: TypedModel, x: np.ndarray) -> np.ndarray:
    """What both runtimes give, in little memory."""
    with bounded(memory=1 << 28):
        (found,), (wanted,) = (plan.spawn().run([x]) for plan in (CpuPlan(model, chosen("")), TypedSimplePlan(model)))
    np.testing.assert_array_equal(found, wanted)
    return np.asarray(found)


@pytest.mark.hostile
@pytest.mark.parametrize(
    "pool",
    [
        spec(3, dilation=FAR, padding=FAR),
        spec(3, stride=FAR, padding=FAR),
        spec(2, stride=FAR, dilation=FAR, padding=FAR),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("kind", ["conv", "deconv", "max", "sum"])
def test_windows_that_reach_far(kind: str, size: int, pool: PoolSpec) -> None:
    if kind == "deconv" and pool.strides != (1,):
        pytest.skip("its results are that large themselves")
    model = TypedModel()
    inputs = [model.add_source("x", parse_typed_fact(f"1,1,{size},f32"))]
    op = {"max": MaxPool(pool), "sum": SumPool(pool)}.get(kind)
    if op is None:
        weights = np.arange(1, pool.kernel_shape[0] + 1, dtype=np.float32).reshape(1, 1, -1)
        inputs += [model.add_const("w", weights), model.add_const("b", np.float32(0))]
        op = Conv(pool) if kind == "conv" else Deconv(pool)
    model.set_outputs(model.wire_node("y", op, inputs))
    x = np.arange(1, size + 1, dtype=np.float32).reshape(1, 1, size)
    found = both(model, x)
    if kind in ("max", "sum") and pool.dilations == (FAR,) and pool.strides == (1,):
        np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("op", [MaxPool, SumPool])
@pytest.mark.parametrize("value", [0.0, -0.0, 3.5, np.inf, np.nan])
def test_windows_without_axes(op: type, value: float) -> None:
    """As what normalises each element by itself asks for, of a tensor of rank 2."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,1,f32"))
    model.set_outputs(model.wire_node("y", op(PoolSpec(DataFormat.NCHW, (), Explicit((), ()), (), ())), [x]))
    assert DatumType.from_numpy(both(model, np.full((1, 1), value, np.float32)).dtype) is DatumType.F32
