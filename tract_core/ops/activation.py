"""The activations that recurrent networks may choose, wired in core operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Div, Gt, Max, Min, Mul, Sub
from tract_core.ops.elementwise import Abs, Exp, LeakyRelu, Ln, Sigmoid, Tanh
from tract_core.ops.expect import element
from tract_core.ops.iff import Iff
from tract_core.ops.wiring import wire_binary, wire_one, wire_ranks


@frozen
class Activation:
    """A function of one number: its name in ONNX, in lower case, and its parameters, where it has any.

    ``alpha``, ``beta``: these parameters.
    """

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in _WIRING:
            raise FactError(f"unknown activation {self.name!r}; known: {', '.join(sorted(_WIRING))}")


def parse_activations(
    names: Sequence[str], alphas: Sequence[float] = (), betas: Sequence[float] = ()
) -> tuple[Activation, ...]:
    """Activations as ONNX lists them: each name that takes a parameter takes the next one of the list, or the default.

    Raises FactError for an unknown name.
    """
    next_alpha, next_beta = iter(alphas), iter(betas)
    found: list[Activation] = []
    for name in names:
        key = name.lower()
        defaults = _DEFAULTS.get(key, ())
        alpha = next(next_alpha, defaults[0]) if defaults else 0.0
        beta = next(next_beta, defaults[1]) if len(defaults) > 1 else 0.0
        found.append(Activation(key, float(alpha), float(beta)))
    return tuple(found)


_DEFAULTS: Final[dict[str, tuple[float, ...]]] = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
}


def wire_activation(model: TypedModel, name: str, activation: Activation, x: OutletId) -> OutletId:
    """``activation`` of every element of ``x``."""
    return _WIRING[activation.name](_Wire(model, name), activation, x)


class _Wire:
    """Adds nodes that are named after one name, with constants of the type of the operand."""

    def __init__(self, model: TypedModel, name: str) -> None:
        self.model = model
        self.name = name

    def one(self, op: TypedOp, x: OutletId) -> OutletId:
        return wire_one(self.model, self._next(op), op, x)

    def two(self, op: TypedOp, x: OutletId, other: OutletId | float) -> OutletId:
        if not isinstance(other, OutletId):
            other = self.const(other, x)
        return wire_binary(self.model, self._next(op), op, x, other)

    def choose(self, condition: OutletId, if_true: OutletId, if_false: OutletId | float) -> OutletId:
        if not isinstance(if_false, OutletId):
            if_false = self.const(if_false, if_true)
        ranked = wire_ranks(self.model, self.name, [condition, if_true, if_false])
        return wire_one(self.model, self._next(Iff()), Iff(), *ranked)

    def const(self, value: float, like: OutletId) -> OutletId:
        kind = self.model.outlet_fact(like).datum_type
        return self.model.add_const(f"{self.name}.const", element(value, kind))

    def _next(self, op: TypedOp) -> str:
        return self.model.unique_name(f"{self.name}.{op.name.lower()}")


def _affine(w: _Wire, a: Activation, x: OutletId) -> OutletId:
    return w.two(Add(), w.two(Mul(), x, a.alpha), a.beta)


def _hard_sigmoid(w: _Wire, a: Activation, x: OutletId) -> OutletId:
    return w.two(Min(), w.two(Max(), _affine(w, a, x), 0.0), 1.0)


def _elu(w: _Wire, a: Activation, x: OutletId) -> OutletId:
    negative = w.two(Mul(), w.two(Sub(), w.one(Exp(), w.two(Min(), x, 0.0)), 1.0), a.alpha)
    return w.choose(w.two(Gt(), x, 0.0), x, negative)


def _soft_plus(w: _Wire, a: Activation, x: OutletId) -> OutletId:
    """``max(x, 0) + log(1 + exp(-abs(x)))``, in which nothing overflows."""
    small = w.one(Exp(), w.two(Mul(), w.one(Abs(), x), -1.0))
    return w.two(Add(), w.two(Max(), x, 0.0), w.one(Ln(), w.two(Add(), small, 1.0)))


_WIRING: Final[dict[str, Callable[[_Wire, Activation, OutletId], OutletId]]] = {
    "affine": _affine,
    "relu": lambda w, _, x: w.two(Max(), x, 0.0),
    "leakyrelu": lambda w, a, x: w.one(LeakyRelu(a.alpha), x),
    "thresholdedrelu": lambda w, a, x: w.choose(w.two(Gt(), x, a.alpha), x, 0.0),
    "tanh": lambda w, _, x: w.one(Tanh(), x),
    "scaledtanh": lambda w, a, x: w.two(Mul(), w.one(Tanh(), w.two(Mul(), x, a.beta)), a.alpha),
    "sigmoid": lambda w, _, x: w.one(Sigmoid(), x),
    "hardsigmoid": _hard_sigmoid,
    "elu": _elu,
    "softsign": lambda w, _, x: w.two(Div(), x, w.two(Add(), w.one(Abs(), x), 1.0)),
    "softplus": _soft_plus,
}

SIGMOID: Final = Activation("sigmoid")
TANH: Final = Activation("tanh")
