"""Paddings, repetitions, triangles and complex numbers, bit by bit against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from on_virtual import model_of, run, same_bits, turned_first

from tract_core.data import Constant, DatumType
from tract_core.ops.fft import ComplexToInnerDim, InnerDimToComplex
from tract_core.ops.pad import Pad, PadConstant, PadEdge, PadReflect, PadWrap
from tract_core.ops.tile import Tile
from tract_core.ops.trilu import Trilu

RNG = np.random.default_rng(1)
PADS = [((0, 0), (2, 3)), ((1, 4), (0, 0)), ((7, 0), (5, 9))]


def numbers(shape: tuple[int, ...], kind: str) -> np.ndarray:
    return RNG.integers(-99, 99, shape).astype(DatumType[kind.upper()].numpy)


@pytest.mark.parametrize("pads", PADS, ids=str)
@pytest.mark.parametrize("shape", [(3, 64), (1, 1), (33, 5)], ids=str)
@pytest.mark.parametrize("mode", [PadEdge, PadReflect, PadWrap])
def test_what_is_inside_goes_on_outside(mode: type, shape: tuple[int, int], pads: tuple[tuple[int, int], ...]) -> None:
    x = numbers(shape, "f16")
    (found,) = run(model_of(Pad(pads, mode()), "A,B,f16"), x)
    assert same_bits(found, np.pad(x, pads, mode.numpy))


@pytest.mark.parametrize("pads", PADS, ids=str)
@pytest.mark.parametrize("kind", ["u8", "bf16", "f64"])
def test_a_number_stands_around(kind: str, pads: tuple[tuple[int, int], ...]) -> None:
    x, value = numbers((6, 48), kind), numbers((), kind)
    op = Pad(pads, PadConstant(Constant(value)))
    right = np.full([size + sum(pair) for size, pair in zip(x.shape, pads, strict=True)], value, x.dtype)
    right[pads[0][0] : pads[0][0] + 6, pads[1][0] : pads[1][0] + 48] = x
    assert same_bits(run(model_of(op, f"6,48,{kind}"), x)[0], right)


def test_axes_stay_in_their_order_in_memory() -> None:
    x, pads = numbers((8, 5, 6), "f32"), ((1, 1), (0, 2), (0, 0))
    (found,) = run(turned_first(Pad(pads, PadEdge()), "8,5,6,f32"), x)
    assert same_bits(found, np.pad(np.moveaxis(x, 0, 2), pads, "edge"))


@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 1, 3), (0, 2, 2), (3, 4, 5)], ids=str)
def test_tensors_are_repeated(counts: tuple[int, ...]) -> None:
    x = numbers((3, 1, 5), "i8")
    assert same_bits(run(model_of(Tile(counts), "A,1,5,i8"), x)[0], np.tile(x, counts))


@pytest.mark.parametrize("diagonal", [-70, -2, 0, 1, 90])
@pytest.mark.parametrize("upper", [True, False])
def test_triangles(upper: bool, diagonal: int) -> None:
    x = numbers((3, 40, 37), "f32")
    right = (np.triu if upper else np.tril)(x, diagonal)
    assert same_bits(run(model_of(Trilu(upper), "3,A,B,f32", "i64"), x, np.array(diagonal))[0], right)


def test_pairs_are_complex_numbers_and_back() -> None:
    x = RNG.standard_normal((4, 9, 2)).astype("f4")
    (found,) = run(model_of(InnerDimToComplex(), "4,9,2,f32"), x)
    assert same_bits(found, x.view("c8")[..., 0])
    assert same_bits(run(model_of(ComplexToInnerDim(), "4,9,complex_f32"), found)[0], x)
    apart = np.ascontiguousarray(np.moveaxis(x, 2, 0))
    (found,) = run(turned_first(InnerDimToComplex(), "2,4,9,f32"), apart)
    assert same_bits(found, x.view("c8")[..., 0])
