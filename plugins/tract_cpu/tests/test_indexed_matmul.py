"""Products whose matrix each row chooses, beside the same in NumPy and f64, with weights as they lie in files too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_block_weights import blocks, numbers
from tract_cpu.kernels.in_blocks.bytes import BlockBytesPlan, grouping_of_bytes
from tract_cpu.kernels.in_blocks.matmul import FEW_ROWS
from tract_cpu.kernels.indexed.in_blocks import IndexedBlockMatMulPlan
from tract_cpu.kernels.indexed.matmul import IndexedMatMulPlan
from tract_cpu.kernels.indexed.runs import RunsPlan
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.target import Rounding
from tract_llvm.isa import ISAS, Isa, of_this_machine, portable

from tract_core.data import DatumType
from tract_core.errors import RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.indexed_matmul import IndexedMatMul

Array = np.ndarray[Any, Any]

OWN = of_this_machine()[-1]
SETS = [portable(one) for one in ISAS if one.name in ("sse2", "avx512", "neon")]
ROUNDING = 2e-6
"""Of a sum of some 100 products, relative to the sum of their magnitudes."""

MATRICES = 5
CHOICES = {
    "spread": lambda rows: np.arange(rows) * 3 % MATRICES,
    "alike": lambda rows: np.full(rows, 3),
    "without-one": lambda rows: np.where(np.arange(rows) % 2, 4, 1),
    "from-the-end": lambda rows: -1 - np.arange(rows) % MATRICES,
}
"""What rows choose, by how many there are."""

KINDS = ("f32", "f16", "bf16", "q4_0", "q8_0", "q5_1", "q4_k", "q6_k")
ROWS = (0, 1, 2, 3, FEW_ROWS + 1, 61)


def weights_of(kind: str, columns: int, depth: int, seed: int = 3) -> tuple[Array, Array]:
    """The weights as they are held, and their numbers [matrices, columns, depth] in f64."""
    if kind == "f32":
        held = np.random.default_rng(seed).standard_normal((MATRICES, columns, depth)).astype("f4")
        return held, held.astype("f8")
    form = FORMATS[kind]
    if form.length == 1:
        narrow = np.random.default_rng(seed).standard_normal((MATRICES, columns, depth))
        rounded = narrow.astype(DatumType[kind.upper()].numpy)
        return rounded.view("u1").reshape(MATRICES, columns, depth, 2), rounded.astype("f8")
    packed = blocks(kind, MATRICES * columns, depth // form.length, seed)
    found = numbers(kind, packed).reshape(MATRICES, columns, depth)
    return packed.reshape(MATRICES, columns, *packed.shape[1:]), found


def model_of(kind: str, held: Array, x: str, which: str) -> TypedModel:
    """One product with these weights."""
    model = TypedModel()
    rows, numbers_ = (
        model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in (("x", x), ("w", which))
    )
    weights = model.add_const("weights", held)
    if kind != "f32":
        (weights,) = model.wire_node("unpacked", UnpackBlocks(kind), [weights])
    model.set_outputs(model.wire_node("y", IndexedMatMul(), [rows, weights, numbers_]))
    return model


def assert_near(found: Array, x: Array, weights: Array, which: Array) -> None:
    """Row by row, in f64. ``x``: [..., depth], of as many rows as ``which``."""
    rows = np.broadcast_to(x, (*which.shape, x.shape[-1])).reshape(which.size, x.shape[-1]).astype("f8")
    for row, number, result in zip(rows, which.reshape(-1), found.reshape(len(rows), weights.shape[1]), strict=True):
        bound = ROUNDING * (np.abs(weights[number]) @ np.abs(row))
        assert (np.abs(result - weights[number] @ row) <= bound).all()


def kernels(plan: CpuPlan) -> list[type]:
    return [type(step.kernel) for step in plan.steps if isinstance(step, NativeStep)]


def rows_of(count: int, depth: int) -> Array:
    return np.random.default_rng(count).standard_normal((count, depth)).astype("f4")


@pytest.mark.parametrize(
    ("isa", "kind"), [*((OWN, kind) for kind in KINDS), *((isa, kind) for isa in SETS for kind in ("f32", "q4_0"))]
)
def test_each_way_that_weights_lie(isa: Isa, kind: str) -> None:
    """With 37 columns, so that panels of two matrices never meet."""
    depth = 256 if kind.endswith("k") else 96
    held, weights = weights_of(kind, 37, depth)
    plan = CpuPlan(model_of(kind, held, f"S,{depth},f32", "S,i64"), isa)
    wanted = IndexedMatMulPlan if kind in ("f32", "f16", "bf16") else IndexedBlockMatMulPlan
    assert kernels(plan) == [RunsPlan, wanted]
    state = plan.spawn()
    for count in ROWS:
        for choose in CHOICES.values():
            x, which = rows_of(count, depth), choose(count).astype("i8")
            assert_near(state.run([x, which])[0], x, weights, which)


@pytest.mark.parametrize("kind", ["f32", "q8_0"])
@pytest.mark.parametrize("columns", [1, 2, 16, 33])
def test_each_number_of_columns(kind: str, columns: int) -> None:
    held, weights = weights_of(kind, columns, 32)
    for count in (1, 2, 11):
        plan = CpuPlan(model_of(kind, held, f"{count},32,f32", f"{count},i32"), OWN)
        x, which = rows_of(count, 32), (np.arange(count) % MATRICES).astype("i4")
        assert_near(plan.spawn().run([x, which])[0], x, weights, which)


@pytest.mark.parametrize("kind", ["f32", "q4_0"])
def test_several_rows_may_share_their_factors(kind: str) -> None:
    """As a position has one input for all of its experts; in any order of the axes."""
    held, weights = weights_of(kind, 24, 64)
    random = np.random.default_rng(1)
    for x_fact, which_fact, shape, chosen in [
        ("B,S,1,64,f32", "B,S,2,i64", (2, 7, 1), (2, 7, 2)),
        ("B,S,2,64,f32", "B,S,2,i64", (2, 7, 2), (2, 7, 2)),
        ("1,S,64,f32", "3,S,i64", (1, 7), (3, 7)),
        ("1,1,64,f32", "S,2,i64", (1, 1), (4, 2)),
        ("64,f32", "i64", (), ()),
    ]:
        x = random.standard_normal((*shape, 64)).astype("f4")
        which = random.integers(0, MATRICES, chosen)
        plan = CpuPlan(model_of(kind, held, x_fact, which_fact), OWN)
        assert_near(plan.spawn().run([x, which])[0], x, weights, which)


@pytest.mark.parametrize("kind", ["f32", "f16", "q4_0", "q6_k"])
def test_results_are_the_same_to_the_bit_for_any_number_of_threads(kind: str) -> None:
    """With more rows of a matrix than one run has."""
    held, _ = weights_of(kind, 70, 256)
    x, which = rows_of(700, 256), np.random.default_rng(2).choice([0, 1, 1, 1, 1, 1, 4], 700)
    model = model_of(kind, held, "S,256,f32", "S,i64")
    for count in (3, 700):
        (alone,) = CpuPlan(model, OWN, 1).spawn().run([x[:count], which[:count]])
        (found,) = CpuPlan(model, OWN, 2).spawn().run([x[:count], which[:count]])
        np.testing.assert_array_equal(found.view("u4"), alone.view("u4"))


def test_a_run_of_many_rows_is_cut() -> None:
    held, weights = weights_of("q4_0", 19, 32)
    x, which = rows_of(1000, 32), np.where(np.arange(1000) == 500, 2, 3)
    plan = CpuPlan(model_of("q4_0", held, "S,32,f32", "S,i64"), OWN)
    assert_near(plan.spawn().run([x, which])[0], x, weights, which)


def test_a_row_does_not_depend_on_the_few_that_chose_the_same() -> None:
    held, _ = weights_of("q4_0", 37, 96)
    state, x = CpuPlan(model_of("q4_0", held, "S,96,f32", "S,i64"), OWN).spawn(), rows_of(FEW_ROWS - 1, 96)
    alone = np.concatenate([state.run([row[None], np.array([2])])[0] for row in x])
    together = state.run([np.concatenate([x, x]), np.repeat([2, 4], len(x))])[0]
    np.testing.assert_array_equal(together[: len(x)], alone)


@pytest.mark.parametrize("kind", ["f32", "q4_0"])
@pytest.mark.parametrize("index", [MATRICES, -MATRICES - 1, 1 << 40])
def test_an_index_outside_is_refused(kind: str, index: int) -> None:
    held, weights = weights_of(kind, 8, 32)
    state, x = CpuPlan(model_of(kind, held, "S,32,f32", "S,i64"), OWN).spawn(), rows_of(9, 32)
    which = np.arange(9) % MATRICES
    which[4] = index
    with pytest.raises(RunError, match=f"node 'y' .IndexedMatMul.: index {index} is outside axis 0, which has size 5"):
        state.run([x, which])
    which[4] = 0
    assert_near(state.run([x, which])[0], x, weights, which)


@pytest.mark.parametrize(("columns", "depth", "matrices"), [(0, 3, 2), (3, 0, 2), (1, 1, 1), (3, 5, 0)])
def test_matrices_that_only_a_run_has(columns: int, depth: int, matrices: int) -> None:
    model = TypedModel()
    facts = ("S,K,f32", "E,N,K,f32", "S,i64")
    sources = [model.add_source(f"i{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("y", IndexedMatMul(), sources))
    plan = CpuPlan(model, OWN)
    assert IndexedMatMulPlan in kernels(plan)
    random, count = np.random.default_rng(7), 4 if matrices else 0
    x, weights = random.standard_normal((count, depth)), random.standard_normal((matrices, columns, depth))
    which = np.arange(count) % max(matrices, 1)
    (found,) = plan.spawn().run([x.astype("f4"), weights.astype("f4"), which])
    assert found.shape == (count, columns)
    assert_near(found, x.astype("f4"), weights.astype("f4").astype("f8"), which)


def test_rows_may_choose_where_there_is_nothing_to_choose() -> None:
    model = TypedModel()
    facts = ("S,2,f32", "E,3,2,f32", "S,i64")
    sources = [model.add_source(f"i{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("y", IndexedMatMul(), sources))
    with pytest.raises(RunError, match="index 0 is outside axis 0, which has size 0"):
        CpuPlan(model, OWN).spawn().run([np.ones((3, 2), "f4"), np.ones((0, 3, 2), "f4"), np.zeros(3, "i8")])


def test_products_of_one_choice_put_rows_in_order_once() -> None:
    held, weights = weights_of("q4_0", 16, 64)
    model = model_of("q4_0", held, "S,64,f32", "S,i64")
    other = model.add_const("other", weights.astype("f4"))
    rows, which = model.inputs
    model.set_outputs([*model.outputs, *model.wire_node("z", IndexedMatMul(), [rows, other, which])])
    plan = CpuPlan(model, OWN)
    assert kernels(plan).count(RunsPlan) == 1
    x, chosen = rows_of(20, 64), np.arange(20) % MATRICES
    for found in plan.spawn().run([x, chosen]):
        assert_near(found, x, weights, chosen)


def test_few_rows_may_be_rounded_to_bytes() -> None:
    """As in other products, but all of them, whichever run they are in; runs of many rows are floats."""
    isa = next(one for one in map(portable, ISAS) if grouping_of_bytes(one) is not None)
    held, weights = weights_of("q4_0", 37, 96)
    plan = CpuPlan(model_of("q4_0", held, "S,1,96,f32", "S,2,i64"), isa, rounding=Rounding(bytes=True))
    assert set(kernels(plan)) == {RunsPlan, BlockBytesPlan, IndexedBlockMatMulPlan}
    integers = np.random.default_rng(3).integers(-127, 128, (3, 1, 96)).astype("f4")
    integers[..., ::32] = 127  # so that rounding changes nothing
    which = np.array([[0, 4], [4, 1], [4, 0]])
    assert_near(plan.spawn().run([integers, which])[0], integers, weights, which)
    rounded = integers + np.where(integers < 127, np.float32(0.25), 0)
    np.testing.assert_array_equal(*(plan.spawn().run([one, which])[0] for one in (rounded, integers)))
