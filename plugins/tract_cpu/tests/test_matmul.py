"""Matrix products of every size class, on every instruction set of this machine, against NumPy in float64."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tract_cpu.caches import Caches, caches
from tract_cpu.kernels.matmul import MatMulPlan
from tract_cpu.kernels.sums import Tile, tile_for
from tract_cpu.plan import CpuPlan
from tract_cpu.products.cut import PIECE, RowCut, cut_rows, piece_of, shared_evenly, tiles_per_task
from tract_llvm.isa import ISAS, Isa
from tract_llvm.language.types import F32, F64, I32

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add, Max, Sub
from tract_core.ops.cast import Cast
from tract_core.ops.einsum import EinSum

AVX512 = next(one for one in ISAS if one.name == "avx512")

SIZES = [(0, 3, 2), (2, 0, 3), (3, 2, 0), (1, 1, 1), (1, 64, 256), (2, 5, 33), (5, 7, 31), (15, 33, 65), (113, 17, 70)]

MAPPINGS = [
    "mk,kn->mn",
    "mk,nk->mn",
    "mk,kn->nm",
    "bmk,bkn->bmn",
    "bmk,bkn->mbn",
    "mbk,kn->mbn",
    "bhmk,hkn->bhmn",
    "m,n->mn",
    "mk,k->m",
    "k,k->",
]

PRODUCTS = [(MAPPINGS[0], size) for size in SIZES]
PRODUCTS += [(mapping, size) for place, mapping in enumerate(MAPPINGS[1:]) for size in SIZES[place % 3 :: 3]]
"""Every size for plain products; for each of the other mappings, one without elements, a small and a larger one."""


def product(mapping: str, a: str, b: np.ndarray | str, kind: DatumType) -> TypedModel:
    """A product; ``b`` is part of the model where it is an array."""
    model = TypedModel()
    left = model.add_source("a", parse_typed_fact(a, model.symbols))
    right = model.add_const("b", b) if isinstance(b, np.ndarray) else model.add_source("b", parse_typed_fact(b))
    model.set_outputs(model.wire_node("c", EinSum(AxesMapping.parse(mapping), kind), [left, right]))
    return model


def fact(shape: tuple[int, ...], dtype: str) -> str:
    return ",".join([*map(str, shape), dtype])


@pytest.mark.parametrize(("mapping", "size"), PRODUCTS, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_products_are_those_of_numpy(isa, mapping, size, dtype) -> None:
    kind, sizes = DatumType[dtype.upper()], {**dict(zip("mkn", size, strict=True)), "b": 3, "h": 2}
    shapes = [tuple(sizes[name] for name in term) for term in AxesMapping.parse(mapping).inputs]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(kind.numpy) for shape in shapes)
    wanted = np.einsum(mapping, a.astype("f8"), b.astype("f8"))
    bound = np.einsum(mapping, np.abs(a), np.abs(b)) * (size[1] + 1) * np.finfo(kind.numpy).eps
    for right, inputs in ((b, [a]), (fact(b.shape, dtype), [a, b])):
        plan = CpuPlan(product(mapping, fact(a.shape, dtype), right, kind), isa)
        assert all(placement.how != "numpy" for placement in plan.explain().placements)
        (found,) = plan.spawn().run(inputs)
        assert found.shape == wanted.shape
        assert np.all(np.abs(found - wanted) <= bound)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 6, 13, 14, 31, 300])
def test_one_plan_runs_any_number_of_rows_with_bias_and_activation(isa, rows) -> None:
    rng = np.random.default_rng(rows)
    weights, bias = rng.standard_normal((20, 37)).astype("f4"), rng.standard_normal((1, 37)).astype("f4")
    model = product("mk,kn->mn", "B,20,f32", weights, DatumType.F32)
    (added,) = model.wire_node("bias", Add(), [*model.outputs, model.add_const("b0", bias)])
    model.set_outputs(model.wire_node("relu", Max(), [added, model.add_const("zero", np.zeros((1, 1), "f4"))]))
    plan = CpuPlan(model, isa)
    assert [placement.ops for placement in plan.explain().placements] == [("EinSum", "Add", "Max")]
    x = rng.standard_normal((rows, 20)).astype("f4")
    (found,) = plan.spawn().run([x])
    wanted = np.maximum(x.astype("f8") @ weights.astype("f8") + bias, 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_nothing_is_hidden_by_what_pads_a_panel(isa) -> None:
    a, b = np.array([[1, np.inf, np.nan]], "f4").T, np.array([[0.0, 1.0, -np.inf]], "f4")
    model = product("mk,kn->mn", "3,1,f32", b, DatumType.F32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(CpuPlan(model, isa).spawn().run([a])[0], a @ b)


def test_tiles_fill_the_registers() -> None:
    plans = {isa.name: tile_for(isa, F32) for isa in ISAS}
    assert plans["avx512"] == Tile(14, 2, 16)
    assert plans["avx2"] == Tile(6, 2, 8)
    assert plans["neon"] == Tile(12, 2, 4)
    assert plans["sse2"] == Tile(6, 2, 4)
    assert tile_for(AVX512, F64).lanes == 8


def heights_of(cut: RowCut, rows: int) -> list[int]:
    """Those of all tiles."""
    heights = [cut.tile.rows] * (int(cut.whole) // cut.tile.rows)
    for height in cut.rests:
        heights += [height] * ((rows - int(cut.whole)) // height)
    return heights


@pytest.mark.parametrize("panels", [1, 2, 3, 8, 24])
def test_threads_have_about_as_much_to_do(panels: int) -> None:
    """Never less evenly than with tiles that are as high as can be; 150 rows in 12 tiles, not in 11."""
    most = Tile(14, 2, 16)
    assert shared_evenly(cut_rows(most, 150), 150, 8, 6)[0].count == 12
    for rows in range(500):
        before = cut_rows(most, rows)
        tasks = tiles_per_task(before, 256, panels, 4)
        cut, each = shared_evenly(before, rows, panels, tasks)
        heights = heights_of(cut, rows)
        assert sum(heights) == rows
        assert len(heights) == cut.count
        assert max(heights, default=0) <= 14
        assert 0 < each <= tasks
        assert busiest(cut, rows, panels, each) <= busiest(before, rows, panels, tasks) * 1.02


def busiest(cut: RowCut, rows: int, panels: int, each: int) -> int:
    """How many rows of panels the busiest of one, two and four threads has, times their number."""
    heights, found = heights_of(cut, rows), 0
    tasks = [sum(heights[first : first + each]) for first in range(0, len(heights), each) for _ in range(panels)]
    for threads in (1, 2, 4):
        ends = [len(tasks) * part // threads for part in range(threads + 1)]
        found += threads * max(sum(tasks[begin:end]) for begin, end in pairwise(ends))
    return found


def test_tiles_are_about_as_high_as_each_other() -> None:
    most = Tile(14, 2, 16)
    for rows in range(1, 500):
        cut = cut_rows(most, rows)
        heights = heights_of(cut, rows)
        assert sum(heights) == rows
        assert len(heights) == cut.count == -(-rows // 14)
        assert max(heights) - min(heights) <= 1
    assert cut_rows(most, 0).count == 0
    assert cut_rows(most, symbol("N")).rests == (8, 4, 2, 1)


def test_lines_that_are_far_apart_may_displace_each_other() -> None:
    """In a cache of 64 sets of 8 lines, rows of 1024 numbers all meet in one set."""
    usual = Caches(32 << 10, 1 << 20)
    assert [usual.keeps_lines(14, 4 * size) for size in (1, 192, 256, 512, 768, 1000, 1024, 3072)] == [
        True, True, True, False, True, True, False, False,
    ]  # fmt: skip
    assert usual.keeps_lines(4, 4096)
    assert usual.keeps_lines(0, 4096)


@pytest.mark.parametrize("rows", [2, 13, 29, 197, "M"], ids=str)
@pytest.mark.parametrize("depth", [33, 1024], ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_rows_are_packed_where_they_displace_each_other(isa, rows, depth, dtype, monkeypatch) -> None:
    """As many rows as tiles of any height; depths that are whole vectors, and that are not."""
    monkeypatch.setattr("tract_cpu.products.cut.caches", lambda: Caches(32 << 10, 1 << 20))
    kind = DatumType[dtype.upper()]
    generator = np.random.default_rng(depth)
    right = generator.standard_normal((depth, 70)).astype(kind.numpy)
    plan = CpuPlan(product("mk,kn->mn", f"{rows},{depth},{dtype}", right, kind), isa)
    (kernel,) = (step.kernel for step in plan.steps)
    assert isinstance(kernel, MatMulPlan)
    assert kernel.packs == (dtype == "f16" or (depth == 1024 and rows != 2))
    for count in (rows,) if isinstance(rows, int) else (0, 1, 27, 100):
        left = generator.standard_normal((count, depth)).astype(kind.numpy)
        wanted = left.astype("f8") @ right.astype("f8")
        exactness = 2e-3 if dtype == "f16" else 1e-5
        np.testing.assert_allclose(plan.spawn().run([left])[0], wanted, rtol=exactness, atol=exactness * 30)


@pytest.mark.parametrize("rows", [1, "whole", "more", "M"])
def test_weights_from_memory_are_fetched_ahead(isa, rows) -> None:
    """By the tiles that share the panel before, or by the one that reads it.

    What is packed in the run is near anyway, and what fits the second level of the cache.
    """
    depth = caches().second // (4 * 70) + 1
    right = np.zeros((depth, 70), "f4")

    def planned(rows: int | str, other: np.ndarray | str) -> MatMulPlan:
        depth = other.shape[0] if isinstance(other, np.ndarray) else other.partition(",")[0]
        plan = CpuPlan(product("mk,kn->mn", f"{rows},{depth},f32", other, DatumType.F32), isa)
        (found,) = [step.kernel for step in plan.steps if isinstance(step.kernel, MatMulPlan)]
        return found

    height = planned("M", right).tile.rows
    count = {"whole": height, "more": height + 1}.get(rows, rows)
    for other in (right, right[:-1], f"{depth},70,f32"):
        found = planned(count, other)
        assert found.fetches == (rows in ("more", "M") and other is right)
        assert found.asks_ahead == (rows in (1, "whole") and other is right)


@pytest.mark.parametrize(("depth", "columns"), [(1536, 33), (1541, 70), (3000, 31)])
@pytest.mark.parametrize(("mapping", "dtype"), [("mk,kn->mn", "f32"), ("km,kn->mn", "f32"), ("mk,kn->mn", "f64")])
def test_a_long_inner_axis_is_summed_in_pieces(isa, mapping, dtype, depth, columns) -> None:
    """What follows the sum is computed once, when all is summed; infinities and what is no number come through."""
    kind, generator = DatumType[dtype.upper()], np.random.default_rng(depth)
    right = generator.standard_normal((depth, columns)).astype(kind.numpy)
    shape = {"m": "M", "k": str(depth)}
    model = product(mapping, ",".join([*(shape[name] for name in mapping[:2]), dtype]), right, kind)
    more = model.add_source("d", parse_typed_fact(f"M,{columns},{dtype}", model.symbols))
    model.set_outputs(model.wire_node("e", Add(), [*model.outputs, more]))
    plan = CpuPlan(model, isa)
    (kernel,) = (step.kernel for step in plan.steps)
    assert isinstance(kernel, MatMulPlan)
    assert kernel.pieces == (columns > kernel.tile.columns)
    for count in (0, 1, 27, 100):
        left = generator.standard_normal((count, depth)).astype(kind.numpy)
        added = generator.standard_normal((count, columns)).astype(kind.numpy)
        left[:1, depth // 2], left[1:2, 0], added[2:3, 0] = np.inf, np.nan, -np.inf
        (found,) = plan.spawn().run([left if mapping[0] == "m" else left.T.copy(), added])
        with np.errstate(all="ignore"):
            wanted = left.astype("f8") @ right.astype("f8") + added
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-3 if dtype == "f32" else 1e-10)


def test_the_inner_axis_is_cut_where_rows_do_not_stay_near() -> None:
    few, many, unknown = (cut_rows(Tile(14, 2, 16), rows) for rows in (14, 100_000, symbol("M")))
    assert [piece_of(many, depth, 2, 4) for depth in (PIECE, 2 * PIECE - 1, 2 * PIECE, 4 * PIECE - 1)] == [
        None, None, PIECE, 1024,
    ]  # fmt: skip
    assert piece_of(unknown, 4 * PIECE, 2, 4) == PIECE
    assert (
        piece_of(few, 4 * PIECE, 2, 4) is piece_of(many, 4 * PIECE, 1, 4) is piece_of(many, symbol("K"), 2, 4) is None
    )


def test_tiles_are_as_narrow_as_the_result() -> None:
    avx512, sizes = AVX512, (symbol("N"), 1, 4, 5, 8, 9, 16, 17, 32, 33)
    assert [tile_for(avx512, F32, size).columns for size in sizes] == [32, 4, 4, 8, 8, 16, 16, 32, 32, 32]
    assert [tile_for(avx512, F64, size).columns for size in sizes] == [16, 2, 4, 8, 8, 16, 16, 16, 16, 16]
    assert [tile_for(ISAS[0], F32, size).columns for size in sizes] == [8, 4, 4, 8, 8, 8, 8, 8, 8, 8]
    assert [tile_for(avx512, I32, size, whole=True).columns for size in sizes][:3] == [32, 16, 16]
    assert tile_for(avx512, F32, 3).rows == tile_for(avx512, F32).rows


@pytest.mark.parametrize("mapping", ["mhk,hkn->mn", "mhk,nkh->mn", "mhk,hk->m"])
def test_several_axes_are_summed_over_at_once(isa, mapping) -> None:
    """As where attention joins its heads again."""
    sizes = {"m": 5, "h": 3, "k": 7, "n": 19}
    left, right = ([sizes[name] for name in term] for term in AxesMapping.parse(mapping).inputs)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(left).astype("f4"), rng.standard_normal(right).astype("f4")
    model = product(mapping, fact(tuple(left), "f32"), b, DatumType.F32)
    (found,) = CpuPlan(model, isa).spawn().run([a])
    np.testing.assert_allclose(found, np.einsum(mapping, a.astype("f8"), b.astype("f8")), atol=1e-5)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1"])
def test_results_of_few_columns_are_right(isa, columns, dtype) -> None:
    """Constants are packed when the model is prepared, other factors in the run."""
    names = {"f4": "f32", "f8": "f64", "f2": "f16", "i4": "i32", "u1": "u8"}
    acc = DatumType.I32 if dtype in {"i4", "u1"} else DatumType[names[dtype].upper()]
    generator = np.random.default_rng(columns)
    for rows, depth in [(1, 1), (1, 37), (2, 16), (15, 9), (130, 20)]:
        a, b = (
            (generator.standard_normal(shape) * 3).astype(dtype)
            if dtype[0] == "f"
            else generator.integers(0, 9, shape, dtype)
            for shape in ((rows, depth), (depth, columns))
        )
        wanted = a.astype("f8") @ b.astype("f8")
        for right in (b, f"{depth},{columns},{names[dtype]}"):
            plan = CpuPlan(product("mk,kn->mn", f"M,{depth},{names[dtype]}", right, acc), isa)
            (found,) = plan.spawn().run([a] if isinstance(right, np.ndarray) else [a, b])
            exactness = {"f4": 1e-5, "f8": 1e-13, "f2": 2e-3}.get(dtype, 0)
            np.testing.assert_allclose(found, wanted, rtol=exactness, atol=exactness * 9 * depth)


@pytest.mark.parametrize("mapping", ["bmhk,bnhk->bhmn", "bhmn,bnhk->bmhk", "mkbh,nhbk->bhmn", "makb,kanb->mn"])
def test_factors_whose_axes_lie_apart_are_arranged(isa, mapping) -> None:
    sizes = {"b": 2, "h": 3, "m": 17, "n": 5, "k": 9, "a": 4}
    symbols = {"b": "B", "m": "M", "n": "N"}
    terms = AxesMapping.parse(mapping).inputs
    shapes = [tuple(sizes[name] for name in term) for term in terms]
    model = TypedModel()
    factors = [
        model.add_source(
            f"x{slot}",
            parse_typed_fact(",".join([*(symbols.get(n, str(sizes[n])) for n in term), "f32"]), model.symbols),
        )
        for slot, term in enumerate(terms)
    ]
    model.set_outputs(model.wire_node("c", EinSum(AxesMapping.parse(mapping), DatumType.F32), factors))
    plan = CpuPlan(model, isa)
    assert all(placement.how != "numpy" for placement in plan.explain().placements)
    a, b = (np.random.default_rng(0).standard_normal(shape).astype("f4") for shape in shapes)
    wanted = np.einsum(mapping, a.astype("f8"), b.astype("f8"))
    np.testing.assert_allclose(plan.spawn().run([a, b])[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("known", [True, False], ids=["constant", "input"])
@pytest.mark.parametrize(
    "mapping",
    ["mk,bkn->bmn", "mk,hkbn->hmbn", "bmk,hkbn->hbmn", "bmk,hbkn->bmhn", "k,bkn->bn", "mkh,khn->mn", "mhk,nkh->mn"],
)
def test_columns_may_lie_apart(isa, mapping, known) -> None:
    """Each of them is a product with the same rows. Several axes may be summed over."""
    sizes = {"b": 2, "h": 3, "m": 17, "n": 5, "k": 9}
    terms = AxesMapping.parse(mapping).inputs
    a, b = (np.random.default_rng(0).standard_normal([sizes[name] for name in term]).astype("f4") for term in terms)
    plan = CpuPlan(product(mapping, fact(a.shape, "f32"), b if known else fact(b.shape, "f32"), DatumType.F32), isa)
    assert all(placement.how != "numpy" for placement in plan.explain().placements)
    (found,) = plan.spawn().run([a] if known else [a, b])
    np.testing.assert_allclose(found, np.einsum(mapping, a.astype("f8"), b.astype("f8")), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mapping", ["bmk,bkn->bmn", "bmk,bnk->bnm", "abmk,abkn->ambn"])
def test_a_symbolic_size_may_be_1_in_either_factor(isa, mapping) -> None:
    terms = AxesMapping.parse(mapping).inputs
    model = TypedModel()
    shapes = [
        ",".join(f"{name.upper()}{slot if name in 'ab' else ''}" for name in term) for slot, term in enumerate(terms)
    ]
    factors = [
        model.add_source(f"x{slot}", parse_typed_fact(f"{shape},f32", model.symbols))
        for slot, shape in enumerate(shapes)
    ]
    model.set_outputs(model.wire_node("c", EinSum(AxesMapping.parse(mapping), DatumType.F32), factors))
    plan = CpuPlan(model, isa)
    assert all(placement.how != "numpy" for placement in plan.explain().placements)
    for left, right in ((3, 3), (1, 3), (3, 1), (1, 1), (0, 1)):
        sizes = {"m": 7, "n": 5, "k": 9}
        a, b = (
            np.random.default_rng(0).standard_normal([sizes.get(name, size) for name in term]).astype("f4")
            for term, size in zip(terms, (left, right), strict=True)
        )
        wanted = np.einsum(mapping, a.astype("f8"), b.astype("f8"))
        np.testing.assert_allclose(plan.spawn().run([a, b])[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("known", [True, False], ids=["constant", "input"])
@pytest.mark.parametrize("depths", [(1, 9), (9, 1)], ids=str)
def test_an_axis_that_is_summed_over_may_have_size_1_in_one_factor(isa, depths, known) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 7, depths[0])).astype("f4"), rng.standard_normal((2, depths[1], 5)).astype("f4")
    model = product("bmk,bkn->bmn", f"B,M,{depths[0]},f32", b if known else fact(b.shape, "f32"), DatumType.F32)
    plan = CpuPlan(model, isa)
    assert all(placement.how != "numpy" for placement in plan.explain().placements)
    (found,) = plan.spawn().run([a] if known else [a, b])
    wanted = np.broadcast_to(a.astype("f8"), (2, 7, 9)) @ np.broadcast_to(b, (2, 9, 5))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_what_is_added_to_a_product_may_be_turned(isa) -> None:
    model = product("mk,kn->mn", "M,20,f32", "20,37,f32", DatumType.F32)
    turned = model.add_source("t", parse_typed_fact("37,M,f32", model.symbols))
    moved = model.wire_node("moved", MoveAxis(0, 1), [turned])
    plain = list(model.outputs)
    model.set_outputs(model.wire_node("sum", Add(), [*plain, *moved]))
    plan = CpuPlan(model, isa)
    assert all(placement.how != "numpy" for placement in plan.explain().placements)
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape).astype("f4") for shape in ((15, 20), (20, 37), (37, 15)))
    np.testing.assert_allclose(plan.spawn().run([a, b, c])[0], a.astype("f8") @ b + c.T, rtol=1e-4, atol=1e-4)


def test_a_node_that_is_several_calls_is_placed_once() -> None:
    plan = CpuPlan(product("bmk,bkn->bmn", "3,20,7,f32", "3,7,37,f32", DatumType.F32), ISAS[0])
    assert [placement.ops for placement in plan.explain().placements] == [("EinSum",)]


def whole_numbers(low: int, high: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random ones, with both ends among them where there is room."""
    found = np.random.default_rng(0).integers(low, high, shape, np.int64, endpoint=True)
    found.ravel()[: 2 * (found.size // 2)][::2] = low
    return found.astype(dtype)


@pytest.mark.parametrize(("mapping", "size"), PRODUCTS, ids=str)
@pytest.mark.parametrize(
    ("dtypes", "acc"),
    [(("i4", "i4"), "i32"), (("i8", "i8"), "i64"), (("u1", "i1"), "i32"), (("i1", "i1"), "i64"), (("u4", "u4"), "u32")],
    ids=str,
)
def test_products_of_integers_wrap_around_as_the_references(isa, mapping, size, dtypes, acc) -> None:
    sizes = {**dict(zip("mkn", size, strict=True)), "b": 3, "h": 2}
    shapes = [tuple(sizes[name] for name in term) for term in AxesMapping.parse(mapping).inputs]
    ends = [np.iinfo(dtype) for dtype in dtypes]
    a, b = (
        whole_numbers(end.min, end.max, shape, dtype) for end, shape, dtype in zip(ends, shapes, dtypes, strict=True)
    )
    kind = DatumType[acc.upper()]
    wanted = np.einsum(mapping, a.astype(object), b.astype(object))
    wrapped = np.vectorize(lambda x: int(x) % 2**64, otypes=[np.uint64])(wanted).astype(kind.numpy)
    shorts = [DatumType.from_numpy(np.dtype(dtype)).short for dtype in dtypes]
    for right, inputs in ((b, [a]), (fact(b.shape, shorts[1]), [a, b])):
        plan = CpuPlan(product(mapping, fact(a.shape, shorts[0]), right, kind), isa)
        assert all(placement.how != "numpy" for placement in plan.explain().placements)
        (found,) = plan.spawn().run(inputs)
        np.testing.assert_array_equal(found, np.broadcast_to(wrapped, found.shape))


def takes_bytes(isa: Isa, weights: np.ndarray, rows: int) -> bool:
    """Whether products of bytes and weights are summed in fours: as bytes, or by pairs where these fit 16 bits."""
    dots = [one for one in isa.dots if one.group == 4]
    ends = (weights.min(), weights.max()) if weights.size else (0, 0)
    if any(not one.pairs for one in dots):
        return any(low <= ends[0] and ends[1] <= high for low, high in ((-128, 127), (0, 255)))
    most = 127 if rows <= 16 else 64
    return bool(dots) and -most <= ends[0] and ends[1] <= most


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("dtype", "weight"), [("u1", 255), ("i1", 127), ("i1", 126), ("i1", 63), ("i2", 32767)])
def test_integers_that_fit_16_bits_are_multiplied_in_pairs_and_bytes_in_fours(any_isa, size, dtype, weight) -> None:
    rows, depth, columns = size
    model, ends = TypedModel(), np.iinfo(dtype)
    short = DatumType.from_numpy(np.dtype(dtype)).short
    x = model.add_source("x", parse_typed_fact(f"{rows},{depth},{short}"))
    (wide,) = model.wire_node("wide", Cast(DatumType.I32), [x])
    if dtype != "i2":
        zero = model.add_source("zero", parse_typed_fact(f"1,1,{short}"))
        (wide,) = model.wire_node("less", Sub(), [wide, *model.wire_node("z", Cast(DatumType.I32), [zero])])
    weights = whole_numbers(-weight - 1, weight, (depth, columns), "i4")
    right = model.add_const("w", weights)
    model.set_outputs(model.wire_node("y", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.I32), [wide, right]))
    plan = CpuPlan(model, any_isa)
    kernels = [step.kernel for step in plan.steps]
    groups = [one.grouping and one.grouping.size for one in kernels if isinstance(one, MatMulPlan)]
    in_fours = dtype != "i2" and takes_bytes(any_isa, weights, rows)
    in_pairs = any(one.left == "i16" for one in any_isa.dots)
    assert groups == [None if not weights.size else 4 if in_fours else 2 if in_pairs else None]
    values = whole_numbers(ends.min, ends.max, (rows, depth), dtype)
    for offset in (ends.min, ends.max) if dtype != "i2" else (0,):
        inputs = [values] if dtype == "i2" else [values, np.full((1, 1), offset, dtype)]
        (found,) = plan.spawn().run(inputs)
        wanted = (values.astype("i8") - offset) @ weights.astype("i8")
        np.testing.assert_array_equal(found, wanted.astype("i4"))
