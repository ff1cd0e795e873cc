"""The standard's operators that arrange elements, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from statements import run

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(5, dtype=np.float32)
ONE = np.array([[7.0]], np.float32)
NONE = np.zeros((2, 0), np.float32)
YES = X % 2 == 0

# statements, inputs, expected, and whether the sizes may be symbols too
CASES = [
    ("y = reshape(a, shape = [6, 4]);", [X], X.reshape(6, 4), True),
    ("y = reshape(a, shape = [0, -1]);", [X], X.reshape(2, 12), True),
    ("y = reshape(a, shape = [-1]);", [X], X.reshape(-1), True),
    ("y = reshape(a, shape = []);", [ONE], ONE.reshape(()), True),
    ("y = reshape(a, shape = [2, 2], axis_start = 2);", [X], X.reshape(2, 3, 2, 2), True),
    ("y = reshape(a, shape = [6], axis_start = 0, axis_count = 2);", [X], X.reshape(6, 4), True),
    ("y = reshape(a, shape = [1], axis_start = 1, axis_count = 0);", [X], X[:, None], True),
    ("y = reshape(a, shape = [3, 0]);", [NONE.reshape(0, 0)], NONE.reshape(0, 0)[:0].reshape(3, 0), False),
    ("y = transpose(a, axes = [2, 0, 1]);", [X], X.transpose(2, 0, 1), True),
    ("y = transpose(a, axes = [1, 0]);", [X], X.transpose(1, 0, 2), True),
    ("y = transpose(a, axes = [0, 1, 2]);", [X], X, True),
    ("y = squeeze(unsqueeze(a, axes = [0, 3]), axes = [3]);", [X], X[None], True),
    ("y = squeeze(a, axes = [0, 1]);", [ONE], ONE[0, 0], True),
    ("y = unsqueeze(a, axes = []);", [X], X, True),
    ("y = concat([a, b], axis = 1);", [X, X], np.concatenate([X, X], 1), False),
    ("y = concat([a], axis = 1);", [X], X, True),
    ("y = concat([a, b], axis = 1);", [NONE, np.ones((2, 3), np.float32)], np.ones((2, 3)), False),
    ("y = concat([a, b], axis = 0);", [ROW, np.array([3])], np.append(ROW, 3), False),
    ("y = stack([a, a], axis = 0);", [X], np.stack([X, X]), True),
    ("y = stack([a, a, a], axis = 3);", [X], np.stack([X, X, X], 3), True),
    ("p, q = split(a, axis = 2, ratios = [1, 3]); y = p * q;", [X], X[..., :1] * X[..., 1:], False),
    ("p, q = split(a, axis = 0, ratios = [1, 1]); y = p - q;", [X], X[:1] - X[1:], True),
    ("[p, q] = split(a, axis = 2, ratios = [2, 2]); y = p * q;", [X], X[..., :2] * X[..., 2:], False),
    ("[p] = split(a, axis = 0, ratios = [3]); y = p;", [np.ones(3, np.float32)], np.ones(3), False),
    ("[p, q] = unstack(a, axis = 0); y = p - q;", [X], X[0] - X[1], False),
    ("p = unstack(a, axis = 1); y = p[2];", [X], X[:, 2], False),
    ("y = slice(a, axes = [1], begin = [1], end = [3]);", [X], X[:, 1:3], True),
    ("y = slice(a, axes = [2, 0], begin = [-3, 0], end = [-1, 1]);", [X], X[:1, :, -3:-1], True),
    ("y = slice(a, axes = [1], begin = [1], end = [0]);", [X], X[:, 1:], True),
    ("y = slice(a, axes = [1], begin = [0], end = [-3]);", [X], X[:, :0], True),
    ("y = slice(a, axes = [2], begin = [-9], end = [9]);", [X], X, False),
    ("y = slice(a, axes = [0], begin = [0], end = [0], stride = [2]);", [ROW], ROW[0:0:2], True),
    ("y = slice(a, axes = [0], begin = [1], end = [5], stride = [2]);", [ROW], ROW[1:5:2], True),
    ("y = slice(a, axes = [0], begin = [-1], end = [0], stride = [-1]);", [ROW], ROW[-1:0:-1], True),
    ("y = slice(a, axes = [0], begin = [-1], end = [-9], stride = [-1]);", [ROW], ROW[::-1], False),
    ("y = slice(a, axes = [0], begin = [-2], end = [-6], stride = [-2]);", [ROW], ROW[-2::-2], False),
    ("y = slice(a, axes = [0], begin = [9], end = [1], stride = [-3]);", [ROW], ROW[:1:-3], False),
    ("y = slice(a, axes = [1], begin = [0], end = [0]);", [NONE], NONE, True),
    ("y = pad(a, padding = [(1, 2)]);", [ROW], np.pad(ROW, (1, 2)), True),
    (
        "y = pad(a, padding = [(1, 0), (0, 2)], value = -1.5);",
        [ONE],
        np.pad(ONE, ((1, 0), (0, 2)), constant_values=-1.5),
        True,
    ),
    ("y = pad(a, padding = [(2, 3)], border = 'replicate');", [ROW], np.pad(ROW, (2, 3), "edge"), True),
    ("y = pad(a, padding = [(2, 3)], border = 'replicated');", [ROW], np.pad(ROW, (2, 3), "edge"), True),
    ("y = pad(a, padding = [(2, 3)], border = 'reflect');", [ROW], np.pad(ROW, (2, 3), "reflect"), True),
    ("y = pad(a, padding = [(2, 5)], border = 'reflect-even');", [ROW], np.pad(ROW, (2, 5), "symmetric"), True),
    ("y = pad(a, padding = [(7, 13)], border = 'reflect-even');", [ROW], np.pad(ROW, (7, 13), "symmetric"), False),
    ("y = pad(a, padding = [(17, 1)], border = 'reflect-even');", [ROW], np.pad(ROW, (17, 1), "symmetric"), False),
    ("y = pad(a, padding = [(1, 1)], value = 3);", [np.array([1, 2])], np.array([3, 1, 2, 3]), True),
    ("y = gather(a, b, axis = 1);", [X, np.array([[2, 0], [-1, 2]])], X[:, [[2, 0], [-1, 2]]], False),
    ("y = gather(a, 1);", [X], X[1], True),
    ("y = tile(a, repeats = [2, 1, 3]);", [X], np.tile(X, (2, 1, 3)), True),
    ("y = tile(a, repeats = [1, 0]);", [ONE], np.zeros((1, 0)), True),
    ("y = cast<integer>(a);", [np.array([-1.5, 2.5], np.float32)], np.array([-1, 2]), True),
    ("y = cast<scalar>(a);", [np.array([True, False])], np.array([1.0, 0.0], np.float32), True),
    ("y = cast<logical>(a);", [np.array([0.0, 0.5], np.float32)], np.array([False, True]), True),
    ("y = copy(a);", [X], X, True),
    ("[p, q] = copy_n(a, times = 2); y = p + q;", [X], 2 * X, True),
    ("y = add_n([a, a, a]);", [X], 3 * X, True),
    ("y = add_n([]); z = a;", [X], np.zeros(1), True),
    ("y = select(a, b, 0.0);", [YES, X], np.where(YES, X, 0), False),
    ("y = select(a, 1.0, -1);", [YES], np.where(YES, 1, -1).astype(np.float32), True),
    ("y = select(a, b, c);", [YES[:, 0, 0], X, -X], np.where(YES[:, 0, 0][:, None, None], X, -X), False),
    ("y = select(true, a, b);", [X, X[:, 0, 0]], X, False),
    ("y = select(a, b, -1.0);", [YES, X[:, :1, 0]], np.where(YES, X[:, :1, :1], -1), False),
    ("y = constant(shape = [2, 2], value = [1, 2, 3, 4.5]);", [], np.array([[1, 2], [3, 4.5]], np.float32), False),
    ("y = constant(shape = [2, 3], value = [7.0]);", [], np.full((2, 3), 7.0), False),
    ("y = constant<integer>(shape = [], value = [7]);", [], np.array(7), False),
    ("y = constant<logical>(shape = [2], value = [true, false]);", [], np.array([True, False]), False),
]


@pytest.mark.parametrize(("statements", "inputs", "expected", "symbols"), CASES, ids=[case[0] for case in CASES])
def test_elements_are_arranged_as_numpy_does(statements, inputs, expected, symbols) -> None:
    for symbolic in (False, True)[: 1 + symbols]:
        (found,) = run(statements, *inputs, symbolic=symbolic)
        assert found.shape == expected.shape
        assert expected.dtype in (found.dtype, np.float64)
        np.testing.assert_array_equal(found, expected)
