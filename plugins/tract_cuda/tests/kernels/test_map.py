"""Element-wise kernels and copies, on the emulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from executed import launched, one_node, run, text
from tract_cuda.kernels.map import MapPlan
from tract_cuda.kernels.map_turned import TurnedPlan
from tract_cuda.maps import copy_launch, map_launch
from tract_cuda.program import Launch
from tract_llvm.elements.expressions import Expression, element_of
from tract_llvm.language.types import F32, ElementType, element_type
from tract_llvm.program.storages import Kind, Storage
from tract_llvm.program.views import View, seen

from tract_core.data import DatumType
from tract_core.dims import Dim, symbol
from tract_core.ops.binary import Add, Lt
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Exp, Tanh
from tract_core.plugins import default_registry

TYPES = ("f16", "bf16", "f32", "f64", "i8", "i64", "u8", "bool", "complex_f32")


def element_for(kind: str) -> ElementType:
    found = element_type(DatumType[kind.upper()])
    assert found is not None
    return found


def view(number: int, shape: tuple[Dim, ...], element: ElementType = F32) -> View:
    return View.contiguous(Storage(Kind.ARENA, number), element, shape)


def array(shape: tuple[int, ...], kind: str = "f32", seed: int = 0) -> np.ndarray:
    numbers = np.random.default_rng(seed).integers(-100, 100, shape)
    return (numbers > 0 if kind == "bool" else numbers).astype(DatumType[kind.upper()].numpy)


def sum_of(*operands: View, result: View) -> Launch:
    """The launch that adds two tensors."""
    kinds = [one.element for one in operands]
    found = element_of(default_registry(), Add(), kinds, result.element)
    assert found is not None
    step = found.applied(Add(), (0, 1), result.element)
    return map_launch(Expression(tuple(kinds), (step,)), operands, result)


def check_copy(source: View, target: View, memory: np.ndarray, room: np.ndarray) -> Launch:
    """A copy is right, and touches nothing else."""
    launch = copy_launch(source, target)
    before = room.copy()
    _, found = launched(launch, memory, room)
    seen(target, before)[...] = np.broadcast_to(seen(source, memory), target.shape)
    np.testing.assert_array_equal(found.view(np.uint8), before.view(np.uint8))
    return launch


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 64, 1027])
def test_copies_of_what_has_no_gaps_go_in_wide_accesses(kind, size) -> None:
    element = element_for(kind)
    source, target = view(0, (size,), element), view(1, (size,), element)
    launch = check_copy(source, target, array((size,), kind), array((size,), kind, 1))
    lanes = 16 // element.bytes
    assert launch.kernel == MapPlan(
        launch.kernel.expression, 1, ("next",) * 2 if lanes > 1 else ("far",) * 2, lanes, ragged=size % lanes != 0
    )


@pytest.mark.parametrize("kind", ["u8", "f16", "f32", "f64", "complex_f32"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [((70, 45), (1, 0)), ((33, 3, 20), (2, 1, 0)), ((2, 40, 9, 5), (0, 2, 3, 1)), ((5, 64, 32), (0, 2, 1))],
    ids=str,
)
def test_turned_copies_go_through_shared_memory(kind, shape, order) -> None:
    element = element_for(kind)
    source = view(0, shape, element).transposed(order)
    target = view(1, source.shape, element)
    launch = check_copy(source, target, array(shape, kind), array(tuple(source.shape), kind, 1))
    assert isinstance(launch.kernel, TurnedPlan)


def test_what_is_turned_along_a_short_axis_is_not() -> None:
    source = view(0, (300, 4)).transposed((1, 0))
    launch = check_copy(source, view(1, (4, 300)), array((300, 4)), array((4, 300), seed=1))
    assert isinstance(launch.kernel, MapPlan)


@pytest.mark.parametrize("start", [0, 1, 4])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_parts_are_read_and_written_at_any_place(start, step) -> None:
    whole = view(0, (6, 5, 24))
    part = whole.part(2, start if step > 0 else 23 - start, 8, step)
    check_copy(part, view(1, part.shape), array((6, 5, 24)), array((6, 5, 8), seed=1))
    check_copy(view(0, part.shape), view(1, (6, 5, 24)).part(2, start, 8), array((6, 5, 8)), array((6, 5, 24), seed=1))


def test_wide_accesses_want_places_that_are_multiples_of_them() -> None:
    def lanes(source: View, shape: tuple[int, ...]) -> int:
        return copy_launch(source, view(1, shape)).kernel.lanes

    whole = view(0, (6, 24))
    assert [lanes(whole.part(1, start, 8), (6, 8)) for start in (0, 1, 2, 4)] == [4, 1, 2, 4]
    assert lanes(view(0, (6, 22)).part(1, 0, 8), (6, 8)) == 2
    assert lanes(whole.part(1, 0, 6), (6, 6)) == 2


BROADCASTS = [
    ((7, 5, 33), (5, 1)),
    ((7, 5, 32), (32,)),
    ((7, 5, 32), (7, 1, 1)),
    ((4, 1, 16), (1, 6, 1)),
    ((1027,), (1,)),
    ((), ()),
    ((3, 1), (1, 40)),
]


@pytest.mark.parametrize("wide", [False, True], ids=["i32", "i64"])
@pytest.mark.parametrize(("one", "other"), BROADCASTS, ids=str)
def test_operands_are_stretched(one, other, wide) -> None:
    x, y = array(one), array(other, seed=1)
    shape = np.broadcast_shapes(one, other)
    launch = sum_of(view(0, one), view(1, other), result=view(2, shape))
    *_, found = launched(launch, x, y, np.full(shape, np.nan, "f4"), wide=wide)
    np.testing.assert_array_equal(found, x + y)


def test_an_operand_that_is_turned_meets_one_that_is_not() -> None:
    x, y = array((37, 50)), array((3, 50, 37), seed=1)
    turned = view(0, (37, 50)).transposed((1, 0))
    launch = sum_of(turned, view(1, (3, 50, 37)), result=view(2, (3, 50, 37)))
    assert isinstance(launch.kernel, TurnedPlan)
    assert launch.kernel.turned == (True, False, False)
    *_, found = launched(launch, x, y, np.full((3, 50, 37), np.nan, "f4"))
    np.testing.assert_array_equal(found, x.T + y)


def test_tensors_that_lie_alike_are_one_loop_whatever_their_axes_are() -> None:
    views = [view(number, (2, 5, 7, 4)).transposed((0, 3, 1, 2)) for number in range(3)]
    launch = sum_of(*views[:2], result=views[2])
    assert (launch.kernel.rank, launch.kernel.lanes) == (1, 4)
    x, y = array((2, 5, 7, 4)), array((2, 5, 7, 4), seed=1)
    *_, found = launched(launch, x, y, np.full(x.shape, np.nan, "f4"))
    np.testing.assert_array_equal(found, x + y)


@pytest.mark.parametrize("size", [0, 1, 5, 8, 100])
def test_symbolic_sizes(size) -> None:
    s = symbol("S")
    x, y = array((3, size)), array((size,), seed=1)
    launch = sum_of(view(0, (3, s)), view(1, (s,)), result=view(2, (3, s)))
    *_, found = launched(launch, x, y, np.full((3, size), np.nan, "f4"), symbols={"S": size})
    np.testing.assert_array_equal(found, x + y)
    launch = sum_of(view(0, (3, s)), view(1, (3, s)), result=view(2, (3, s)))
    assert (launch.kernel.lanes, launch.kernel.ragged) == (4, True)
    *_, found = launched(launch, x, x, np.full((3, size), np.nan, "f4"), symbols={"S": size})
    np.testing.assert_array_equal(found, x + x)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("op", [Exp(), Tanh()], ids=lambda one: one.name)
def test_functions_are_as_exact_as_on_a_processor(op, kind) -> None:
    x = np.concatenate([np.linspace(-12, 12, 301), [np.inf, -np.inf, np.nan, 0.0, -0.0]])
    x = x.astype(DatumType[kind.upper()].numpy)
    (found,) = run(one_node(op, text(x.shape, kind)), x)
    with np.errstate(all="ignore"):
        wanted = getattr(np, op.name.lower())(x.astype("f8"))
    eps = np.finfo(x.dtype).eps
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(found.astype("f8"), wanted.astype(x.dtype).astype("f8"), rtol=2 * eps, atol=1e-44)


@pytest.mark.parametrize("kind", ["i8", "u8", "i32", "f16", "f32", "f64"])
@pytest.mark.parametrize("to", ["i8", "i64", "f16", "f32", "bool"])
def test_numbers_are_converted(kind, to) -> None:
    x = array((67,), kind) if kind != "u8" else np.arange(67, dtype="u1")
    (found,) = run(one_node(Cast(DatumType[to.upper()]), text((67,), kind)), x)
    np.testing.assert_array_equal(found, x.astype(DatumType[to.upper()].numpy))


def test_comparisons_give_booleans() -> None:
    x, y = array((9, 33)), array((9, 33), seed=1)
    x[0, 0] = np.nan
    (found,) = run(one_node(Lt(), "9,33,f32", "9,33,f32"), x, y)
    np.testing.assert_array_equal(found, x < y)
