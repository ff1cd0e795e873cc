"""What a run of so many rows is expected to take: a line with nothing below zero, that follows what it sees."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tract_inferers.runtime.timing import Fit, Timing


def timed(*runs: tuple[int, float]) -> Timing:
    """What is known after these runs of rows and seconds, and one before them, the warm-up."""
    timing = Timing()
    for rows, seconds in [(1, 1e9), *runs]:
        timing.add(rows, seconds)
    return timing


def weighted_line(runs: list[tuple[int, float]]) -> tuple[float, float]:
    """The best line with nothing below zero, found among those of NumPy, through the origin, and level."""
    rows, seconds = np.array(runs, np.float64).T
    weights = 0.9 ** np.arange(len(runs))[::-1]

    def error(fixed: float, per_row: float) -> float:
        return float((weights * (fixed + per_row * rows - seconds) ** 2).sum())

    per_row, fixed = np.polyfit(rows, seconds, 1, w=np.sqrt(weights))
    origin = (weights * rows * seconds).sum() / (weights * rows * rows).sum()
    candidates = [(0.0, max(origin, 0.0)), (max(np.average(seconds, weights=weights), 0.0), 0.0)]
    if fixed >= 0 and per_row >= 0:
        candidates.append((fixed, per_row))
    return min(candidates, key=lambda line: error(*line))


def test_nothing_measured_is_expected_to_take_no_time() -> None:
    assert Timing().estimate(100) == 0
    assert Timing().quantiles(0.5, 0.99) == [0, 0]
    assert Timing().line() == (0, 0)


def test_the_first_run_is_warm_up() -> None:
    assert timed().estimate(1) == 0
    assert timed().quantiles(0.5) == [0]
    assert timed((2, 1.0)).estimate(2) == pytest.approx(1)
    assert timed((2, 1.0)).quantiles(0.5) == [1]


@pytest.mark.parametrize("repeats", [1, 2, 1000])
def test_one_size_is_scaled_linearly(repeats: int) -> None:
    timing = timed(*[(8, 0.004)] * repeats)
    assert timing.line() == pytest.approx((0, 0.0005))
    assert [timing.estimate(rows) for rows in (1, 8, 80)] == pytest.approx([0.0005, 0.004, 0.04])


@pytest.mark.parametrize(("fixed", "per_row"), [(0.01, 0.001), (0.0, 0.001), (0.01, 0.0), (1e-6, 1e-9)])
def test_a_fixed_cost_and_one_per_row_are_told_apart(fixed: float, per_row: float) -> None:
    sizes = random.Random(0).choices(range(1, 101), k=40)
    timing = timed(*[(rows, fixed + per_row * rows) for rows in sizes])
    for rows in (1, 50, 1000):
        assert timing.estimate(rows) == pytest.approx(fixed + per_row * rows, rel=0.02)


@pytest.mark.parametrize("seed", range(200))
def test_the_line_is_that_of_weighted_least_squares(seed: int) -> None:
    draw = random.Random(seed)
    slope = draw.choice([-1, 0, 0.3, 1, 3])
    runs = [(rows := draw.randint(1, 64), max(0.0, 20 + slope * rows + draw.gauss(0, 5))) for _ in range(60)]
    fit = Fit()
    for rows, seconds in runs:
        fit.add(rows, seconds)
    assert (fit.fixed, fit.per_row) == pytest.approx(weighted_line(runs), rel=0.02, abs=0.02)


def test_neither_cost_is_below_zero() -> None:
    falling, steep = timed((1, 3.0), (10, 1.0), (20, 0.9)), timed((10, 1.0), (20, 3.0), (30, 6.0))
    assert falling.line()[1] == 0
    assert falling.line()[0] > 0
    assert steep.line()[0] == 0
    assert steep.line()[1] > 0


def test_a_run_of_no_time_is_no_trouble() -> None:
    timing = timed((1, 0.0), (5, 0.0), (5, 0.0))
    assert timing.estimate(100) == 0
    timing.add(5, 1.0)
    timing.add(5, 1.0)
    assert timing.estimate(5) == pytest.approx(1)


def test_a_change_is_followed() -> None:
    timing = timed(*[(10, 1.0)] * 100)
    for _ in range(30):
        timing.add(10, 2.0)
    assert timing.estimate(10) == pytest.approx(2, rel=0.05)
    for _ in range(60):
        timing.add(10, 0.01)
    assert timing.estimate(10) == pytest.approx(0.01, rel=0.5)


def test_a_spike_is_left_out_once_and_two_are_believed() -> None:
    timing = timed(*[(10, 1.0)] * 5)
    timing.add(10, 50.0)
    assert timing.estimate(10) == pytest.approx(1)
    timing.add(10, 1.0)
    timing.add(10, 50.0)
    assert timing.estimate(10) == pytest.approx(1), "not two in a row"
    timing.add(10, 50.0)
    assert timing.estimate(10) == pytest.approx(50)


def test_four_times_what_was_expected_is_no_spike_yet() -> None:
    timing = timed((10, 1.0))
    timing.add(10, 4.0)
    assert timing.estimate(10) > 2


def test_spikes_are_among_the_quantiles() -> None:
    assert timed((1, 1.0), (1, 50.0), (1, 1.0)).quantiles(0.5, 0.99) == [1, 50]


def test_quantiles_are_measured_times_of_the_last_512_runs() -> None:
    hundred = timed(*[(1, float(number)) for number in random.Random(0).sample(range(1, 101), 100)])
    assert hundred.quantiles(0.0, 0.5, 0.99, 1.0) == [1, 50, 99, 100]
    for _ in range(511):
        hundred.add(1, 7.0)
    assert hundred.quantiles(0.5, 1.0)[1] != 7
    hundred.add(1, 7.0)
    assert hundred.quantiles(0.0, 0.5, 0.99, 1.0) == [7, 7, 7, 7]


def test_another_model_is_timed_anew_while_the_old_estimate_serves() -> None:
    timing = timed(*[(10, 1.0)] * 5)
    timing.renew()
    assert timing.estimate(10) == pytest.approx(1)
    timing.add(10, 30.0)
    assert timing.estimate(10) == pytest.approx(1), "the warm-up"
    timing.add(10, 9.0)
    assert timing.estimate(10) == pytest.approx(9)
    assert timing.quantiles(0.0, 1.0) == [9, 9]
