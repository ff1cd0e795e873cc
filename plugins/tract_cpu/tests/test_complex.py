"""Complex numbers are moved as they are: bit by bit against the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import ViewStep
from tract_llvm.isa import Isa, of_this_machine

from tract_core.data import Constant, DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis, Reshape
from tract_core.ops.binary import Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Neg
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex
from tract_core.ops.gather import Gather
from tract_core.ops.iff import Iff
from tract_core.ops.pad import Pad, PadConstant, PadReflect
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.slice import Slice
from tract_core.ops.tile import Tile
from tract_core.ops.trilu import Trilu
from tract_core.runtime.reference import ReferenceRuntime

BEST = of_this_machine()[-1]


def model_of(ops: Sequence[TypedOp], *facts: str) -> TypedModel:
    """Operators one after the other, the first one on all inputs."""
    model = TypedModel()
    outlets = [model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols)) for slot, fact in enumerate(facts)]
    for number, op in enumerate(ops):
        outlets = model.wire_node(f"op{number}", op, outlets)
    model.set_outputs(outlets)
    return model


def some(shape: Sequence[int], kind: str) -> np.ndarray:
    """Numbers with parts of every sort, as a fact calls their type."""
    dtype = DatumType[kind.upper()].numpy
    numbers = np.random.default_rng(0).standard_normal((*shape, 2)).astype(dtype.type(0).real.dtype)
    ends = numbers.reshape(-1)[:7]
    ends[:] = [-0.0, np.inf, np.nan, -np.inf, 0.0, -0.0, 5e-324][: ends.size]
    return numbers.view(dtype)[..., 0]


def assert_same_bits(isa: Isa, model: TypedModel, *inputs: np.ndarray) -> CpuPlan:
    """Native code alone gives the bits of the reference."""
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    (found,) = plan.spawn().run(list(inputs))
    (wanted,) = ReferenceRuntime().prepare(model).spawn().run(list(inputs))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == np.ascontiguousarray(wanted).tobytes()
    return plan


def moved(kind: str) -> list[tuple[TypedOp, list[str], list[np.ndarray]]]:
    x, places = some((5, 17), kind), np.array([3, 0, -1])
    zero = PadConstant(Constant(np.array(2 - 1j, x.dtype)))
    return [
        (MoveAxis(0, 1), [f"5,17,{kind}"], [x]),
        (Reshape(0, (5, 17), (17, 5)), [f"5,17,{kind}"], [x]),
        (Slice(1, 3, 16), [f"5,17,{kind}"], [x]),
        (Tile((2, 3)), [f"5,17,{kind}"], [x]),
        (MultiBroadcastTo((4, 5, 17)), [f"1,5,17,{kind}"], [x[None]]),
        (TypedConcat(1), [f"5,N,{kind}", f"5,17,{kind}"], [x[:, :3].copy(), x]),
        (Gather(1), [f"5,17,{kind}", "3,i64"], [x, places]),
        (Pad(((1, 0), (2, 3)), zero), [f"5,17,{kind}"], [x]),
        (Pad(((1, 0), (2, 3)), PadReflect()), [f"5,17,{kind}"], [x]),
        (Trilu(upper=True), [f"5,17,{kind}", "i64"], [x, np.array(1)]),
        (ScatterElements(0), [f"5,17,{kind}", "1,17,i64", f"1,17,{kind}"], [x, np.full((1, 17), 2), x[1:2]]),
        (Iff(), ["5,17,bool", f"5,17,{kind}", f"5,17,{kind}"], [x.real > 0, x, x[::-1].copy()]),
        (ComplexToInnerDim(), [f"5,17,{kind}"], [x]),
    ]


@pytest.mark.parametrize("kind", ["complex_f32", "complex_f64"])
def test_what_moves_numbers_moves_complex_ones(isa, kind) -> None:
    for op, facts, inputs in moved(kind):
        assert_same_bits(isa, model_of([op], *facts), *inputs)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_pairs_and_complex_numbers_are_views_of_each_other(kind) -> None:
    x = some((3, 8), f"complex_{kind}")
    pairs = np.stack([x.real, x.imag], -1)
    ops = [InnerDimToComplex(), Slice(1, 1, 7), ComplexToInnerDim()]
    plan = assert_same_bits(BEST, model_of(ops, f"B,8,2,{kind}"), pairs)
    assert [type(step) for step in plan.program.steps[:3]] == [ViewStep] * 3


def test_pairs_that_are_apart_are_put_together() -> None:
    pairs = np.random.default_rng(0).standard_normal((2, 7, 5)).astype("f4")
    assert_same_bits(BEST, model_of([MoveAxis(0, 2), InnerDimToComplex()], "2,S,5,f32"), pairs)
    assert_same_bits(BEST, model_of([Slice(1, 1, 3), InnerDimToComplex()], "5,3,f32"), pairs[0, :5, :3].copy())


@pytest.mark.parametrize("to", ["complex_f32", "complex_f64"])
@pytest.mark.parametrize("kind", ["f32", "f16", "i32", "bool", "complex_f64"])
def test_casts_to_complex_numbers(kind, to) -> None:
    x = (
        some((3, 5), kind)
        if kind.startswith("c")
        else np.arange(-7, 8).reshape(3, 5).astype(DatumType[kind.upper()].numpy)
    )
    assert_same_bits(BEST, model_of([Cast(DatumType[to.upper()])], f"3,N,{kind}"), x)


@pytest.mark.parametrize(
    ("op", "facts"),
    [
        (Neg(), ["3,complex_f32"]),
        (Mul(), ["3,complex_f32", "3,complex_f32"]),
        (Reduce((0,), Reducer.SUM), ["3,complex_f32"]),
        (Cast(DatumType.BOOL), ["3,complex_f64"]),
    ],
    ids=lambda one: one.name if isinstance(one, TypedOp) else "",
)
def test_what_computes_leaves_complex_numbers_to_the_host(op, facts) -> None:
    (placement,) = CpuPlan(model_of([op], *facts), BEST).explain().placements
    assert placement.how == "numpy"
    assert "only moves and converts complex" in placement.why


def test_fft_of_complex_numbers_goes_through_pairs() -> None:
    x = some((4, 16), "complex_f32")
    x[~np.isfinite(x)] = 1
    model = model_of([ComplexToInnerDim(), Fft(1), InnerDimToComplex()], "4,16,complex_f32")
    np.testing.assert_allclose(CpuPlan(model, BEST).spawn().run([x])[0], np.fft.fft(x), rtol=1e-5, atol=1e-5)
