"""What is said of constants, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tract_view.constants import BINS, SAMPLE, ConstantTable, summary_of

from tract_core.data import Constant, SymbolicArray
from tract_core.dims import symbol


def of(values: Any, kind: Any = np.float32) -> Any:
    return summary_of(Constant(np.asarray(values, kind)))


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16, np.int8, np.uint64])
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_figures(kind: Any, size: int) -> None:
    array = np.random.default_rng(size).uniform(0, 100, size).astype(kind)
    wide = array.astype(np.float64)
    found = summary_of(Constant(array))
    assert (found.seen, found.bytes, found.shape) == (size, array.nbytes, (size,))
    assert (found.least, found.most) == (wide.min(), wide.max())
    assert found.mean == pytest.approx(wide.mean(), rel=1e-12)
    assert found.deviation == pytest.approx(wide.std(), rel=1e-9, abs=1e-12)
    wanted = np.histogram(wide, BINS)[0].tolist() if wide.min() < wide.max() else []
    assert sum(abs(a - b) for a, b in zip(found.bars, wanted, strict=True)) <= 2  # on a border, either side
    assert sum(found.bars) == sum(wanted)


def test_what_is_not_a_number_is_counted_apart() -> None:
    found = of([[1.0, np.nan, np.inf], [-np.inf, 0.0, -0.0]])
    assert (found.nans, found.infinities, found.zeros) == (1, 2, 2)
    assert (found.least, found.most, found.mean) == (0.0, 1.0, pytest.approx(1 / 3))
    assert sum(found.bars) == 3


@pytest.mark.parametrize("values", [[], [np.nan, np.inf]])
def test_nothing_finite(values: list[float]) -> None:
    found = of(values)
    assert (found.least, found.most, found.mean, found.bars) == (None, None, None, ())
    assert found.seen == len(values)


def test_a_single_number() -> None:
    found = of(3.5)
    assert (found.shape, found.least, found.mean, found.deviation, found.bars, found.first) == (
        (),
        3.5,
        3.5,
        0,
        (),
        ("3.5",),
    )


def test_the_largest_numbers_do_not_overflow() -> None:
    most = np.finfo(np.float64).max
    found = of([most, -most, most], np.float64)
    assert found.mean == pytest.approx(most / 3)
    assert np.isfinite(found.deviation)
    assert (found.bars[0], found.bars[-1]) == (1, 2)


def test_of_a_large_constant_a_sample_is_looked_at() -> None:
    """This one has a million million elements, all of them the same four bytes."""
    huge = np.broadcast_to(np.float32(2), (1_000_000, 1_000_000))
    found = summary_of(Constant(huge))
    assert found.seen == SAMPLE
    assert (found.least, found.mean, found.bytes) == (2, 2, 4 * 10**12)


def test_a_sample_is_from_all_over() -> None:
    found = of(np.arange(10 * SAMPLE))
    assert (found.least, found.most) == (0, 10 * SAMPLE - 1)
    assert found.mean == pytest.approx(5 * SAMPLE, rel=0.01)


def test_others_than_numbers() -> None:
    assert of([True, False, True], bool).zeros == 1
    assert of(["a", "\x1b[31m"], object).first == ("a", r"\u001b[31m")
    sizes = SymbolicArray.of((symbol("B"), 3))
    found = summary_of(sizes)
    assert (found.kind, found.first, found.bars) == ("sizes", ("B", "3"), ())
    assert summary_of(object()).shape == ()


def test_a_constant_is_summed_up_once() -> None:
    table, one, other = ConstantTable(), Constant(np.zeros(3)), Constant(np.zeros(3))
    assert [table.number(value) for value in (one, other, one)] == [0, 1, 0]
    assert len(table.summaries) == 2
