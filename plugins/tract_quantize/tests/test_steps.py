"""From ranges to bytes, beside plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from tract_quantize.ranges import Range
from tract_quantize.steps import Steps, by_channel, in_blocks, least_scale, rounded_bias

from tract_core.data import DatumType
from tract_core.ops.quantize import QuantizeLinear, quantize


class TestSteps:
    @pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.0, 0.0), (-0.3, 6.2), (2.0, 3.0), (-5.0, -4.0), (-1e-20, 1e20)])
    def test_they_cover_the_range_and_hold_zero(self, ends: tuple[float, float]) -> None:
        steps = Steps.of(Range(*ends))
        assert steps is not None
        low, high = (0 - steps.zero) * steps.scale, (255 - steps.zero) * steps.scale
        assert low <= min(ends[0], 0) + 0.51 * steps.scale
        assert high >= max(ends[1], 0) - 0.51 * steps.scale
        assert 0 <= steps.zero <= 255

    def test_what_is_never_below_zero_has_all_bytes_above(self) -> None:
        assert Steps.of(Range(0.5, 2.55)) == Steps(float(np.float32(0.01)), 0)

    @pytest.mark.parametrize("ends", [(0.0, 0.0), (0.0, 1e-45), (-3e38, 3e38)])
    def test_there_are_none_for_zeros_and_for_what_f32_does_not_hold(self, ends: tuple[float, float]) -> None:
        found = Steps.of(Range(*ends))
        assert (found is None) == (ends[1] < 1)

    def test_bytes_are_those_of_the_operator(self) -> None:
        steps = Steps.of(Range(-1.0, 1.0))
        assert steps is not None
        op, numbers = QuantizeLinear(DatumType.U8), np.float32([-9, -1, -0.5, 0, 0.003, 0.9, 1, 9])
        wanted = quantize(op, numbers, np.array(steps.scale, np.float32), np.array(steps.zero, np.uint8))
        assert [steps.byte_of(float(one)) for one in numbers] == wanted.tolist()


class TestWeights:
    @pytest.mark.parametrize("axis", [0, 1, 2])
    @pytest.mark.parametrize("bits", [7, 8])
    def test_each_channel_has_its_own_scale(self, axis: int, bits: int) -> None:
        weights = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
        found = by_channel(weights, axis, bits)
        most = 2 ** (bits - 1) - 1
        for place in range(weights.shape[axis]):
            part, integers = weights.take(place, axis), found.integers.take(place, axis).astype(np.float64)
            assert found.scale[place] == np.float32(np.abs(part).max().astype(np.float64) / most)
            np.testing.assert_allclose(integers * found.scale[place], part, atol=0.5001 * found.scale[place])
            assert np.abs(integers).max() == most

    def test_a_channel_of_zeros_keeps_its_bias(self) -> None:
        weights = np.array([[0.0, 0.0], [1.0, -1.0]], np.float32)
        bias, scale = np.array([0.7, 0.7], np.float32), 0.02
        found = by_channel(weights, 0, 8, least_scale(bias, scale))
        steps = found.scale.astype(np.float64) * scale
        assert not found.integers[0].any()
        assert (np.abs(bias / steps) < 2**31).all()
        np.testing.assert_allclose(rounded_bias(bias, steps), bias, rtol=1e-3)

    def test_a_bias_far_larger_than_weights_fits_32_bits(self) -> None:
        weights, bias = np.full((1, 4), 1e-12, np.float32), np.array([100.0], np.float32)
        found = by_channel(weights, 0, 8, least_scale(bias, 1.0))
        assert abs(100 / float(found.scale[0])) <= 2**30

    @pytest.mark.parametrize("bits", [4, 8])
    @pytest.mark.parametrize(("size", "block"), [(64, 32), (33, 16), (5, 16), (1, 16)])
    @pytest.mark.parametrize("axis", [0, 1])
    def test_blocks_share_a_scale(self, bits: int, size: int, block: int, axis: int) -> None:
        matrix = np.random.default_rng(0).standard_normal((3, size)).astype(np.float32)
        matrix = matrix if axis else matrix.T
        found = in_blocks(matrix, axis, bits, block)
        scale = np.repeat(found.scale, block, axis=axis).take(range(size), axis)
        integers = found.integers.astype(np.float64)
        assert found.scale.shape[axis] == -(-size // block)
        np.testing.assert_allclose(integers * scale, matrix, atol=1.0001 * np.abs(scale).max())
        assert integers.min() >= -(2 ** (bits - 1))
        assert integers.max() <= 2 ** (bits - 1) - 1

    def test_blocks_of_zeros(self) -> None:
        found = in_blocks(np.zeros((2, 32), np.float32), 1, 4, 16)
        assert not found.scale.any()
        assert not found.integers.astype(np.int8).any()
