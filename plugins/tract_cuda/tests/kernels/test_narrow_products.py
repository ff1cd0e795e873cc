"""Products of bytes, and of f32 cut to 10 bits, on tensor cores: on the emulator, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import ml_dtypes  # noqa: F401 (has NumPy know bf16)
import numpy as np
import pytest
from executed import SM_80, Execution
from tract_cuda.kernels.products.mma import MmaTile
from tract_cuda.language.matrices import Factors
from tract_cuda.lowering import Lowering, Target
from tract_cuda.products.choose import add_product, as_read
from tract_cuda.products.product import AnyTile, Product, add_tiles, factors_of, tiles_for
from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import BF16, F16, F32, F64, I8, I32, U8, ElementType, element_type
from tract_llvm.program.views import View

from tract_core.data import DatumType
from tract_core.model.typed import TypedModel

SMALL = MmaTile(32, 32, 64, 2, 1, 2)
SIGNS = [(I8, I8), (U8, U8), (U8, I8), (I8, U8)]
SIGN_NAMES = ["i8-i8", "u8-u8", "u8-i8", "i8-u8"]


class Case:
    """A product of pairs of matrices. ``known``: whether the right factor is part of the model."""

    def __init__(
        self,
        left: np.ndarray,
        right: np.ndarray,
        sums: ElementType,
        *,
        inner: bool,
        known: bool = False,
        tf32: bool = False,
    ) -> None:
        self.left, self.right = left, right
        self.lowering = Lowering(TypedModel(), Target(SM_80, tf32=tf32))
        self.kept = np.ascontiguousarray(np.swapaxes(right, 1, 2)) if inner else right
        self.known = known
        views = [self._view(left), self.lowering.constant(self.kept) if known else self._view(self.kept)]
        self.given = views[1]
        turned = views[1].transposed((0, 2, 1)) if inner else views[1]
        self.result = self.lowering.scratch(sums, (*left.shape[:2], right.shape[2]))
        self.product = Product(views[0], turned, (), self.result, sums, Expression((sums,)), tf32=tf32)

    def _view(self, array: np.ndarray) -> View:
        element = element_type(DatumType.from_numpy(array.dtype))
        assert element is not None
        return self.lowering.scratch(element, array.shape)

    def run(self) -> np.ndarray:
        """What the launches compute."""
        program = self.lowering.program()
        execution = Execution(program, {})
        execution.put(self.product.left.storage, self.left)
        if not self.known:
            execution.put(self.given.storage, self.kept)
        execution.run(TypedModel(), ())
        kind = np.int32 if self.result.element is I32 else np.float32
        return execution.get(self.result.storage, np.empty(self.result.shape, kind))


def numbers(kind: ElementType, shape: Sequence[int], seed: int) -> np.ndarray:
    """Bytes, among them the ends of their type."""
    info = np.iinfo(np.dtype(DatumType[kind.name.upper()].numpy))
    found = np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(info.dtype)
    flat = found.reshape(-1)
    flat[: flat.size // 3] = info.min
    flat[flat.size // 3 : flat.size // 2] = info.max
    return found


def exact(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left.astype("i8") @ right.astype("i8")).astype("i4")


SIZES = [(1, 1, 16, 1), (2, 3, 48, 17), (1, 32, 64, 32), (2, 33, 144, 40), (1, 5, 0, 8), (1, 7, 32, 0)]


@pytest.mark.parametrize("kinds", SIGNS, ids=SIGN_NAMES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("parts", [1, 2])
def test_bytes_of_any_signs_are_summed_exactly(kinds, sizes, parts) -> None:
    pairs, rows, depth, columns = sizes
    left, right = numbers(kinds[0], (pairs, rows, depth), 0), numbers(kinds[1], (pairs, depth, columns), 1)
    case = Case(left, right, I32, inner=True)
    assert factors_of(case.product) == Factors(*kinds)
    add_tiles(case.lowering, case.product, (SMALL, parts), ())
    np.testing.assert_array_equal(case.run(), exact(left, right))


def test_sums_of_the_smallest_bytes_wrap_around() -> None:
    """As integers of the core do: 131,072 products of 16,384 are 2 ** 31."""
    left, right = np.full((1, 1, 1 << 17), -128, "i1"), np.full((1, 1 << 17, 8), -128, "i1")
    case = Case(left, right, I32, inner=True)
    add_tiles(case.lowering, case.product, (SMALL, 1), ())
    assert (case.run() == -(1 << 31)).all()


def every_tile(left: ElementType, right: ElementType) -> list[AnyTile]:
    """All that the rule may choose."""
    sums = I32 if left.kind in "iu" else F32
    kinds = [np.dtype(DatumType[one.name.upper()].numpy) for one in (left, right)]
    case = Case(np.zeros((1, 16, 16), kinds[0]), np.zeros((1, 16, 16), kinds[1]), sums, inner=True, tf32=True)
    tiles, flat = tiles_for(case.product)
    return [*tiles, flat]


@pytest.mark.parametrize("tile", every_tile(U8, I8), ids=str)
def test_every_tile_for_bytes(tile) -> None:
    assert isinstance(tile, MmaTile) and tile.depth % 32 == 0  # noqa: PT018
    left, right = (
        numbers(U8, (1, tile.rows + 1, tile.depth + 16), 0),
        numbers(I8, (1, tile.depth + 16, tile.columns + 8), 1),
    )
    case = Case(left, right, I32, inner=True)
    add_tiles(case.lowering, case.product, (tile, 1), ())
    np.testing.assert_array_equal(case.run(), exact(left, right))


@pytest.mark.parametrize(("depth", "inner"), [(24, True), (32, False)])
def test_bytes_that_lie_otherwise_are_not_for_tensor_cores(depth, inner) -> None:
    case = Case(np.zeros((1, 8, depth), "i1"), np.zeros((1, depth, 16), "i1"), I32, inner=inner)
    assert factors_of(case.product) is None


@pytest.mark.parametrize("same", [False, True], ids=["each", "same"])
def test_weights_of_the_model_are_laid_along_the_depth_before_it_runs(same) -> None:
    left, right = numbers(U8, (3, 20, 32), 0), numbers(I8, (1 if same else 3, 32, 24), 1)
    case = Case(left, right, I32, inner=False, known=True)
    product = replace(case.product, right=case.product.right.stretched((3, 32, 24)))
    found = as_read(case.lowering, product)
    assert factors_of(product) is None and factors_of(found) is not None  # noqa: PT018
    add_product(case.lowering, product, ())
    assert [step.kernel.name for step in case.lowering.steps] == ["mma"]
    np.testing.assert_array_equal(case.run(), exact(left, np.broadcast_to(right, (3, 32, 24))))
    read = case.lowering.program().read_constants()
    assert sum(one.size for one in read.values()) == right.size


def cut(array: np.ndarray) -> np.ndarray:
    """Floats of 10 bits behind the first one, halves away from 0."""
    bits = array.view("u4").astype("u8") + 0x1000
    return (bits & 0xFFFFE000).astype("u4").view("f4")


@pytest.mark.parametrize(
    "sizes", [(1, 1, 4, 4), (2, 3, 20, 16), (1, 32, 32, 32), (2, 33, 36, 40), (1, 5, 0, 8)], ids=str
)
@pytest.mark.parametrize("inner", [False, True], ids=["columns", "depth"])
@pytest.mark.parametrize("parts", [1, 2])
def test_f32_is_rounded_to_10_bits_where_that_is_asked_for(sizes, inner, parts) -> None:
    pairs, rows, depth, columns = sizes
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((pairs, rows, depth), "f4"), rng.standard_normal((pairs, depth, columns), "f4")
    case = Case(left, right, F32, inner=inner, tf32=True)
    assert factors_of(case.product) == Factors(F32, F32)
    add_tiles(case.lowering, case.product, (MmaTile(32, 32, 16, 2, 1, 2), parts), ())
    wanted = cut(left).astype("f8") @ cut(right).astype("f8")
    size = np.abs(cut(left)).astype("f8") @ np.abs(cut(right)).astype("f8")
    assert (np.abs(case.run() - wanted) <= size * 2.0**-22 * max(depth, 1)).all()  # sums are cut, as devices do


@pytest.mark.parametrize("tile", every_tile(F32, F32), ids=str)
@pytest.mark.parametrize("inner", [False, True], ids=["columns", "depth"])
def test_every_tile_for_f32_that_is_cut(tile, inner) -> None:
    rng = np.random.default_rng(4)
    left = rng.integers(-8, 9, (1, tile.rows + 1, tile.depth + 4)).astype("f4")
    right = rng.integers(-8, 9, (1, tile.depth + 4, tile.columns + 8)).astype("f4")
    case = Case(left, right, F32, inner=inner, tf32=True)
    add_tiles(case.lowering, case.product, (tile, 1), ())
    np.testing.assert_array_equal(case.run(), left @ right)  # few bits: nothing is rounded


def test_infinities_and_what_is_no_number_stay_so() -> None:
    left, right = np.ones((1, 16, 16), "f4"), np.ones((1, 16, 8), "f4")
    left[0, 1, 3], left[0, 2, 5], left[0, 3, 1] = np.inf, np.nan, -np.inf
    case = Case(left, right, F32, inner=True, tf32=True)
    add_tiles(case.lowering, case.product, (MmaTile(32, 32, 16, 2, 1, 2), 1), ())
    np.testing.assert_array_equal(case.run(), left @ right)


def test_f32_keeps_its_digits_where_nobody_asks() -> None:
    case = Case(np.ones((1, 32, 16), "f4"), np.ones((1, 16, 32), "f4"), F32, inner=True)
    assert factors_of(case.product) is None


@pytest.mark.parametrize(
    ("left", "right", "sums", "there"),
    [
        (F16, F16, F32, True),
        (BF16, BF16, F32, True),
        (F16, BF16, F32, False),
        (F32, F32, F32, True),
        (F32, F32, F64, False),
        (I8, U8, I32, True),
        (I8, I32, I32, False),
        (F64, F64, F64, False),
    ],
    ids=str,
)
def test_which_types_tensor_cores_multiply(left, right, sums, there) -> None:
    assert (Factors.of(left, right, sums, tf32=True) is not None) == there
