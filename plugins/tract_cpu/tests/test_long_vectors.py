"""Vectors that are computed two or four at a time: what comes out does not depend on how many there are."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tract_cpu.kernels.map import MapPlan
from tract_cpu.kernels.rows import RowsPlan
from tract_cpu.plan import CpuPlan

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Sigmoid
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.norm import RmsNorm
from tract_core.ops.reduce import Reduce, Reducer

Array = np.ndarray[Any, Any]

KINDS = {"f32": (np.float32, 2.0**-21), "bf16": (ml_dtypes.bfloat16, 2.0**-6), "f16": (np.float16, 2.0**-9)}
"""The types of NumPy, and how far results may be off, in parts of the largest: some roundings."""
LENGTHS = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100)


def model_of(kind: str, fact: str, *, rows: bool) -> TypedModel:
    """x * sigmoid(x + 1/2), or x normalised along the last axis, plus x."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"{fact},{kind}", model.symbols))
    w = NodeWiring(model, "n")
    model.set_outputs([w.binary(Add(), w.op(RmsNorm(1, 1e-5), x), x) if rows else swish(w, x)])
    return model.declutter()


def swish(w: NodeWiring, x: OutletId) -> OutletId:
    return w.binary(Mul(), x, w.op(Sigmoid(), w.binary(Add(), x, w.scalar(0.5, x))))


def numbers(shape: tuple[int, ...], dtype: Any) -> Array:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * 3).astype(dtype)


def assert_near(found: Array, wanted: Array, near: float) -> None:
    wide = np.asarray(found).astype("f8")
    assert wide.shape == wanted.shape
    assert np.abs(wide - wanted).max(initial=0) <= near * np.abs(wanted).max(initial=1)


@pytest.mark.parametrize("kind", KINDS)
def test_elements_are_the_same_wherever_they_lie(any_isa, kind) -> None:
    dtype, near = KINDS[kind]
    plan = CpuPlan(model_of(kind, "N", rows=False), any_isa)
    (kernel,) = (step.kernel for step in plan.details.steps if hasattr(step, "kernel"))
    assert isinstance(kernel, MapPlan)
    assert kernel.vectors == 2
    (alone,) = plan.spawn().run([numbers((200,), dtype)])
    for length in LENGTHS:
        x = numbers((200,), dtype)[:length]
        (found,) = plan.spawn().run([x])
        np.testing.assert_array_equal(found.view("u1"), alone[:length].view("u1"))
        wide = x.astype("f8")
        assert_near(found, wide / (1 + np.exp(-wide - 0.5)), near)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_all_lengths_are_those_of_numpy(any_isa, kind) -> None:
    dtype, near = KINDS[kind]
    plan = CpuPlan(model_of(kind, "B,N", rows=True), any_isa)
    (kernel,) = (step.kernel for step in plan.details.steps if hasattr(step, "kernel"))
    assert isinstance(kernel, RowsPlan)
    assert kernel.passes[-1].waits == (kind != "f32")
    for length in LENGTHS[1:]:
        x = numbers((3, length), dtype)
        (found,) = plan.spawn().run([x])
        wide = x.astype("f8")
        assert_near(found, wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) + wide, near)


@pytest.mark.parametrize("reducer", [Reducer.SUM, Reducer.MAX, Reducer.ARG_MAX_LAST, Reducer.MEAN_OF_SQUARES], ids=str)
def test_what_waits_is_reduced_part_by_part(any_isa, reducer) -> None:
    """Of vectors that are computed as longer ones; positions too."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,N,bf16", model.symbols))
    w = NodeWiring(model, "n")
    model.set_outputs([w.op(Reduce((1,), reducer), w.op(Cast(DatumType.F32), w.binary(Mul(), x, x)))])
    plan = CpuPlan(model.declutter(), any_isa)
    (kernel,) = (step.kernel for step in plan.details.steps if isinstance(step.kernel, RowsPlan))
    assert kernel.passes[0].waits
    assert kernel.passes[0].vectors > 1
    for length in LENGTHS[1:]:
        x = numbers((3, length), ml_dtypes.bfloat16)
        squares = (x.astype("f4") ** 2).astype(ml_dtypes.bfloat16).astype("f8")
        wanted = {
            Reducer.SUM: squares.sum(axis=1),
            Reducer.MAX: squares.max(axis=1),
            Reducer.ARG_MAX_LAST: length - 1 - squares[:, ::-1].argmax(axis=1),
            Reducer.MEAN_OF_SQUARES: (squares**2).mean(axis=1),
        }[reducer]
        (found,) = plan.spawn().run([x])
        assert_near(np.asarray(found).reshape(3), wanted, 2.0**-20)
