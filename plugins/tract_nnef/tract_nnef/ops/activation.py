"""Activation functions and other short formulas of the standard, in terms of its operators, or of those of the core."""

from __future__ import annotations

from math import isfinite

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.activation import Activation, wire_activation
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, STANDARD, fragments, reads

ROWS = Rows()

fragments(
    ROWS,
    STANDARD,
    """
fragment rsqr(x: tensor<scalar>) -> (y: tensor<scalar>)
{
    y = x ^ -2.0;
}

fragment log2(x: tensor<scalar>) -> (y: tensor<scalar>)
{
    y = log(x) / log(2.0);
}

fragment clamp(x: tensor<scalar>, a: tensor<scalar>, b: tensor<scalar>) -> (y: tensor<scalar>)
{
    y = max(min(x, b), a);
}

fragment relu(x: tensor<scalar>) -> (y: tensor<scalar>)
{
    y = max(x, 0.0);
}

fragment softabs(x: tensor<scalar>, epsilon: scalar) -> (y: tensor<scalar>)
{
    y = sqrt(sqr(x) + epsilon);
}

fragment selu(x: tensor<scalar>, alpha: scalar = 1.67326319, lambda: scalar = 1.05070102) -> (y: tensor<scalar>)
{
    y = lambda * elu(x, alpha = alpha);
}

fragment prelu(x: tensor<scalar>, alpha: tensor<scalar>) -> (y: tensor<scalar>)
{
    y = select(x < 0.0, alpha * x, x);
}
""",
)


@reads(ROWS, STANDARD, "elu(x: tensor<scalar>, alpha: scalar = 1.0) -> (y: tensor<scalar>)")
def read_elu(call: Call) -> OutletId:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``, in which nothing overflows."""
    return wire_activation(call.model, call.node, Activation("elu", call.number("alpha")), call.real(call.input("x")))


@reads(ROWS, STANDARD, "softplus(x: tensor<scalar>) -> (y: tensor<scalar>)")
def read_softplus(call: Call) -> OutletId:
    """``log(exp(x) + 1)``, in which nothing overflows."""
    return wire_activation(call.model, call.node, Activation("softplus"), call.real(call.input("x")))


@reads(
    ROWS,
    CORE,
    "tract_core_clamped_swiglu(gate: tensor<scalar>, up: tensor<scalar>, alpha: scalar, limit: scalar)"
    " -> (output: tensor<scalar>)",
)
def read_clamped_swiglu(call: Call) -> Wired:
    """``(u + 1) * g * sigmoid(alpha * g)``, in f32, where a gate g is at most ``limit`` and u within it on both sides.

    Raises CorruptModel unless ``alpha`` is finite, and ``limit`` finite and positive.
    """
    alpha, limit = call.number("alpha"), call.number("limit")
    if not isfinite(alpha) or not 0 < limit < float("inf"):
        raise CorruptModel(f"{call.name}: alpha {alpha} and limit {limit}, wanted finite numbers, and a limit above 0")
    gate, up = (call.tensor(name).cast(DatumType.F32) for name in ("gate", "up"))
    call.wire.require_shape("up", up.outlet, gate.shape)
    gate, up = gate.minimum(limit), up.minimum(limit).maximum(-limit)
    return (up + 1) * (gate * (gate * alpha).sigmoid())
