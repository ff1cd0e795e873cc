"""Training: statistics of the batch, one step of the optimisers, and losses."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_agree import agrees, gives, is_refused

from tract_core.errors import CorruptModel

RANDOM = np.random.default_rng(0)
TRAINING = "ai.onnx.preview.training"


def f32(*shape, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def normalized(inputs, momentum, eps):
    """In f64: the result, the running statistics after it, and those of the batch."""
    x, scale, bias, mean, variance = inputs
    x, others = x.astype(np.float64), tuple(axis for axis in range(x.ndim) if axis != 1)
    shape = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
    found = x.mean(others), x.var(others)
    result = (x - found[0].reshape(shape)) / np.sqrt(found[1].reshape(shape) + eps)
    result = result * scale.reshape(shape) + bias.reshape(shape)
    running = [old * momentum + new * (1 - momentum) for old, new in zip((mean, variance), found, strict=True)]
    return [array.astype(np.float32) for array in (result, *running, *found)]


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4, 5)])
def test_batch_normalization_by_the_batch(shape):
    inputs = [f32(*shape), f32(3), f32(3), f32(3), f32(3, low=0.1)]
    wanted = normalized(inputs, 0.7, 1e-3)
    options = {"momentum": 0.7, "epsilon": 1e-3, "relative": 1e-5}
    gives(wanted[:3], "BatchNormalization", inputs, opset=15, outputs=3, training_mode=1, **options)
    gives(wanted, "BatchNormalization", inputs, opset=9, outputs=5, **options)


def test_batch_normalization_by_given_statistics():
    inputs = [f32(2, 3, 4), f32(3), f32(3), f32(3), f32(3, low=0.1)]
    for opset in (7, 9, 14, 15):
        agrees("BatchNormalization", inputs, opset=opset)


def test_adagrad():
    rate, count = np.array(0.1, np.float32), np.array(3, np.int64)
    x, gradient, square = f32(2, 3), f32(2, 3), f32(2, 3, low=0.5)
    pull = 0.2 * x + gradient
    squares = square + pull * pull
    moved = x - 0.1 / (1 + 3 * 0.5) * pull / (np.sqrt(squares) + 1e-2)
    inputs = [rate, count, x, gradient, square]
    options = {"norm_coefficient": 0.2, "decay_factor": 0.5, "epsilon": 1e-2}
    gives([moved, squares], "Adagrad", inputs, domain=TRAINING, outputs=2, **options)


@pytest.mark.parametrize("updates", [0, 4])
def test_adam_with_two_parameters(updates):
    rate, count = np.array(0.1, np.float32), np.array(updates, np.int64)
    parameters = [[f32(2, 3), f32(2, 3), f32(2, 3), f32(2, 3, low=0.5)], [f32(4), f32(4), f32(4), f32(4, low=0.5)]]
    wanted = []
    for x, gradient, mean, square in parameters:
        pull = 0.2 * x + gradient
        means, squares = 0.8 * mean + 0.2 * pull, 0.9 * square + 0.1 * pull * pull
        step = 0.1 * np.sqrt(1 - 0.9**updates) / (1 - 0.8**updates) if updates else 0.1
        moved = (1 - 0.3) * (x - step * means / (np.sqrt(squares) + 1e-2))
        wanted.append([array.astype(np.float32) for array in (moved, means, squares)])
    inputs = [rate, count, *(tensor for kind in zip(*parameters, strict=True) for tensor in kind)]
    options = {"alpha": 0.8, "beta": 0.9, "norm_coefficient": 0.2, "norm_coefficient_post": 0.3, "epsilon": 1e-2}
    flat = [tensor for kind in zip(*wanted, strict=True) for tensor in kind]
    gives(flat, "Adam", inputs, domain=TRAINING, outputs=6, relative=1e-5, **options)


@pytest.mark.parametrize("mode", ["standard", "nesterov"])
@pytest.mark.parametrize("updates", [0, 2])
def test_momentum(mode, updates):
    rate, count, x, gradient, velocity = np.float32(0.1), np.array(updates, np.int64), f32(3), f32(3), f32(3)
    pull = 0.2 * x + gradient
    found = 0.9 * velocity + (0.7 if updates else 1) * pull
    moved = x - 0.1 * (pull + 0.9 * found if mode == "nesterov" else found)
    options = {"alpha": 0.9, "beta": 0.7, "norm_coefficient": 0.2, "mode": mode}
    wanted = [moved.astype(np.float32), found.astype(np.float32)]
    gives(wanted, "Momentum", [rate, count, x, gradient, velocity], domain=TRAINING, outputs=2, **options)


def test_tensors_that_are_no_whole_number_of_parameters():
    inputs = [np.float32(0.1), np.array(0, np.int64), f32(3), f32(3)]
    is_refused(CorruptModel, "2 tensors are no whole number", "Adagrad", inputs, domain=TRAINING)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("ignored", [{}, {"ignore_index": 2}])
def test_losses(reduction, ignored):
    x, weights = f32(3, 5, 2, low=-3.0), f32(5, low=0.1)
    labels = RANDOM.integers(0, 5, (3, 2)).astype(np.int64)
    options = {"reduction": reduction, "opset": 13, **ignored}
    for inputs in ([x, labels], [x, labels, weights]):
        agrees("NegativeLogLikelihoodLoss", inputs, **options)
        agrees("SoftmaxCrossEntropyLoss", inputs, outputs=2, **options)
