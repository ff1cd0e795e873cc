"""Numbers in blocks, unpacked by every kernel that reads them so, on the emulator, against what operators mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from executed import Execution, kernels_of, program_of, run, text
from in_blocks import FORMS, RNG, InBlocks, linear, product, records
from tract_cuda.kernels.blocks import BlockForm
from tract_cuda.kernels.products.mma import MmaTile
from tract_cuda.kernels.products.tile import Tile
from tract_cuda.products import choose
from tract_cuda.products.product import BLOCK_TILES, FLAT, FLAT_MMA, MMA_TILES
from tract_llvm.language.types import F16, F32, U2, U4, U8, U16, U32

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul
from tract_core.ops.gather import Gather
from tract_core.ops.quantize import dequantize as dequantized


def names(model: TypedModel) -> list[str]:
    return [kernel.name for kernel in kernels_of(model)]


def floats(shape: Sequence[int], dtype: Any = "f4") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def close(found: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Within what sums of f32 are off in whatever order, a few units of the sum of magnitudes, and rounded once."""
    exact, size = left.astype("f8") @ right.astype("f8"), np.abs(left.astype("f8")) @ np.abs(right.astype("f8"))
    assert found.shape == exact.shape
    rounds, least = {"float32": (0, 1e-40), "float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 1e-40)}[
        found.dtype.name
    ]
    assert (np.abs(found.astype("f8") - exact) <= 2.0**-20 * size + rounds * np.abs(exact) + least).all()


def is_half(weights: InBlocks) -> bool:
    return weights.op.to is not DatumType.F32


@pytest.mark.parametrize("form", FORMS)
def test_the_numbers_are_those_that_the_operator_means(form: str) -> None:
    """Each row picks one number of each column, so that no sum is rounded: bit by bit, but for the sign of zeros."""
    weights = FORMS[form](5, 128)
    picks = np.zeros((128, 128), weights.numbers.dtype)
    np.fill_diagonal(picks, 1)
    model = product(weights, picks)
    assert names(model) == (["mma_blocks" if is_half(weights) else "tile"])
    (found,) = run(model, picks)
    np.testing.assert_array_equal(found.astype("f4"), weights.numbers.T.astype("f4"))
    few = product(weights, picks[:4])
    assert names(few) == ["vector_blocks"]
    for first in (0, 60, 124):
        (found,) = run(few, picks[first : first + 4])
        np.testing.assert_array_equal(found.astype("f4"), weights.numbers.T[first : first + 4].astype("f4"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [1, 3, 37])
def test_products(form: str, rows: int) -> None:
    weights = FORMS[form](35, 256)
    x = floats((rows, 256), weights.numbers.dtype)
    model = product(weights, x)
    many = ["mma_blocks" if is_half(weights) else "tile", "merge"]
    assert names(model) == (["vector_blocks"] if rows < 5 else many)
    (found,) = run(model, x)
    close(found, x, weights.numbers.T)


@pytest.mark.parametrize("depth", [1, 2, 31, 33, 72, 100])
@pytest.mark.parametrize("rows", [2, 9])
@pytest.mark.parametrize("kind", ["u4", "i8", "i2"])
def test_last_blocks_that_are_short(depth: int, rows: int, kind: str) -> None:
    """What fills words up is multiplied with nothing: infinity, of a scale or of the left factor, does not spread."""
    weights, x = linear(kind, (6, depth), 16), floats((rows, depth))
    model = product(weights, x)
    (found,) = run(model, x)
    close(found, x, weights.numbers.T)
    if depth > 1:
        assert names(model) == ["vector_blocks" if rows < 5 else "tile"]
        x[0, -1], weights.arrays[1][2, -1] = np.inf, np.inf
        with np.errstate(all="ignore"):
            wanted = x.astype("f8") @ dequantized(weights.op, *weights.arrays).T.astype("f8")
        (found,) = run(product(weights, x), x)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))


@pytest.mark.parametrize("rows", [2, 20])
def test_scales_without_bounds_stay_in_their_columns(rows: int) -> None:
    weights = linear("u4", (7, 64), 32)
    weights.arrays[1][1, 0], weights.arrays[1][4, 1] = np.inf, np.nan
    x = floats((rows, 64))
    with np.errstate(all="ignore"):
        wanted = x.astype("f8") @ dequantized(weights.op, *weights.arrays).T.astype("f8")
    (found,) = run(product(weights, x), x)
    for what in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(what(found), what(wanted))


@pytest.mark.parametrize(("columns", "depth"), [(0, 32), (3, 0), (1, 1)])
@pytest.mark.parametrize("rows", [1, 9])
def test_nothing_and_one_number(columns: int, depth: int, rows: int) -> None:
    weights, x = linear("u4", (columns, depth), 16), floats((rows, depth))
    (found,) = run(product(weights, x), x)
    close(found, x, weights.numbers.T)


