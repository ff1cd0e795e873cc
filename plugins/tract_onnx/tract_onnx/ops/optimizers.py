"""One step of training: parameters, and what is known of their gradients, after it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Gt, Mul, Pow, Sub
from tract_core.ops.elementwise import Sqrt
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

DOMAIN = "ai.onnx.preview.training"


@onnx_op(ROWS, "Adagrad", domain=DOMAIN)
def adagrad(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """Each parameter moves against its gradient, the less the larger its gradients have been so far"""
    step = _Step(node, wire)
    decay = step.plus(step.times(wire.cast(wire.input(1), DatumType.F32), node.float("decay_factor", 0.0)), 1.0)
    rate = step.by(Div(), wire.cast(wire.input(0), DatumType.F32), decay)
    parameters: list[OutletId] = []
    squares: list[OutletId] = []
    for x, gradient, square in step.groups(3):
        pull = step.regularized(x, gradient)
        squares.append(step.by(Add(), square, step.by(Mul(), pull, pull)))
        divisor = step.plus(wire.op(Sqrt(), squares[-1]), node.float("epsilon", 1e-6))
        parameters.append(step.moved(x, rate, step.by(Div(), pull, divisor)))
    return *parameters, *squares


@onnx_op(ROWS, "Adam", domain=DOMAIN)
def adam(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """Each parameter moves against the running mean of its gradients, divided by that of their squares' roots"""
    step = _Step(node, wire)
    alpha, beta = node.float("alpha", 0.9), node.float("beta", 0.999)
    rate = _adam_rate(step, alpha, beta)
    parameters: list[OutletId] = []
    means: list[OutletId] = []
    squares: list[OutletId] = []
    for x, gradient, mean, square in step.groups(4):
        pull = step.regularized(x, gradient)
        means.append(step.by(Add(), step.times(mean, alpha), step.times(pull, 1 - alpha)))
        squares.append(step.by(Add(), step.times(square, beta), step.times(step.by(Mul(), pull, pull), 1 - beta)))
        divisor = step.plus(wire.op(Sqrt(), squares[-1]), node.float("epsilon", 1e-6))
        moved = step.moved(x, rate, step.by(Div(), means[-1], divisor))
        parameters.append(step.times(moved, 1 - node.float("norm_coefficient_post", 0.0)))
    return *parameters, *means, *squares


def _adam_rate(step: _Step, alpha: float, beta: float) -> OutletId:
    """The rate, times sqrt(1 - beta^count) / (1 - alpha^count) from the first update on"""
    wire = step.wire
    rate, count = (wire.cast(wire.input(slot), DatumType.F32) for slot in (0, 1))

    def rest(base: float) -> OutletId:
        power = step.by(Pow(), wire.const(np.array(base, np.float32)), count)
        return step.by(Sub(), wire.const(np.array(1, np.float32)), power)

    adjusted = step.by(Mul(), rate, step.by(Div(), wire.op(Sqrt(), rest(beta)), rest(alpha)))
    return wire.select(step.by(Gt(), count, wire.const(np.array(0, np.float32))), adjusted, rate)


@onnx_op(ROWS, "Momentum", domain=DOMAIN)
def momentum(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """Each parameter moves against a running sum of its gradients; with Nesterov, against where that is going"""
    step = _Step(node, wire)
    alpha, nesterov = node.float("alpha"), node.choice("mode", ("standard", "nesterov")) == "nesterov"
    rate, count = (wire.cast(wire.input(slot), DatumType.F32) for slot in (0, 1))
    one, beta = (wire.const(np.array(value, np.float32)) for value in (1, node.float("beta")))
    later = step.by(Gt(), count, wire.const(np.array(0, np.float32)))
    weight = wire.select(later, beta, one)
    parameters: list[OutletId] = []
    momenta: list[OutletId] = []
    for x, gradient, velocity in step.groups(3):
        pull = step.regularized(x, gradient)
        weighted = step.by(Mul(), pull, wire.cast(weight, wire.dtype(pull)))
        momenta.append(step.by(Add(), step.times(velocity, alpha), weighted))
        way = step.by(Add(), pull, step.times(momenta[-1], alpha)) if nesterov else momenta[-1]
        parameters.append(step.moved(x, rate, way))
    return *parameters, *momenta


class _Step:
    """The arithmetic of one node's update. Numbers are taken in the element type of what they meet."""

    def __init__(self, node: OnnxNode, wire: Wiring) -> None:
        self.wire = wire
        self._node = node

    def groups(self, kinds: int) -> Sequence[tuple[OutletId, ...]]:
        """For each parameter, its own tensors of each kind. All inputs of one kind stand together."""
        given = self.wire.all_inputs()[2:]
        if not given or len(given) % kinds:
            raise CorruptModel(f"{len(given)} tensors are no whole number of parameters with {kinds} tensors each")
        count = len(given) // kinds
        return [tuple(given[first::count]) for first in range(count)]

    def by(self, op: Add | Div | Gt | Mul | Pow | Sub, a: OutletId, b: OutletId) -> OutletId:
        """A binary operator, broadcast."""
        return self.wire.binary(op, a, b)

    def times(self, x: OutletId, factor: float) -> OutletId:
        """``x`` times a number."""
        return self.wire.op(Mul(), x, self.wire.scalar(factor, x))

    def plus(self, x: OutletId, term: float) -> OutletId:
        """``x`` plus a number."""
        return self.wire.op(Add(), x, self.wire.scalar(term, x))

    def regularized(self, x: OutletId, gradient: OutletId) -> OutletId:
        """The gradient, with that of the parameter's own size."""
        return self.by(Add(), self.times(x, self._node.float("norm_coefficient", 0.0)), gradient)

    def moved(self, x: OutletId, rate: OutletId, way: OutletId) -> OutletId:
        """``x - rate * way``"""
        return self.by(Sub(), x, self.by(Mul(), self.wire.cast(rate, self.wire.dtype(way)), way))
