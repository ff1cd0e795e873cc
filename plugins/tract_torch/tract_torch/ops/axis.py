"""Shapes and the order of axes."""

from __future__ import annotations

from contextlib import suppress

from tract_core.dims import Assertion, Dim, is_symbolic, product, same_dim, symbols_of
from tract_core.errors import DimError, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import FloorRem, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import steps

ROWS = Rows()


@aten(
    ROWS,
    "aten.view.default",
    "aten.view_copy.default",
    "aten._reshape_copy",
    "aten.reshape",
    "aten._unsafe_view",
    "aten.flatten",
    "aten.unflatten",
)
def reshape(call: Call, wire: NodeWiring) -> OutletId:
    """The same elements in another shape, which PyTorch tells"""
    return wire.reshape(call.input("self"), call.shape())


@aten(ROWS, "aten.resize")
def resize(call: Call, wire: NodeWiring) -> OutletId:
    """The first elements in another shape. Raises Unsupported where there may be more than there were"""
    x, shape = call.input("self"), call.shape()
    size, wanted = wire.shape(x).volume, product(shape)
    if not wire.model.known.less_or_equal(wanted, size):
        hint = "use torch.cat or pad, so that it is told what the others are"
        raise Unsupported(f"{size} elements become {wanted}, of which PyTorch leaves some open", hint=hint)
    flat = wire.reshape(x, (size,))
    return wire.reshape(flat if same_dim(size, wanted) else wire.op(Slice(0, 0, wanted), flat), shape)


@aten(ROWS, "aten.permute", "aten.permute_copy")
def permute(call: Call, wire: NodeWiring) -> OutletId:
    """The axes in another order"""
    x = call.input("self")
    return wire.transpose(x, call.axes("dims", wire.rank(x)))


@aten(ROWS, "aten.transpose.int")
def transpose(call: Call, wire: NodeWiring) -> OutletId:
    """Two axes change places"""
    x = call.input("self")
    if not wire.rank(x):
        return x
    a, b = (call.axis(name, wire.rank(x)) for name in ("dim0", "dim1"))
    order = list(range(wire.rank(x)))
    order[a], order[b] = b, a
    return wire.transpose(x, order)


@aten(ROWS, "aten.t")
def t(call: Call, wire: NodeWiring) -> OutletId:
    """The transposed matrix; vectors stay"""
    x = call.input("self")
    return wire.transpose(x, list(reversed(range(wire.rank(x)))))


@aten(ROWS, "aten.unsqueeze")
def unsqueeze(call: Call, wire: NodeWiring) -> OutletId:
    """A new axis of size 1"""
    x = call.input("self")
    return wire.unsqueeze(x, [call.axis("dim", wire.rank(x) + 1)])


@aten(ROWS, "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims")
def squeeze(call: Call, wire: NodeWiring) -> OutletId:
    """Without axes of size 1: those that are named, or all"""
    x = call.input("self")
    named = call.integers("dim", range(wire.rank(x)))
    axes = wire.axes(list(named), wire.rank(x)) if wire.rank(x) else []
    for size in (wire.shape(x)[axis] for axis in axes):
        _rely_on_more_than_one(wire, size)
    return wire.squeeze(x, [axis for axis in axes if same_dim(wire.shape(x)[axis], 1)])


def _rely_on_more_than_one(wire: NodeWiring, size: Dim) -> None:
    """PyTorch keeps axes whose size is dynamic, as if it were never 1: so another program is not taken for this one."""
    if is_symbolic(size) and symbols_of(size) <= set(wire.model.symbols.names):
        with suppress(DimError):  # what no assertion can say
            wire.model.symbols.add_assertion(Assertion(size, ">=", 2))


@aten(ROWS, "aten.roll")
def roll(call: Call, wire: NodeWiring) -> OutletId:
    """Axes, or all elements in row-major order, moved on; what leaves at the end comes in at the start"""
    x, shifts, dims = call.input("self"), call.dims("shifts"), call.integers("dims")
    if not dims:
        flat = wire.reshape(x, (wire.shape(x).volume,))
        return wire.reshape(_rolled(wire, flat, 0, shifts[0]), call.shape())
    for axis, shift in zip(dims, shifts, strict=True):
        x = _rolled(wire, x, wire.axis(axis, wire.rank(x)), shift)
    return x


def _rolled(wire: NodeWiring, x: OutletId, axis: int, shift: Dim) -> OutletId:
    size = wire.shape(x)[axis]
    if isinstance(shift, int) and isinstance(size, int):
        cut: Dim = size - shift % size if size else 0
    elif isinstance(shift, int) and wire.model.known.less_or_equal(abs(shift), size):
        cut = -shift if shift < 0 else size - shift
    else:
        places = wire.binary(Sub(), steps(wire, 0, size), wire.const([shift]))
        return wire.op(Gather(axis), x, wire.binary(FloorRem(), places, wire.const([size])))
    if same_dim(cut, 0) or same_dim(cut, size):
        return x
    return wire.op(TypedConcat(axis), wire.op(Slice(axis, cut, size), x), wire.op(Slice(axis, 0, cut), x))


@aten(ROWS, "aten.native_channel_shuffle", "aten.channel_shuffle")
def channel_shuffle(call: Call, wire: NodeWiring) -> OutletId:
    """The channels of each group in turn"""
    x, groups = call.input("self"), call.integer("groups")
    items, channels, *rest = wire.shape(x)
    split = wire.reshape(x, (items, groups, channels // groups, *rest))
    return wire.reshape(wire.transpose(split, [0, 2, 1, *range(3, len(rest) + 3)]), call.shape())
