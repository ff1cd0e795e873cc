"""Operators of others that have nothing but their NumPy meaning: they are native, and part of what is around them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import custom_operators as custom
import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

from tract_core.data import Constant
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul
from tract_core.ops.elementwise import Abs, Neg
from tract_core.plugins.keys import REFERENCE
from tract_core.plugins.registry import Registry
from tract_core.runtime.reference import ReferenceRuntime

SLOPES = Constant(np.array([0.25, -1.5, 0.0], np.float32))

ON_ELEMENTS: list[tuple[TypedOp, list[str]]] = [
    (custom.Mish(), ["B,3,f32"]),
    (custom.Mish(), ["B,3,f64"]),
    (custom.Mish(), ["B,3,f16"]),
    (custom.GeluTanh(), ["B,3,f32"]),
    (custom.QuickGelu(), ["B,3,f32"]),
    (custom.Snake(), ["B,3,f32"]),
    (custom.Snake(1.0), ["B,3,f16"]),
    (custom.SoftThreshold(), ["B,3,f32"]),
    (custom.Softplus(), ["B,3,f32"]),
    (custom.Softplus(), ["B,3,f64"]),
    (custom.Celu(), ["B,3,f32"]),
    (custom.HardSwish6(), ["B,3,f32"]),
    (custom.Saturate(), ["B,3,f32"]),
    (custom.Saturate(), ["B,3,bf16"]),
    (custom.Channels(SLOPES, (1.0, 2.5, -1.0)), ["B,3,f32"]),
    (custom.Focal(), ["B,3,f32", "B,3,f32"]),
    (custom.Huber(), ["B,3,f32", "B,3,f32"]),
    (custom.Hash(), ["B,3,i32"]),
    (custom.Hash(), ["B,3,u16"]),
]
"""Those whose elements depend on the elements at their position alone: they are one node, as they were."""

OTHERS: list[tuple[TypedOp, list[str]]] = [
    (custom.RootMeanSquareNorm(), ["B,5,f32"]),
    (custom.RootMeanSquareNorm(), ["3,B,f32"]),
    (custom.LayerNorm(), ["B,5,f32"]),
    (custom.LayerNorm(), ["B,5,f16"]),
    (custom.GroupNorm(), ["B,6,5,f32"]),
    (custom.Softmax(), ["B,5,f32"]),
    (custom.Softmax(axis=0), ["B,5,f32"]),
    (custom.LogSumExp(), ["B,5,f32"]),
    (custom.Cosine(), ["B,5,f32", "B,5,f32"]),
    (custom.L1Distance(), ["B,5,f32", "B,5,f32"]),
    (custom.PairwiseEuclid(), ["B,5,f32", "C,5,f32"]),
    (custom.Glu(), ["B,6,f32"]),
    (custom.SwiGlu(), ["B,6,f32"]),
    (custom.RotateHalf(), ["B,6,f32"]),
    (custom.SinePositions(), ["B,7,6,f32"]),
    (custom.Scores(), ["B,3,5,f32", "B,7,5,f32"]),
    (custom.MeanOfAll(), ["B,5,f32"]),
    (custom.MeanOfAll(), ["B,5,i32"]),
    (custom.MeanAndSpread(), ["B,5,f32"]),
    (custom.ShareOfSize(), ["B,5,f32"]),
]


@cache
def shared() -> Registry:
    return custom.registry()


def model_of(op: TypedOp, facts: Sequence[str]) -> TypedModel:
    """The operator alone: what is computed of it is seen as it is."""
    model = TypedModel(registry=shared())
    sources = [model.add_source(f"x{slot}", parse_typed_fact(text, model.symbols)) for slot, text in enumerate(facts)]
    model.set_outputs(model.wire_node("y", op, sources))
    return model


def plan_of(model: TypedModel) -> CpuPlan:
    return CpuPlan(model, of_this_machine()[-1])


def special(shape: Sequence[int], dtype: Any, seed: int) -> np.ndarray:
    """Numbers with NaN, infinities, zeros of both signs and the ends of the type among them."""
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        found = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
        picks = np.array([0, 1, ends.min, ends.max], dtype)
    else:
        found = rng.standard_normal(shape).astype(dtype)
        picks = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e4, -1e4, 1e-7]).astype(dtype)
    return np.where(rng.random(shape) < 0.5, picks[rng.integers(0, picks.size, shape)], found).astype(dtype)


def given(facts: Sequence[str], size: int, *, with_special: bool) -> list[np.ndarray]:
    """Arrays for these facts, of which symbols are so large; the second symbol is one larger."""
    arrays = list[np.ndarray]()
    for slot, text in enumerate(facts):
        fact = parse_typed_fact(text, TypedModel().symbols)
        shape = [{"B": size, "C": size + 1}[str(one)] if str(one) in "BC" else int(one) for one in fact.shape]
        dtype = fact.datum_type.numpy
        if with_special or dtype.kind in "iu":
            arrays.append(special(shape, dtype, slot))
        else:
            arrays.append(np.random.default_rng(slot).standard_normal(shape).astype(dtype))
    return arrays


def check(found: np.ndarray, wanted: np.ndarray, exact: np.ndarray | None, scale: float) -> None:
    """As NumPy has it: where it is not a number or infinite exactly, else to a few units in the last place.

    ``exact``: the same in f64, of inputs without much cancellation; ``scale``: how large inputs are.
    """
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if wanted.dtype.kind in "iu":
        np.testing.assert_array_equal(found, wanted)
        return
    unit = {2: 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}[wanted.dtype.itemsize] if wanted.dtype.kind == "f" else 2.0**-7
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=8 * unit, atol=8 * unit * scale)
    if exact is not None:
        np.testing.assert_allclose(found, exact, rtol=32 * unit, atol=32 * unit * scale)


def meaning(op: TypedOp, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    with np.errstate(all="ignore"):
        found = shared()[REFERENCE][type(op)](op, *arrays)
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize("with_special", [False, True], ids=["usual", "special"])
@pytest.mark.parametrize(("op", "facts"), [*ON_ELEMENTS, *OTHERS], ids=str)
def test_they_compute_what_numpy_computes(op, facts, with_special) -> None:
    plan = plan_of(model_of(op, facts))
    assert all(one.how != "numpy" for one in plan.explain().placements), plan.explain()
    for size in (1, 2, 5, 33):
        arrays = given(facts, size, with_special=with_special)
        scale = max(float(np.abs(one[np.isfinite(one)].astype(float)).max(initial=1)) for one in arrays)
        doubled = [one if one.dtype.kind in "iu" else one.astype(np.float64) for one in arrays]
        results = zip(plan.spawn().run(arrays), meaning(op, arrays), meaning(op, doubled), strict=True)
        for found, wanted, exact in results:
            check(found, wanted, None if with_special else exact, scale)


@pytest.mark.parametrize(("op", "facts"), [*ON_ELEMENTS, *OTHERS], ids=str)
def test_of_no_rows_they_give_what_numpy_gives_or_refuse_as_it_does(op, facts) -> None:
    plan, arrays = plan_of(model_of(op, facts)), given(facts, 0, with_special=False)
    try:
        wanted = meaning(op, arrays)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(Exception, match=r"no elements|size 0"):
            plan.spawn().run(arrays)
        return
    for found, right in zip(plan.spawn().run(arrays), wanted, strict=True):
        assert found.shape == right.shape
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize(("op", "facts"), ON_ELEMENTS, ids=str)
def test_those_on_elements_are_one_node_of_what_is_around_them(op, facts) -> None:
    model = model_of(op, facts)
    (y,) = model.outputs
    (before,) = model.wire_node("before", Abs(), [model.inputs[0]])
    (inner,) = model.wire_node("inner", op, [before, *model.inputs[1:]])
    (after,) = model.wire_node("after", Mul(), [inner, model.inputs[0]])
    model.set_outputs([after])
    del y
    (only,) = plan_of(model).explain().placements
    assert (only.names, only.ops) == (("before", "inner", "after"), ("Abs", op.name, "Mul"))


@pytest.mark.parametrize(
    ("op", "facts"),
    [
        (custom.RootMeanSquareNorm(), ["B,5,f32"]),
        (custom.LayerNorm(), ["B,5,f32"]),
        (custom.Softmax(), ["B,5,f32"]),
    ],
    ids=str,
)
def test_those_that_reduce_are_one_call_with_what_is_around_them(op, facts) -> None:
    model = model_of(op, facts)
    (before,) = model.wire_node("before", Abs(), model.inputs)
    (inner,) = model.wire_node("inner", op, [before])
    model.set_outputs(model.wire_node("after", Neg(), [inner]))
    (only,) = plan_of(model).explain().placements
    assert only.how == "rows"
    assert {"before", "inner", "after"} <= set(only.names)


def test_a_model_gives_the_same_as_on_the_reference_runtime() -> None:
    model = TypedModel(registry=shared())
    x = model.add_source("x", parse_typed_fact("B,6,f32", model.symbols))
    for number, op in enumerate([custom.Mish(), custom.LayerNorm(), custom.RotateHalf(), custom.Snake()]):
        (x,) = model.wire_node(f"node{number}", op, [x])
    model.set_outputs([x])
    array = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    (wanted,) = ReferenceRuntime().prepare(model).spawn().run([array])
    (found,) = plan_of(model).spawn().run([array])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
