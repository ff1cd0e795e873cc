"""What moves data: views, copies and transpositions, on every instruction set, bit by bit against NumPy."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from tract_cpu.draft.copies import copy_step
from tract_cpu.kernels.transpose import TransposePlan
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_llvm.language.types import F32, U32
from tract_llvm.program.storages import Kind, Storage
from tract_llvm.program.views import View

from tract_core.data import Constant
from tract_core.dims import evaluate, symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.binary import Add
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.downsample import Downsample
from tract_core.ops.gather import Gather
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.slice import Slice
from tract_core.ops.tile import Tile

KINDS = ["bool", "u8", "i8", "i16", "f16", "bf16", "i32", "f32", "i64", "f64"]


def model_of(facts: list[str], *ops: TypedOp) -> TypedModel:
    """A chain of operators; the first one has all inputs."""
    model = TypedModel()
    outlets = [model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols)) for slot, fact in enumerate(facts)]
    for place, op in enumerate(ops):
        outlets = model.wire_node(f"op{place}", op, outlets)
    model.set_outputs(outlets)
    return model


def bits(shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Elements with all bits at random: not-a-number of every kind among the floats."""
    dtype = parse_typed_fact(f"1,{kind}").datum_type.storage.numpy
    if dtype == np.bool_:
        return np.random.default_rng(1).integers(0, 2, shape).astype(np.bool_)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(np.random.default_rng(1).bytes(size), dtype).reshape(shape)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == np.ascontiguousarray(b).tobytes()


def moved(shape: tuple[int, ...], kind: str, isa, *ops: TypedOp) -> np.ndarray:
    plan = CpuPlan(model_of([",".join([*map(str, shape), kind])], *ops), isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    return plan.spawn().run([bits(shape, kind)])[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 3), (7, 130), (64, 64), (129, 67), (33, 16), (3, 200)], ids=str)
def test_matrices_are_turned_bit_by_bit(isa, shape, kind) -> None:
    assert same_bits(moved(shape, kind, isa, MoveAxis(0, 1)), bits(shape, kind).T)


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_axes_in_any_order(isa, order) -> None:
    shape, rest, ops = (3, 17, 5, 34), list(range(4)), []
    for target, axis in enumerate(order):
        ops.append(MoveAxis(rest.index(axis), target))
        rest.insert(target, rest.pop(rest.index(axis)))
    assert same_bits(moved(shape, "f32", isa, *ops), bits(shape, "f32").transpose(order))


def test_a_chain_of_views_is_one_copy(isa) -> None:
    ops = [Slice(0, 2, 9), Downsample(0, -2), AddAxis(1), MoveAxis(2, 0), RmAxis(2), MultiBroadcastTo((2, 5, 4))]
    shape = (11, 5)
    plan = CpuPlan(model_of(["11,5,f32"], *ops), isa)
    assert [one.how for one in plan.explain().placements] == ["view"] * len(ops)
    wanted = np.broadcast_to(bits(shape, "f32")[2:9][::-2].T, (2, 5, 4))
    assert same_bits(plan.spawn().run([bits(shape, "f32")])[0], wanted)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_one_plan_turns_any_size_around(isa, size) -> None:
    plan = CpuPlan(model_of(["N,3,f32"], Downsample(0, -1), MoveAxis(0, 1)), isa)
    x = bits((size, 3), "f32")
    assert same_bits(plan.spawn().run([x])[0], x[::-1].T)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)], ids=str)
def test_a_reshape_is_a_copy_only_where_it_must_be(isa, order) -> None:
    rest, ops = list(range(3)), []
    for target, axis in enumerate(order):
        ops.append(MoveAxis(rest.index(axis), target))
        rest.insert(target, rest.pop(rest.index(axis)))
    shape = tuple((4, 6, 10)[axis] for axis in order)
    reshape = Reshape(1, shape[1:], (shape[1] * shape[2],))
    x = bits((4, 6, 10), "i16")
    plan = CpuPlan(model_of(["4,6,10,i16"], *ops, reshape), isa)
    how = {one.ops[0]: one.how for one in plan.explain().placements}
    assert (how["Reshape"] == "view") == (order == (0, 1, 2))
    assert same_bits(plan.spawn().run([x])[0], x.transpose(order).reshape(shape[0], -1))


