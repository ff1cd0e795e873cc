"""What cannot be read is refused with the operator, what was found and what is wanted."""

from __future__ import annotations

import numpy as np
import pytest
from statements import run

import tract_core as tract

X = np.zeros((2, 3), np.float32)

CASES = [
    ("y = reshape(a, shape = [4]);", "4"),
    ("y = reshape(a, shape = [2], axis_start = 2, axis_count = 1);", "axis_start 2 and axis_count 1 are outside of 2"),
    ("y = reshape(a, shape = [-1, -1]);", "-1 may stand for one size only"),
    ("y = transpose(a, axes = [0, 0]);", "has an axis twice"),
    ("y = transpose(a, axes = [1]);", "no permutation of the first 1"),
    ("y = squeeze(a, axes = [2]);", "axis 2 is outside of a tensor of 2 axes"),
    ("y = squeeze(a, axes = [0]);", "has size 2, not 1"),
    ("y = concat([], axis = 0);", "there are no tensors"),
    ("p, q = split(a, axis = 1, ratios = [1, 1]); y = p;", "wanted sizes 2,2"),
    ("p, q = split(a, axis = 1, ratios = [0, 3]); y = p;", "wanted positive numbers"),
    ("p, q = split(a, axis = 1, ratios = [1, 1, 1]); y = p;", "2 results are assigned, found an array of 3"),
    ("y = slice(a, axes = [1], begin = [2], end = [1]);", "2 to 1 by 1 is no range of an axis of size 3"),
    ("y = slice(a, axes = [1], begin = [0], end = [2], stride = [0]);", "the stride is 0"),
    ("y = slice(a, axes = [1], begin = [0], end = []);", "1, 1, 0 and 1 elements"),
    ("y = pad(a, padding = [(1, 1)]);", "argument 'padding' of pad has 1 elements, wanted 2 pairs"),
    (
        "y = pad(a, padding = [(1, 1), (0, 0)], border = 'ignore');",
        "argument 'border' of pad is 'ignore', wanted one of 'constant'",
    ),
    ("y = tile(a, repeats = [1]);", r"multipliers are \[1\], wanted 2"),
    ("y = cast(a);", "the type in angle brackets is missing"),
    ("y = constant(shape = [2], value = [1.0, 2.0, 3.0]);", r"3 values, wanted 1, or as many as \[2\] has"),
    ("y = select(a, a, a);", "wants booleans"),
    ("y = cast<integer>(a) * 0.5;", "it has a fraction"),
    ("y = cast<integer>(a) * [[1], [0.5]];", "it has a fraction"),
    ("y = select(a > 0.0, a, [true, 1]);", "an array of 2 has elements of different kinds"),
    ("y = a + cast<integer>(a);", "i64"),
    ("y = sum_reduce(a, axes = [0, 0]);", "has an axis twice"),
    ("y = argmax_reduce(a, axes = [0, 1]);", "looks along one axis"),
    ("y = any_reduce(a, axes = [0]);", "does not take f32"),
    ("y = softmax(a, axes = [5]);", "axis 5 is outside"),
    ("y = copy_n(a, times = -1);", "-1 copies are wanted"),
    ("y = relu(a, b);", "relu takes 1 arguments, found 2"),
    ("y = gelu(z = a, w = a);", "gelu has no parameter 'z'; it has x"),
    ("y = conv(a, a, strides = [2]);", "conv has no parameter 'strides'; .*\n.*did you mean 'stride'"),
]


@pytest.mark.parametrize(("statements", "message"), CASES, ids=lambda one: one[:50])
def test_the_message_says_what_is_wrong(statements, message) -> None:
    with pytest.raises(tract.errors.TractError, match=message):
        run(statements, X)


def test_what_an_operator_does_not_have_is_set_aside_with_a_warning() -> None:
    with pytest.warns(tract.errors.ModelWarning, match="sigmoid has no parameter 'axes'; it has x. It is set aside"):
        (found,) = run("y = sigmoid(a, axes = [1]);", X)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-X.astype(np.float64))), rtol=1e-5)


def test_an_updated_variable_is_warned_of() -> None:
    with pytest.warns(tract.errors.ModelWarning, match="holds for this run only"):
        (found,) = run("y = update(a, a + 1.0);", X)
    np.testing.assert_array_equal(found, X + 1)
