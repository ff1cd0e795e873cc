"""LSTM with quantised weights and products of integers, against ONNX Runtime and the textbook in float64."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx_single import MICROSOFT, feeds, node_model, outputs_of, refused
from quantised_lstm import states_of, textbook

from tract_core.errors import FactError

WEIGHTS = (1, 2, 8, 9, 10, 11)
"""The inputs that files hold as constants."""


def network(seed, *, steps=6, batch=3, size=5, hidden=4, kind=np.int8, per_column=False, directions=1, lengths=None):
    """Random inputs of DynamicQuantizeLSTM. Weights have seven bits: some machines saturate with eight."""
    r = np.random.default_rng(seed)
    low, high = (-64, 64) if kind is np.int8 else (0, 128)
    rows = (directions, 4 * hidden) if per_column else (directions,)

    def f32(*shape, low=-1.0, high=1.0):
        return r.uniform(low, high, shape).astype(np.float32)

    def zero():
        # ONNX Runtime takes one zero point for all columns.
        return np.zeros(rows, kind) if per_column else r.integers(low // 2, high // 2, rows).astype(kind)

    w, r_ = (r.integers(low, high, (directions, count, 4 * hidden)).astype(kind) for count in (size, hidden))
    scales = [f32(*rows, low=0.005, high=0.02) for _ in "wr"]
    bias, *states = f32(directions, 8 * hidden), f32(directions, batch, hidden), f32(directions, batch, hidden)
    peepholes = f32(directions, 3 * hidden)
    parameters = scales[0], zero(), scales[1], zero()
    ends = None if lengths is None else np.array(lengths, np.int32)
    return [2 * f32(steps, batch, size), w, r_, bias, ends, *states, peepholes, *parameters]


def onnxruntime_gives(inputs, **options):
    """On one thread: with several, ONNX Runtime quantises the items of a batch in several groups."""
    session = onnxruntime.SessionOptions()
    session.intra_op_num_threads = 1
    session.log_severity_level = 3
    model = node_model("DynamicQuantizeLSTM", inputs, MICROSOFT, fixed=WEIGHTS, outputs=3, **options)
    return onnxruntime.InferenceSession(model.SerializeToString(), session).run(None, feeds(inputs, WEIGHTS))


def ours(inputs, **options):
    return outputs_of("DynamicQuantizeLSTM", inputs, MICROSOFT, fixed=WEIGHTS, outputs=3, **options)


def check(inputs, **options):
    hidden = inputs[2].shape[1]
    wanted = onnxruntime_gives(inputs, hidden_size=hidden, **options)
    for declutter in (False, True):
        for batch in (None, "N"):
            found = ours(
                inputs, hidden_size=hidden, declutter=declutter, **({"batch": batch} if batch else {}), **options
            )
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_weights(kind, per_column):
    for seed in range(3):
        check(network(seed, kind=kind, per_column=per_column))


@pytest.mark.parametrize(
    "options",
    [
        {"direction": "reverse"},
        {"clip": 0.5},
        {"input_forget": 1},
        {"activations": ["HardSigmoid", "Relu", "Tanh"], "activation_alpha": [0.2], "activation_beta": [0.5]},
    ],
)
def test_options(options):
    check(network(1), **options)


def test_two_directions():
    check(network(2, directions=2), direction="bidirectional")


@pytest.mark.parametrize("sizes", [{"steps": 1, "batch": 1, "size": 1, "hidden": 1}, {"batch": 1, "hidden": 33}])
def test_sizes(sizes):
    check(network(3, **sizes))


@pytest.mark.parametrize("scale", [0, 1e-30, 1e30])
def test_what_the_range_of_the_input_is(scale):
    inputs = network(4)
    inputs[0] = (inputs[0] * scale).astype(np.float32)
    check(inputs)


@pytest.mark.parametrize("empty", ["steps", "batch", "size"])
def test_empty(empty):
    inputs = network(5, **{empty: 0})
    y, h, c = ours(inputs, hidden_size=4)
    steps, batch, _ = inputs[0].shape
    assert (y.shape, h.shape, c.shape) == ((steps, 1, batch, 4), (1, batch, 4), (1, batch, 4))
    if empty == "steps":
        np.testing.assert_array_equal(h, inputs[5])


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("lengths", [None, [6, 3, 1], [4, 0, 2]])
def test_items_of_different_lengths(lengths, backward):
    """ONNX Runtime lets what comes after the end of an item widen the range by which the others are rounded."""
    for seed in range(3):
        inputs = network(seed, lengths=lengths)
        wanted = textbook(inputs, backward=backward)
        direction = "reverse" if backward else "forward"
        for declutter in (False, True):
            found = ours(inputs, hidden_size=4, direction=direction, declutter=declutter)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-5)


def test_what_stands_behind_the_end_of_an_item_says_nothing():
    inputs = network(7, lengths=[6, 3, 1])
    first = ours(inputs, hidden_size=4)
    inputs[0] = inputs[0].copy()
    inputs[0][3:, 1:] = 1000
    for one, other in zip(ours(inputs, hidden_size=4), first, strict=True):
        np.testing.assert_array_equal(one, other)


def test_zero_points_of_columns():
    """ONNX Runtime wants them to be alike."""
    inputs = network(8, per_column=True)
    inputs[9], inputs[11] = (np.arange(16, dtype=np.int8).reshape(1, 16) - 8 for _ in "wr")
    for one, other in zip(ours(inputs, hidden_size=4), textbook(inputs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(
    ("slot", "shape", "match"),
    [(8, (1, 1, 16), "with scales 1,1,16,f32"), (9, (), "with zero points i8"), (8, (1, 3), "16 and 3|3 and 16")],
)
def test_parameters_of_other_shapes(slot, shape, match):
    inputs = network(9)
    inputs[slot] = np.ones(shape, inputs[slot].dtype)
    refused(FactError, match, "DynamicQuantizeLSTM", inputs, MICROSOFT, fixed=WEIGHTS, hidden_size=4, outputs=3)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_each_step_follows_from_the_one_before(direction):
    """Both engines, each from the states that it found itself: no step moves what the next ones are measured by."""
    for seed in range(3):
        inputs = network(seed, directions=2 if direction == "bidirectional" else 1)
        for y in (
            ours(inputs, hidden_size=4, direction=direction)[0],
            onnxruntime_gives(inputs, hidden_size=4, direction=direction)[0],
        ):
            np.testing.assert_allclose(y, states_of(inputs, direction, y), atol=1e-6)
        wrong = y.copy()
        wrong[3] += 1e-3
        assert np.abs(wrong - states_of(inputs, direction, wrong)).max() > 5e-4
