"""Numbers drawn at random, others in every run: no generator of PyTorch is followed, only the distributions are."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Lt, Max, Min, Mul
from tract_core.ops.elementwise import Floor
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.random import Distribution, RandomTensor
from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


def _drawn(call: Call, wire: NodeWiring, distribution: Distribution, low: float, high: float) -> OutletId:
    """Numbers in the shape and the type of the result. Raises Unsupported where a generator is given."""
    return wire.cast(_of_shape(call, wire, distribution, (low, high), call.shape()), call.kind)


def _of_shape(
    call: Call, wire: NodeWiring, distribution: Distribution, bounds: tuple[float, float], shape: tuple[Dim, ...]
) -> OutletId:
    if call.has("generator"):
        raise Unsupported(f"{call.name} with a generator", hint="draw them outside, and take them as an input")
    return wire.op(RandomTensor(distribution, *bounds, DatumType.F64, None, shape))


@aten(ROWS, "aten.rand", "aten.rand_like")
def rand(call: Call, wire: NodeWiring) -> OutletId:
    """Numbers from 0 up to 1"""
    return _drawn(call, wire, Distribution.UNIFORM, 0, 1)


@aten(ROWS, "aten.randn", "aten.randn_like")
def randn(call: Call, wire: NodeWiring) -> OutletId:
    """Numbers around 0, with a deviation of 1"""
    return _drawn(call, wire, Distribution.NORMAL, 0, 1)


@aten(ROWS, "aten.uniform")
def uniform(call: Call, wire: NodeWiring) -> OutletId:
    """Numbers from one up to another one"""
    return _drawn(call, wire, Distribution.UNIFORM, call.number("from"), call.number("to"))


@aten(ROWS, "aten.normal_functional", "aten.normal.float_float")
def normal(call: Call, wire: NodeWiring) -> OutletId:
    """Numbers around one, with a deviation"""
    return _drawn(call, wire, Distribution.NORMAL, call.number("mean"), call.number("std"))


@aten(ROWS, "aten.normal.Tensor_Tensor", "aten.normal.Tensor_float", "aten.normal.float_Tensor")
def normal_of_each(call: Call, wire: NodeWiring) -> OutletId:
    """Numbers around each of a tensor, with a deviation of each"""
    mean, deviation = (call.operand(name, wire, DatumType.F64) for name in ("mean", "std"))
    drawn = _of_shape(call, wire, Distribution.NORMAL, (0, 1), call.shape())
    return wire.cast(wire.binary(Add(), mean, wire.binary(Mul(), drawn, deviation)), call.kind)


@aten(ROWS, "aten.randint", "aten.randint_like")
def randint(call: Call, wire: NodeWiring) -> OutletId:
    """Integers from one, or 0, up to another one, without it"""
    low, high = call.integer("low", 0), call.integer("high")
    found = wire.op(Floor(), _of_shape(call, wire, Distribution.UNIFORM, (low, high), call.shape()))
    found = wire.op(Min(), wire.op(Max(), found, wire.scalar(low, found)), wire.scalar(high - 1, found))
    return wire.cast(found, call.kind)


@aten(ROWS, "aten.randperm")
def randperm(call: Call, wire: NodeWiring) -> OutletId:
    """The numbers below n in any order: that of numbers drawn at random"""
    count = call.dim("n")
    drawn = _of_shape(call, wire, Distribution.UNIFORM, (0, 1), (count,))
    _, places = wire.ops(Topk(0, largest=False, k=count), drawn, wire.const(count))
    return wire.cast(places, call.kind)


@aten(ROWS, "aten.bernoulli.default", "aten.bernoulli.p", "aten.bernoulli.Tensor")
def bernoulli(call: Call, wire: NodeWiring) -> OutletId:
    """1 as often as an element says, or a number for all; else 0"""
    share = call.operand("p" if call.has("p") else "self", wire, DatumType.F64)
    drawn = _of_shape(call, wire, Distribution.UNIFORM, (0, 1), call.shape())
    return wire.cast(wire.binary(Lt(), drawn, share), call.kind)