def view(shape: tuple, strides: tuple) -> View:
    return View(Storage(Kind.ARENA, 0), F32, shape, strides)


def test_shapes_that_need_no_copy() -> None:
    size = symbol("S")
    assert view((4, 6), (12, 1)).shaped((2, 2, 6)) == view((2, 2, 6), (24, 12, 1))
    assert view((4, 6), (12, 1)).shaped((2, 2, 2, 3)) == view((2, 2, 2, 3), (24, 12, 3, 1))
    assert view((4, 6), (12, 1)).shaped((24,)) is None
    assert view((6, 4), (1, 6)).shaped((6, 2, 2)) == view((6, 2, 2), (1, 12, 6))
    assert view((4, size), (2 * size, 1)).shaped((2, 2, size, 1)) == view((2, 2, size, 1), (4 * size, 2 * size, 1, 1))
    assert view((1, 5), (9, 2)).shaped((5,)) == view((5,), (2,))


def test_a_size_that_may_be_1_stretches_when_it_is() -> None:
    size, other = symbol("S"), symbol("T")
    stretched = view((size, 3), (3, 1)).stretched((2, other, 3))
    assert [[evaluate(one, {"S": number, "T": 5}) for one in stretched.strides] for number in (1, 5)] == [
        [0, 0, 1],
        [0, 3, 1],
    ]


def test_copies_say_which_kernel_they_need(isa) -> None:
    turned, straight = view((5, 7, 9), (63, 1, 7)), view((5, 7, 9), (63, 9, 1))
    step = copy_step(turned, straight, isa, ())
    assert step.kernel == TransposePlan(U32, isa.lanes(32), 1)
    assert (step.arguments[:2], step.tasks) == ((7, 9), 5)
    assert copy_step(straight, straight, isa, ()).kernel.name == "map"


def test_operands_that_lie_across_are_turned_first(isa) -> None:
    model = TypedModel()
    x, y = (
        model.add_source(name, parse_typed_fact(text, model.symbols))
        for name, text in (("x", "N,40,f32"), ("y", "40,N,f32"))
    )
    (turned,) = model.wire_node("turned", MoveAxis(0, 1), [y])
    model.set_outputs(model.wire_node("sum", Add(), [x, turned]))
    plan = CpuPlan(model, isa)
    kernels = [step.kernel.name for step in plan.program.steps if isinstance(step, NativeStep)]
    assert kernels == ["transpose", "map"]
    for size in (0, 1, 33):
        a, b = np.ones((size, 40), "f4"), np.random.default_rng(0).standard_normal((40, size)).astype("f4")
        np.testing.assert_array_equal(plan.spawn().run([a, b])[0], a + b.T)


@pytest.mark.parametrize("kind", ["i4", "u2", "f8e5m2", "f4e2m1fn"])
def test_types_that_no_operator_computes_with_are_moved_too(isa, kind) -> None:
    pad = PadConstant(Constant(np.ones((), parse_typed_fact(f"1,{kind}").datum_type.storage.numpy)))
    ops = [MoveAxis(0, 1), Reshape(0, (3, 7), (21,)), Tile((2,)), Pad(((1, 0),), pad), Gather(0)]
    model = model_of([f"7,3,{kind}"], *ops[:-1])
    places = model.add_const("places", np.array([42, 0, -2]))
    model.set_outputs(model.wire_node("picked", ops[-1], [*model.outputs, places]))
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    x = bits((7, 3), kind)
    wanted = np.concatenate([pad.value.array.reshape(1), x.T.reshape(-1), x.T.reshape(-1)])[[42, 0, -2]]
    assert same_bits(plan.spawn().run([x])[0], wanted)


@pytest.mark.parametrize("kind", ["f8e4m3fn", "i4"])
def test_nothing_is_computed_with_types_that_are_only_moved(isa, kind) -> None:
    plan = CpuPlan(model_of([f"3,{kind}", f"3,{kind}"], Add()), isa)
    (placement,) = plan.explain().placements
    assert (placement.how, placement.why) == ("numpy", f"native code only moves and converts {kind}")
    x = np.array([1, -2, 3], parse_typed_fact(f"1,{kind}").datum_type.storage.numpy)
    assert same_bits(plan.spawn().run([x, x])[0], x + x)
