"""The standard's fragments that consist of windows, against NumPy in 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from statements import run

RANDOM = np.random.default_rng(7)
X = RANDOM.uniform(-2, 2, (2, 4, 5, 6)).astype(np.float32)
PLANES = RANDOM.uniform(-2, 2, (4, 1, 3, 2)).astype(np.float32)
POINTS = RANDOM.uniform(-2, 2, (6, 4, 1, 1)).astype(np.float32)
BACK = RANDOM.uniform(-2, 2, (4, 6, 1, 1)).astype(np.float32)
OVER = RANDOM.uniform(-2, 2, (6, 1, 3, 2)).astype(np.float32)
BIAS = RANDOM.uniform(-2, 2, (1, 6)).astype(np.float32)
ROWS = RANDOM.uniform(-2, 2, (3, 4)).astype(np.float32)
FILTER = RANDOM.uniform(-2, 2, (6, 4)).astype(np.float32)


def mean_around(x, size):
    """The mean over a window around each element, with zeros beyond the border."""
    padded = np.pad(x, [((count - 1) // 2, count - 1 - (count - 1) // 2) for count in size])
    windows = np.lib.stride_tricks.sliding_window_view(padded, size)
    return windows.mean(axis=tuple(range(x.ndim, 2 * x.ndim)))


def planes_of(x, kernel, before, after):
    """Each channel convolved with a kernel of its own."""
    padded = np.pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,cij->nchw", windows, kernel[:, 0])


def planes_back(x, kernel):
    """Each channel deconvolved with a kernel of its own, without padding, by steps of 2 and 1."""
    rows, columns = kernel.shape[2:]
    result = np.zeros((*x.shape[:2], (x.shape[2] - 1) * 2 + rows, x.shape[3] - 1 + columns))
    for row in range(x.shape[2]):
        for column in range(x.shape[3]):
            part = x[:, :, row, column, None, None] * kernel[None, :, 0]
            result[:, :, 2 * row : 2 * row + rows, column : column + columns] += part
    return result


def local_variance(x, size, bias, epsilon):
    return x / np.maximum(np.sqrt(mean_around(x * x, size)) + bias, epsilon)


# statements, inputs, and the function of them in 64 bits
CASES = [
    (
        "y = local_response_normalization(a, size = [1, 3, 1, 1], alpha = 0.5, beta = 0.75, bias = 2.0);",
        [X],
        lambda x: x / (2 + 0.5 * mean_around(x * x, (1, 3, 1, 1))) ** 0.75,
    ),
    (
        "y = local_mean_normalization(a, size = [1, 1, 3, 2]);",
        [X],
        lambda x: x - mean_around(x, (1, 1, 3, 2)),
    ),
    (
        "y = local_variance_normalization(a, size = [1, 1, 3, 3], bias = 0.5, epsilon = 1.25);",
        [X],
        lambda x: local_variance(x, (1, 1, 3, 3), 0.5, 1.25),
    ),
    (
        "y = local_contrast_normalization(a, size = [1, 3, 3, 3], bias = 0.125);",
        [X],
        lambda x: local_variance(x - mean_around(x, (1, 3, 3, 3)), (1, 3, 3, 3), 0.125, 0),
    ),
    (
        "y = separable_conv(a, b, c, d);",
        [X, PLANES, POINTS, BIAS],
        lambda x, plane, point, bias: (
            np.einsum("nchw,oc->nohw", planes_of(x, plane, (1, 0), (1, 1)), point[..., 0, 0]) + bias[..., None, None]
        ),
    ),
    (
        "y = separable_conv(a, b, c, padding = [(0, 0), (0, 0)], stride = [2, 1]);",
        [X, PLANES, POINTS],
        lambda x, plane, point: np.einsum(
            "nchw,oc->nohw", planes_of(x, plane, (0, 0), (0, 0))[:, :, ::2], point[..., 0, 0]
        ),
    ),
    (
        "y = separable_deconv(a, b, c, d, padding = [(0, 0), (0, 0)], stride = [2, 1]);",
        [X, OVER, BACK, BIAS],
        lambda x, plane, point, bias: (
            planes_back(np.einsum("nchw,co->nohw", x, point[..., 0, 0]), plane) + bias[..., None, None]
        ),
    ),
    ("y = linear(a, b);", [ROWS, FILTER], lambda x, weights: x @ weights.T),
    ("y = linear(a, b, c);", [ROWS, FILTER, BIAS], lambda x, weights, bias: x @ weights.T + bias),
]


@pytest.mark.parametrize(("statements", "inputs", "function"), CASES, ids=[case[0] for case in CASES])
def test_numbers_are_those_of_64_bits(statements, inputs, function) -> None:
    (found,) = run(statements, *inputs)
    expected = function(*(x.astype(np.float64) for x in inputs))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
