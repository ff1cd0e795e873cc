"""Common divisors and multiples of integers."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Div, Eq, Mul, Rem
from tract_core.ops.elementwise import Abs
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scan import OutputMapping, Scan, ScannedInput, StateInput
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import common_shape

ROWS = Rows()


@aten(ROWS, "aten.gcd")
def gcd(call: Call, wire: NodeWiring) -> OutletId:
    """The greatest common divisor, 0 of 0 and 0"""
    return _divisor(wire, *_magnitudes(call, wire, call.kind))


@aten(ROWS, "aten.lcm")
def lcm(call: Call, wire: NodeWiring) -> OutletId:
    """The least common multiple, 0 where one of both is 0; of small integers, the lowest bits of it"""
    a, b = _magnitudes(call, wire, DatumType.I32 if call.kind.itemsize < 4 else call.kind)
    divisor = _divisor(wire, a, b)
    divisor = wire.select(wire.op(Eq(), divisor, wire.scalar(0, divisor)), wire.scalar(1, divisor), divisor)
    return wire.cast(wire.op(Abs(), wire.op(Mul(), wire.op(Div(), a, divisor), b)), call.kind)


def _magnitudes(call: Call, wire: NodeWiring, kind: DType) -> list[OutletId]:
    """Both numbers without their signs, in one type and one shape."""
    both = [wire.op(Abs(), call.operand(name, wire, kind)) for name in ("self", "other")]
    shape = common_shape(wire, both)
    return [wire.broadcast(one, shape) for one in wire.ranks(*both)]


def _divisor(wire: NodeWiring, a: OutletId, b: OutletId) -> OutletId:
    """Euclid's algorithm, with as many steps as neighbours among Fibonacci's numbers in the type need, the most."""
    body = wire.model.empty_like()
    body.add_source("step", TypedFact.of(DatumType.I64, (1,)))
    x, y = (body.add_source(name, wire.fact(one).without_value()) for name, one in (("a", a), ("b", b)))
    inner = NodeWiring(body, "euclid")
    ends = inner.op(Eq(), y, inner.scalar(0, y))
    rest = inner.op(Rem(), x, inner.select(ends, inner.scalar(1, y), y))
    body.set_outputs([inner.select(ends, x, y), rest])
    states = (OutputMapping(state=True, last=0), OutputMapping(state=True))
    loop = Scan(body, (ScannedInput(0), StateInput(), StateInput()), states, reset_every_turn=True)
    steps = wire.const(np.zeros(12 * wire.dtype(a).itemsize, np.int64))
    return wire.op(loop, steps, a, b)
