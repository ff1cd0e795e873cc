"""One step of training: parameters, and what is known of their gradients, after it."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

DOMAIN = "ai.onnx.preview.training"


@onnx_op(ROWS, "Adagrad", domain=DOMAIN)
def adagrad(node: OnnxNode, wire: Wiring) -> Sequence[Wired]:
    """Each parameter moves against its gradient, the less the larger its gradients have been so far"""
    first, count = _rate_and_count(wire)
    rate = first / (count * node.number("decay_factor", 0.0) + 1.0)
    parameters: list[Wired] = []
    squares: list[Wired] = []
    for x, gradient, square in _groups(wire, 3):
        pull = _regularized(node, x, gradient)
        squares.append(square + pull * pull)
        divisor = squares[-1].sqrt() + node.number("epsilon", 1e-6)
        parameters.append(_moved(x, rate, pull / divisor))
    return *parameters, *squares


@onnx_op(ROWS, "Adam", domain=DOMAIN)
def adam(node: OnnxNode, wire: Wiring) -> Sequence[Wired]:
    """Each parameter moves against the running mean of its gradients, divided by that of their squares' roots"""
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    rate = _adam_rate(wire, alpha, beta)
    parameters: list[Wired] = []
    means: list[Wired] = []
    squares: list[Wired] = []
    for x, gradient, mean, square in _groups(wire, 4):
        pull = _regularized(node, x, gradient)
        means.append(mean * alpha + pull * (1 - alpha))
        squares.append(square * beta + pull * pull * (1 - beta))
        divisor = squares[-1].sqrt() + node.number("epsilon", 1e-6)
        moved = _moved(x, rate, means[-1] / divisor)
        parameters.append(moved * (1 - node.number("norm_coefficient_post", 0.0)))
    return *parameters, *means, *squares


def _adam_rate(wire: Wiring, alpha: float, beta: float) -> Wired:
    """The rate, times sqrt(1 - beta^count) / (1 - alpha^count) from the first update on"""
    rate, count = _rate_and_count(wire)
    adjusted = rate * ((1 - beta**count).sqrt() / (1 - alpha**count))
    return (count > 0).where(adjusted, rate)


@onnx_op(ROWS, "Momentum", domain=DOMAIN)
def momentum(node: OnnxNode, wire: Wiring) -> Sequence[Wired]:
    """Each parameter moves against a running sum of its gradients; with Nesterov, against where that is going"""
    alpha, nesterov = node.number("alpha"), node.choice("mode", ("standard", "nesterov")) == "nesterov"
    rate, count = _rate_and_count(wire)
    weight = (count > 0).where(count.like(node.number("beta")), 1)
    parameters: list[Wired] = []
    momenta: list[Wired] = []
    for x, gradient, velocity in _groups(wire, 3):
        pull = _regularized(node, x, gradient)
        momenta.append(velocity * alpha + pull * weight.cast(pull.dtype))
        way = pull + momenta[-1] * alpha if nesterov else momenta[-1]
        parameters.append(_moved(x, rate, way))
    return *parameters, *momenta


def _rate_and_count(wire: Wiring) -> Sequence[Wired]:
    """The learning rate, and how many updates there were."""
    return [wire.tensor(slot).cast(DatumType.F32) for slot in (0, 1)]


def _groups(wire: Wiring, kinds: int) -> Sequence[Sequence[Wired]]:
    """For each parameter, its own tensors of each kind. All inputs of one kind stand together."""
    given = [Wired(wire, x) for x in wire.all_inputs()[2:]]
    if not given or len(given) % kinds:
        raise CorruptModel(f"{len(given)} tensors are no whole number of parameters with {kinds} tensors each")
    count = len(given) // kinds
    return [given[first::count] for first in range(count)]


def _regularized(node: OnnxNode, x: Wired, gradient: Wired) -> Wired:
    """The gradient, with that of the parameter's own size."""
    return x * node.number("norm_coefficient", 0.0) + gradient


def _moved(x: Wired, rate: Wired, way: Wired) -> Wired:
    """``x - rate * way``"""
    return x - rate.cast(way.dtype) * way
