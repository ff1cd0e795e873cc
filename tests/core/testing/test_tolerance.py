"""How two results differ, in one sentence."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.data.boxes import boxed
from tract_core.testing.tolerance import APPROX_CLASSES, EXACT, Tolerance, approx_class, distances, mismatch

NEAR = Tolerance(1e-4, 1e-4)


def row(**values: object) -> np.ndarray:
    return boxed([{key: np.array(value, np.float32) for key, value in values.items()}])


def test_maps_that_agree() -> None:
    for same in (row(a=1, b=2), row(b=2, a=1), boxed([{"a": 1.00001, "b": np.float32(2)}])):
        assert mismatch(row(a=1, b=2), same, NEAR) is None


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (row(a=1, b=3), "item 0: entry 'b': 1 of 1 elements differ; the worst, at []: 2.0, wanted 3.0"),
        (boxed([{"a": 1.0, "b": 2.1}]), "item 0: entry 'b': 1 of 1 elements differ; the worst, at []: 2.0, wanted 2.1"),
        (row(a=1), "item 0: keys are ['a', 'b'], wanted ['a']"),
        (boxed([]), "1 items, wanted 0"),
        (boxed([None]), "item 0: holds a dict, wanted nothing"),
        (boxed({"a": 1.0}), "holds a list, wanted a dict"),
    ],
)
def test_maps_that_differ(wanted: np.ndarray, problem: str) -> None:
    assert mismatch(row(a=1, b=2), wanted, NEAR) == problem


def test_texts_in_maps() -> None:
    ours = boxed({1: np.array("one", object)})
    assert mismatch(ours, boxed({1: "one"}), EXACT) is None
    assert mismatch(ours, boxed({1: "two"}), EXACT) == "entry 1: 1 of 1 elements differ; at []: 'one', wanted 'two'"


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [
        (np.float32, "0.1, wanted 0.7"),
        (np.float64, "0.1, wanted 0.7"),
        (ml_dtypes.bfloat16, "0.100098, wanted 0.699219"),
    ],
)
def test_numbers_have_the_digits_of_their_type(dtype: type, shown: str) -> None:
    problem = mismatch(np.array([0.5, 0.1], dtype), np.array([0.5, 0.7], dtype), NEAR)
    assert problem == f"1 of 2 elements differ; the worst, at [1]: {shown}"


@pytest.mark.parametrize(
    ("found", "wanted", "figures"),
    [
        (np.array([1.0, 2, 4]), np.array([1.0, 2.5, 3]), (1.0, 0.5)),
        (np.array([1, 2], np.float32), np.array([1, 2], np.float32), (0.0, 0.0)),
        (np.array([np.nan, np.inf, -np.inf, -0.0]), np.array([np.nan, np.inf, -np.inf, 0.0]), (0.0, 0.0)),
        (np.array([np.nan, 1.0]), np.array([1.0, 1.0]), (np.inf, np.inf)),
        (np.array([np.inf]), np.array([-np.inf]), (np.inf, np.inf)),
        (np.array([2**53 + 1]), np.array([2**53]), (1.0, 1.0)),
        (np.array([-(2**63)]), np.array([2**63 - 1]), (2.0**64 - 1, 2.0**64 - 1)),
        (np.array([0, 255], np.uint8), np.array([255, 0], np.uint8), (255.0, 255.0)),
        (np.array([True, False]), np.array([True, True]), (1.0, 0.5)),
        (np.array([1 + 1j]), np.array([1 - 1j]), (2.0, 2.0)),
        (np.zeros((0, 3)), np.zeros((0, 3)), (0.0, 0.0)),
        (np.array(1.5), np.array(1.0), (0.5, 0.5)),
        (np.zeros(2), np.zeros(3), None),
        (np.array(["a"], object), np.array(["a"], object), None),
    ],
)
def test_distances(found: np.ndarray, wanted: np.ndarray, figures: tuple[float, float] | None) -> None:
    assert distances(found, wanted) == figures


HALVES = {DatumType.F16: np.float16, DatumType.BF16: ml_dtypes.bfloat16}


@pytest.mark.parametrize("kind", HALVES, ids=str)
@pytest.mark.parametrize("name", [one for one in APPROX_CLASSES if one != "exact"])
def test_one_step_of_a_half_is_tolerated_by_all_but_exact(kind: DatumType, name: str) -> None:
    bits = np.linspace(0, 2**14, 1001).astype(np.uint16)
    numbers = bits.view(HALVES[kind])
    assert mismatch((bits + 1).view(HALVES[kind]), numbers, approx_class(name, kind)) is None
    assert mismatch((bits + 1).view(HALVES[kind]), numbers, approx_class("exact", kind)) is not None


@pytest.mark.parametrize("kind", [DatumType.F16, DatumType.BF16, DatumType.F32], ids=str)
def test_a_class_allows_what_the_one_before_allows(kind: DatumType) -> None:
    allowed = [approx_class(name, kind) for name in APPROX_CLASSES]
    for tight, loose in itertools.pairwise(allowed):
        assert tight.absolute <= loose.absolute
        assert tight.relative <= loose.relative
        assert tight.outliers <= loose.outliers
