"""Products of matrices by every kernel that there is, on the emulator, against NumPy in f64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from executed import SM_80, Execution, kernels_of, run
from tract_cuda.kernels.products.mma import MmaTile
from tract_cuda.kernels.products.tile import Tile
from tract_cuda.lowering import Lowering, Target
from tract_cuda.products.product import (
    FLAT,
    FLAT_MMA,
    MMA_TILES,
    OTHERS,
    OTHERS_MMA,
    TILES,
    AnyTile,
    Product,
    add_tiles,
    add_vectors,
    by_rule,
    factors_of,
)
from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.language.types import BF16, F16, F32, F64, I32, ElementType
from tract_llvm.program.views import View

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum
from tract_core.plugins import default_registry

KINDS = {F16: "f16", BF16: "bf16", F32: "f32", F64: "f64", I32: "i32"}
SMALL = Tile(16, 32, 32, 2, 2)
SMALL_MMA = MmaTile(32, 32, 32, 2, 1, 2)


def numpy_of(element: ElementType) -> np.dtype:
    return np.dtype(DatumType[KINDS[element].upper()].numpy)


def matrix(shape: Sequence[int], element: ElementType, seed: int, *, turned: bool = False) -> np.ndarray:
    """A matrix whose last two axes lie in memory as they are, or the other way round."""
    numbers = np.random.default_rng(seed).integers(-6, 7, shape) / (1 if element.kind == "i" else 4)
    found = numbers.astype(numpy_of(element))
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(found, 1, 2)), 1, 2) if turned else found


def sum_of(element: ElementType) -> Expression:
    """What adds an operand to each sum."""
    found = element_of(default_registry(), Add(), (element, element))
    assert found is not None
    return Expression((element, element), (Apply(Add(), (0, 1), element, found.emit),))


class Case:
    """A product of pairs of matrices, with an operand that is the same for all rows."""

    def __init__(self, element: ElementType, sums: ElementType, left: np.ndarray, right: np.ndarray) -> None:
        self.left, self.right = left, right
        pairs, rows, _ = left.shape
        columns = right.shape[2]
        self.operand = matrix((1, 1, columns), element, 5)
        self.lowering = Lowering(TypedModel(), Target(SM_80))
        views = [self._view(one, element) for one in (left, right, self.operand)]
        operand = views[2].stretched((pairs, rows, columns))
        result = self.lowering.scratch(element, (pairs, rows, columns))
        self.result = result
        self.product = Product(views[0], views[1], (operand,), result, sums, sum_of(element))

    def _view(self, array: np.ndarray, element: ElementType) -> View:
        straight = array.flags.c_contiguous
        kept = array if straight else np.swapaxes(array, 1, 2)
        found = self.lowering.scratch(element, kept.shape)
        return found if straight else found.transposed((0, 2, 1))

    def run(self) -> np.ndarray:
        """What the launches compute."""
        execution = Execution(self.lowering.program(), {})
        for view, array in zip(
            (self.product.left, self.product.right, self.product.operands[0]),
            (self.left, self.right, self.operand),
            strict=True,
        ):
            execution.put(view.storage, array if array.flags.c_contiguous else np.swapaxes(array, 1, 2))
        execution.run(TypedModel(), ())
        like = np.empty(self.result.shape, self.left.dtype)
        return execution.get(self.result.storage, like)

    def check(self) -> None:
        """It is what NumPy computes in f64: numbers are such that no sum is rounded but the last one."""
        wanted = (self.left.astype("f8") @ self.right.astype("f8")).astype(self.left.dtype).astype("f8")
        wanted = (wanted + self.operand.astype("f8")).astype(self.left.dtype)
        np.testing.assert_array_equal(self.run(), wanted)


def case(element: ElementType, sizes: Sequence[int], *, turned: tuple[bool, bool] = (False, False)) -> Case:
    pairs, rows, depth, columns = sizes
    left = matrix((pairs, rows, depth), element, 0, turned=turned[0])
    right = matrix((pairs, depth, columns), element, 1, turned=turned[1])
    return Case(element, F32 if element in {F16, BF16} else element, left, right)


SIZES = [(1, 1, 1, 1), (2, 3, 5, 2), (1, 16, 32, 32), (2, 17, 33, 31), (1, 15, 64, 65), (1, 5, 0, 7)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)], ids=str)
@pytest.mark.parametrize("parts", [1, 3])
def test_tiles_of_any_sizes_and_strides(sizes, turned, parts) -> None:
    one = case(F32, sizes, turned=turned)
    add_tiles(one.lowering, one.product, (SMALL, parts), ())
    one.check()


@pytest.mark.parametrize("element", [F16, BF16, F64, I32], ids=lambda one: one.name)
@pytest.mark.parametrize("sizes", [(2, 17, 33, 31), (1, 20, 40, 36)], ids=str)
def test_tiles_of_any_type(element, sizes) -> None:
    one = case(element, sizes)
    add_tiles(one.lowering, one.product, (SMALL, 1), ())
    one.check()


@pytest.mark.parametrize("tile", [*TILES, FLAT, *OTHERS], ids=str)
def test_every_tile_that_is_measured(tile: AnyTile) -> None:
    one = case(F32, (1, tile.rows + 1, tile.depth * 2 + 4, tile.columns + 4))
    add_tiles(one.lowering, one.product, (tile, 1), ())
    one.check()


MMA_SIZES = [(1, 1, 8, 8), (2, 3, 40, 16), (1, 32, 32, 32), (2, 33, 72, 40), (1, 31, 64, 24), (1, 5, 0, 8)]


@pytest.mark.parametrize("sizes", MMA_SIZES, ids=str)
@pytest.mark.parametrize("inner", [False, True], ids=["columns", "depth"])
@pytest.mark.parametrize("parts", [1, 2])
def test_halves_on_tensor_cores(sizes, inner, parts) -> None:
    one = case(F16, sizes, turned=(False, inner))
    assert factors_of(one.product) is not None
    add_tiles(one.lowering, one.product, (SMALL_MMA, parts), ())
    one.check()


@pytest.mark.parametrize("tile", [*MMA_TILES, FLAT_MMA, *OTHERS_MMA], ids=str)
def test_every_tile_for_tensor_cores_that_is_measured(tile: AnyTile) -> None:
    one = case(BF16, (1, tile.rows + 1, tile.depth + 8, tile.columns + 8), turned=(False, True))
    add_tiles(one.lowering, one.product, (tile, 1), ())
    one.check()


@pytest.mark.parametrize("sizes", [(1, 33, 12, 32), (1, 33, 32, 12)], ids=str)
def test_what_lies_in_no_whole_pieces_is_not_for_tensor_cores(sizes) -> None:
    assert factors_of(case(F16, sizes).product) is None


@pytest.mark.parametrize("element", [F32, F16, F64, I32], ids=lambda one: one.name)
@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("inner", [False, True], ids=["columns", "depth"])
@pytest.mark.parametrize("sizes", [(1, 1), (131, 33), (512, 40)], ids=str)
def test_few_rows(element, rows, inner, sizes) -> None:
    depth, columns = sizes
    one = case(element, (2, rows, depth, columns), turned=(False, inner))
    add_vectors(one.lowering, one.product, ())
    one.check()


def test_infinities_and_what_is_no_number_stay_in_their_rows() -> None:
    """Nothing is multiplied beyond the ends: 0 times infinity would be no number."""
    for element, tile, sizes in ((F32, SMALL, (1, 17, 33, 31)), (F16, SMALL_MMA, (1, 33, 72, 40))):
        one = case(element, sizes)
        one.left[0, 0, 0], one.left[0, 1, 0], one.right[0, :, 3] = np.inf, np.nan, np.inf
        add_tiles(one.lowering, one.product, (tile, 1), ())
        with np.errstate(all="ignore"):
            wanted = (one.left.astype("f8") @ one.right.astype("f8")).astype(one.left.dtype) + one.operand
        np.testing.assert_array_equal(np.isnan(one.run()), np.isnan(wanted))


def test_small_results_of_deep_sums_are_summed_in_parts() -> None:
    tile, parts = by_rule(case(F32, (1, 64, 4096, 64)).product, 132)
    assert parts > 1
    assert tile in TILES
    assert by_rule(case(F32, (1, 2048, 64, 2048)).product, 132) == (TILES[0], 1)


@pytest.mark.parametrize("kind", ["i8", "u8", "i32", "i64", "f64"])
def test_integers_are_exact(kind) -> None:
    acc = "i32" if kind in {"i8", "u8"} else kind
    model = TypedModel()
    sources = [
        model.add_source(name, parse_typed_fact(f"{shape},{kind}", model.symbols))
        for name, shape in (("a", "19,70"), ("b", "70,23"))
    ]
    op = EinSum(AxesMapping.parse("ij,jk->ik"), DatumType[acc.upper()])
    model.set_outputs(model.wire_node("y", op, sources))
    rng, dtype = np.random.default_rng(0), DatumType[kind.upper()].numpy
    low = 0 if kind == "u8" else -100
    a, b = (rng.integers(low, 100, shape).astype(dtype) for shape in ((19, 70), (70, 23)))
    (found,) = run(model, a, b)
    np.testing.assert_array_equal(found, a.astype("i8") @ b.astype("i8"))
    assert kernels_of(model)


@pytest.mark.parametrize("shape", [(3, 1, 2, 9), (1, 4, 2, 9), (3, 1, 1, 9), (1, 1, 2, 1), (3, 4, 1, 1)], ids=str)
@pytest.mark.parametrize("rows", [2, 17])
def test_operands_repeat_along_some_of_the_pairs_only(shape: tuple[int, ...], rows: int) -> None:
    """As masks do along heads, and not along the batch."""
    shape = tuple(rows if size == 2 else size for size in shape)
    arrays = [matrix_of_whole_numbers(one) for one in ((3, rows, 4, 5), (3, 9, 4, 5), shape)]
    model = TypedModel()
    sources = [
        model.add_source(f"x{number}", parse_typed_fact(f"{','.join(map(str, one.shape))},f32", model.symbols))
        for number, one in enumerate(arrays)
    ]
    op = EinSum(AxesMapping.parse("bqhd,bkhd->bhqk"), DatumType.F32)
    products = model.wire_node("products", op, sources[:2])
    model.set_outputs(model.wire_node("masked", Add(), [*products, sources[2]]))
    (found,) = run(model, *arrays)
    np.testing.assert_array_equal(found, np.einsum("bqhd,bkhd->bhqk", *arrays[:2]) + arrays[2])


def matrix_of_whole_numbers(shape: Sequence[int]) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-6, 7, shape).astype("f4")
