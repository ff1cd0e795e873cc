"""Counts of what tensors hold, and the ranges that are made of them."""

from __future__ import annotations

import numpy as np
import pytest
from tract_quantize.calibration.histogram import BINS, Histogram
from tract_quantize.calibration.methods import METHODS, method_for
from tract_quantize.ranges import Calibration, Range

from tract_core.errors import InputError


def counted(*arrays: np.ndarray) -> Histogram:
    counts = Histogram()
    for array in arrays:
        counts.add(array.astype(np.float32))
    return counts


NORMAL = np.random.default_rng(0).standard_normal(200_000)


class TestCounts:
    def test_ends_and_counts_are_those_of_numpy(self) -> None:
        counts = counted(NORMAL[:1000], NORMAL[1000:])
        kept = NORMAL.astype(np.float32)
        assert (counts.low, counts.high) == (kept.min(), kept.max())
        assert counts.negative.sum() + counts.positive.sum() == len(kept)
        wanted, _ = np.histogram(kept[kept > 0], BINS, (0, counts.limit))
        np.testing.assert_array_equal(counts.positive, wanted)

    @pytest.mark.parametrize("first", [1e-30, 1e-3, 1.0, 255.0, 1e30])
    def test_what_is_larger_than_all_before_has_a_place_and_the_rest_keeps_its_own(self, first: float) -> None:
        counts = counted(np.array([first]), np.array([-3.5 * first]), np.array([first / 2]))
        centres = (np.arange(BINS) + 0.5) * counts.limit / BINS
        assert 3.5 * first <= counts.limit < 8 * first
        found = centres[np.flatnonzero(counts.positive)]
        np.testing.assert_allclose(found, np.float32([first / 2, first]), atol=counts.limit / BINS)

    def test_order_changes_nothing(self) -> None:
        parts = [NORMAL[:10], 100 * NORMAL[10:20], NORMAL[20:1000] / 100]
        one, other = counted(*parts), counted(*parts[::-1])
        assert one.limit == other.limit
        np.testing.assert_array_equal(one.negative, other.negative)

    def test_nothing_and_zeros(self) -> None:
        counts = counted(np.zeros(0), np.zeros((2, 3)))
        assert (counts.low, counts.high, counts.limit) == (0, 0, 0)


class TestMethods:
    def test_minmax_keeps_all(self) -> None:
        assert method_for("minmax", 0)(counted(NORMAL)) == (np.float32(NORMAL.min()), np.float32(NORMAL.max()))

    @pytest.mark.parametrize("percent", [90.0, 99.0, 99.99, 100.0])
    def test_percentile_is_numpys_within_a_bin(self, percent: float) -> None:
        counts = counted(NORMAL)
        low, high = method_for("percentile", percent)(counts)
        rest = (100 - percent) / 2
        wanted = np.percentile(NORMAL, [rest, 100 - rest])
        np.testing.assert_allclose([low, high], wanted, atol=2 * counts.limit / BINS)

    @pytest.mark.parametrize("method", ["entropy", "percentile"])
    def test_a_few_that_are_far_off_are_cut_off(self, method: str) -> None:
        far = np.concatenate([NORMAL, [60.0, -70.0]])
        low, high = method_for(method, 99.99)(counted(far))
        assert -30 < low < -2
        assert 2 < high < 30

    @pytest.mark.parametrize("method", METHODS)
    def test_an_even_spread_is_kept(self, method: str) -> None:
        even = np.linspace(0, 1, 100_001)
        low, high = method_for(method, 99.999)(counted(even))
        assert low == 0
        assert high > 0.98

    def test_mse_is_where_rounding_and_cutting_off_lose_least(self) -> None:
        values = np.random.default_rng(1).standard_t(3, 100_000)
        low, high = method_for("mse", 0)(counted(values))

        def lost(part: float) -> float:
            ends = values.min() * part, values.max() * part
            step = (ends[1] - ends[0]) / 255
            return float(((np.rint(np.clip(values, *ends) / step) * step - values) ** 2).sum())

        parts = np.linspace(0.2, 1, 161)
        best = min(map(lost, parts))
        assert lost(high / values.max()) <= 1.05 * best
        assert low / values.min() == pytest.approx(high / values.max(), rel=1e-5)

    def test_entropy_keeps_what_occurs_where_blanks_are_the_same_number_often(self) -> None:
        blank = np.full(150_000, 0.3017)
        ink = np.random.default_rng(2).gamma(2.0, 1.0, 50_000)
        _, high = method_for("entropy", 0)(counted(np.concatenate([blank, ink])))
        assert high > 0.5 * ink.max()

    def test_names_that_are_none_are_told(self) -> None:
        with pytest.raises(InputError, match="no method of calibration 'minmix'") as error:
            method_for("minmix", 0)
        assert "did you mean 'minmax'?" in str(error.value)
        with pytest.raises(InputError, match="a percentile of 20 makes no sense"):
            method_for("percentile", 20)


class TestFiles:
    def test_ranges_come_back(self, tmp_path) -> None:
        given = Calibration({"a/b\n\x1b[0m": Range(-0.1, 1e-30), "c": Range(0.0, 0.0)}, "percentile 99.9", 12)
        given.save(tmp_path / "ranges.json")
        assert Calibration.load(tmp_path / "ranges.json") == given

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"\xff\xfe", "it is no JSON"),
            (b"[" * 100_000, "it is no JSON"),
            (b"[1, 2]", "it holds no ranges"),
            (b'{"format": "tract-quantize ranges", "ranges": 3}', "it holds no ranges"),
            (b'{"format": "tract-quantize ranges", "ranges": {"x": [1]}}', "a range is two numbers"),
            (b'{"format": "tract-quantize ranges", "ranges": {"x": [2, 1]}}', "a range is two numbers"),
            (b'{"format": "tract-quantize ranges", "ranges": {"x": [0, Infinity]}}', "a range is two numbers"),
            (b'{"format": "tract-quantize ranges", "ranges": {"x": [true, false]}}', "a range is two numbers"),
        ],
        ids=["bytes", "deep", "list", "number", "one", "turned", "infinite", "booleans"],
    )
    def test_other_files_are_refused(self, content: bytes, message: str, tmp_path) -> None:
        path = tmp_path / "ranges.json"
        path.write_bytes(content)
        with pytest.raises(InputError, match=message) as error:
            Calibration.load(path)
        assert str(path) in str(error.value)

    def test_files_that_are_not_there(self, tmp_path) -> None:
        with pytest.raises(InputError, match="it cannot be read"):
            Calibration.load(tmp_path)