@pytest.mark.parametrize("columns", [0, 1, 2, 129])
@pytest.mark.parametrize("rows", [0, 1, 4, 5])
def test_any_numbers_of_rows_and_columns(columns: int, rows: int) -> None:
    weights, x = records("q4_0", (columns, 96)), floats((rows, 96))
    (found,) = run(product(weights, x), x)
    close(found, x, weights.numbers.T)


SMALL_MMA = MmaTile(32, 32, 32, 2, 1, 2)
HALVES = {
    "q4_0": lambda columns: records("q4_0", (columns, 64), "f16"),
    "q8_0": lambda columns: records("q8_0", (columns, 96), "f16"),
    "q8_1": lambda columns: records("q8_1", (columns, 96), "f16"),
    "bf16": lambda columns: linear("u4", (columns, 64), 16, to="bf16"),
    "in the middle of a block": lambda columns: linear("u4", (columns, 72), 16, to="f16"),
    "in the middle of a word": lambda columns: linear("i2", (columns, 88), 16, to="f16"),
    "bytes": lambda columns: linear("i8", (columns, 40), 16, to="f16"),
}
"""Weights for tensor cores, by what they are or where their depth ends."""


@pytest.mark.parametrize("form", HALVES)
@pytest.mark.parametrize("parts", [1, 2])
def test_halves_on_tensor_cores(form: str, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _on_tensor_cores(SMALL_MMA, HALVES[form](35), parts, monkeypatch)


@pytest.mark.parametrize("tile", [*MMA_TILES, FLAT_MMA], ids=str)
def test_every_tile_for_tensor_cores(tile: MmaTile, monkeypatch: pytest.MonkeyPatch) -> None:
    _on_tensor_cores(tile, HALVES["q4_0"](tile.columns // 2 + 3), 1, monkeypatch)


def _on_tensor_cores(tile: MmaTile, weights: InBlocks, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "by_rule", lambda *_: (tile, parts))
    x = floats((tile.rows + 1, weights.numbers.shape[1]), weights.numbers.dtype)
    model = product(weights, x)
    assert names(model) == ["mma_blocks", "merge"][:parts]
    (found,) = run(model, x)
    close(found, x, weights.numbers.T)


def test_halves_that_lie_in_no_pieces_are_summed_without_tensor_cores() -> None:
    weights = linear("u4", (6, 36), 16, to="f16")
    x = floats((20, 36), "f2")
    model = product(weights, x)
    assert names(model) == ["tile"]
    (found,) = run(model, x)
    close(found, x, weights.numbers.T)


SHAPES = [
    ("mk,nk->nm", (3, 64), (40, 64), False),
    ("nk,mk->mn", (3, 64), (40, 64), True),
    ("nk,mk->nm", (9, 64), (5, 64), True),
    ("gmk,gnk->gmn", (3, 7, 64), (3, 5, 64), False),
    ("gmk,gnk->mgn", (2, 2, 64), (2, 5, 64), False),
    ("bmk,nk->bmn", (2, 5, 64), (6, 64), False),
    ("mhd,nhd->mn", (6, 2, 32), (5, 2, 32), False),
    ("mdh,nhd->mn", (2, 32, 2), (5, 2, 32), False),
    ("mk,ghk->mgh", (6, 64), (2, 3, 64), False),
]


@pytest.mark.parametrize(("expression", "left", "right", "first"), SHAPES, ids=str)
@pytest.mark.parametrize("archive", [True, False], ids=["record", "linear"])
def test_axes_in_any_order(expression: str, left: tuple, right: tuple, first: bool, archive: bool) -> None:
    weights = records("q8_1", right) if archive else linear("u4", right, 16)
    x = floats(left)
    model = product(weights, x, expression, first=first)
    assert "unpack" not in names(model)
    (found,) = run(model, x)
    factors = [x.astype("f8"), weights.numbers.astype("f8")]
    wanted = np.einsum(expression, *(factors[::-1] if first else factors))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2.0**-20 * np.abs(weights.numbers).max() * 64 * 4)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [64, 40])
def test_blocks_along_either_axis(axis: int, size: int) -> None:
    weights, x = linear("i4", (size, 6) if axis == 0 else (6, size), 32, axis), floats((8, size))
    model = product(weights, x, "mk,kn->mn" if axis == 0 else "mk,nk->mn")
    assert names(model) == ["tile"]
    (found,) = run(model, x)
    close(found, x, weights.numbers if axis == 0 else weights.numbers.T)


def test_blocks_along_an_axis_that_stays_are_unpacked_to_memory() -> None:
    weights, x = linear("u4", (40, 64), 32), floats((8, 40))
    model = product(weights, x, "mk,kn->mn")
    (found,) = run(model, x)
    assert "tile" in names(model)
    close(found, x, weights.numbers)


@pytest.mark.parametrize("tile", [*BLOCK_TILES, FLAT], ids=str)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("form", ["q4_0", "u4", "ragged"])
def test_every_tile(tile: Tile, parts: int, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "by_rule", lambda *_: (tile, parts))
    rows, columns, depth = tile.rows + 1, tile.columns + 1, 90 if form == "ragged" else 96
    weights = linear("u4", (columns, depth), 16) if form == "ragged" else FORMS[form](columns, depth)
    x = floats((rows, depth))
    model = product(weights, x)
    assert names(model) == ["tile"] if parts == 1 else ["tile", "merge"]
    (found,) = run(model, x)
    close(found, x, weights.numbers.T)


@pytest.mark.parametrize("multiprocessors", [1, 4, 132])
def test_warps_with_several_columns(multiprocessors: int) -> None:
    weights, x = records("q4_0", (67, 64)), floats((2, 64))
    model = product(weights, x)
    (plan,) = kernels_of(model, multiprocessors)
    assert plan.across == {1: 4, 4: 2, 132: 1}[multiprocessors]
    found = Execution(program_of(model, multiprocessors), {}).run(model, [x])[0]
    close(found, x, weights.numbers.T)


def test_positions_beyond_32_bits() -> None:
    for rows in (2, 6):
        weights, x = linear("u4", (5, 48), 16), floats((rows, 48))
        (found,) = run(product(weights, x), x, wide=True)
        close(found, x, weights.numbers.T)


def read_by(weights: InBlocks, op: TypedOp, *facts: str) -> TypedModel:
    """A model of an operator that reads numbers in blocks first."""
    model = TypedModel()
    w = weights.wire(model)
    others = [model.add_source(f"x{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("y", op, [w, *others]))
    return model


@pytest.mark.parametrize("form", FORMS)
def test_all_numbers_of_blocks(form: str) -> None:
    weights = FORMS[form](7, 128)
    model = read_by(weights, Mul(), f"7,128,{weights.op.to.short}")
    (found,) = run(model, np.ones((7, 128), weights.numbers.dtype))
    np.testing.assert_array_equal(found.astype("f4"), weights.numbers.astype("f4"))
    assert weights.op.name == "DequantizeLinear" or "unpack" in names(model)


@pytest.mark.parametrize(
    ("shape", "axis", "places"), [((9, 64), 0, (2, 3)), ((3, 5, 40), 1, (4,)), ((3, 5, 40), 0, ())]
)
@pytest.mark.parametrize("same", [True, False])
def test_slices_are_unpacked_alone(shape: tuple, axis: int, places: tuple, same: bool) -> None:
    weights = linear("i4", shape, 16, same=same, to="f16")
    numbers = RNG.integers(-shape[axis], shape[axis], places)
    model = read_by(weights, Gather(axis), text(places, "i64"))
    assert names(model) == ["unpack"]
    (found,) = run(model, numbers)
    np.testing.assert_array_equal(found, np.take(weights.numbers, numbers % shape[axis], axis))


def test_slices_along_an_axis_behind_the_blocks() -> None:
    weights = linear("u4", (40, 6), 16, 0)
    model = read_by(weights, Gather(1), "2,2,i64")
    assert names(model) == ["unpack"]
    (found,) = run(model, np.array([[5, 0], [-1, 3]]))
    np.testing.assert_array_equal(found, weights.numbers[:, [[5, 0], [5, 3]]])


def test_positions_along_the_blocks_read_numbers() -> None:
    weights = records("q8_1", (4, 64))
    model = read_by(weights, Gather(1), "3,i64")
    assert names(model) == ["unpack", "gather"]
    (found,) = run(model, np.array([63, 0, -2]))
    np.testing.assert_array_equal(found, weights.numbers[:, [63, 0, 62]])


def test_codes_are_where_the_form_says() -> None:
    apart = BlockForm(32, U4, True, U16, F16, 8, F32)
    assert (apart.each, apart.words, apart.units, apart.span, apart.run) == (8, 4, 2, 32, 4)
    assert apart.places == (0, 16, 1, 17, 2, 18, 3, 19)
    beside = BlockForm(64, U2, False, U32, F32, U8, F32)
    assert (beside.each, beside.words, beside.units, beside.span, beside.run) == (16, 4, 1, 16, 16)
    assert beside.places == tuple(range(16))
