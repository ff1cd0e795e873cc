"""Wire what a file passes as an input and an operator wants as an attribute.

Every function takes the parameter as an outlet. Where its value is known, be it as sizes with symbols, the operator's
static form is wired; else its dynamic twin, whose sizes are fresh symbols that the run binds. Like those in
`tract_core.ops.wiring`, they name nodes after ``name`` and return the resulting outlet; nothing is added when nothing
needs to be done. Each imports the operators that it wires, as frontends use one here and one there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tract_core.data import Constant, DatumType, DType
from tract_core.dims import Dim, ceil_div, dim_max, is_symbolic, not_negative, product
from tract_core.errors import FactError, LimitExceeded
from tract_core.limits import limits_now
from tract_core.model.conditions import may_be_zero_only_with, may_equal
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis
from tract_core.ops.wiring import fresh_size, wire_broadcast, wire_cast, wire_one, wire_reshape, wire_transpose

if TYPE_CHECKING:
    from tract_core.ops.pad import PadMode


def _known(model: TypedModel, outlet: OutletId) -> tuple[Dim, ...] | None:
    return model.outlet_fact(outlet).dims


def _length(model: TypedModel, parameter: OutletId, what: str) -> int:
    """How many sizes a parameter holds: one per axis. Raises FactError unless it is a list whose length is a number."""
    fact = model.outlet_fact(parameter)
    if fact.rank != 1 or is_symbolic(fact.shape[0]):
        raise FactError(f"{what} is given as {fact}, wanted a list of integers of known length")
    count = int(fact.shape[0])
    if count > limits_now().max_rank:
        raise LimitExceeded(f"{what} is given as {fact}: {count} axes, {limits_now().max_rank} are allowed")
    return count


def _fresh(model: TypedModel, name: str, count: int) -> tuple[Dim, ...]:
    return tuple(fresh_size(model, f"{name}_{axis}") for axis in range(count))


def wire_dyn_reshape(
    model: TypedModel, name: str, x: OutletId, shape: OutletId, *, allow_zero: bool = False
) -> OutletId:
    """``x`` in the shape that ``shape`` holds, where -1 and 0 mean what they mean to `DynReshape`."""
    from tract_core.ops.reshape import DynReshape, reshape_sizes

    wanted = _known(model, shape)
    if wanted is None:
        sizes = _fresh(model, name, _length(model, shape, "the shape"))
        return wire_one(model, name, DynReshape(sizes, allow_zero), x, shape)
    if not allow_zero:
        _require_no_zeros(model, name, model.outlet_fact(x).shape, wanted)
    found = reshape_sizes(model.outlet_fact(x).shape, wanted, allow_zero=allow_zero)
    if found is not None:
        return wire_reshape(model, name, x, found)
    sizes = tuple(size if not_negative(size) else fresh_size(model, name) for size in wanted)
    _require_volume(model, name, x, sizes)
    return wire_one(model, name, DynReshape(sizes, allow_zero), x, shape)


def _require_volume(model: TypedModel, name: str, x: OutletId, sizes: Sequence[Dim]) -> None:
    fact = model.outlet_fact(x)
    with model.noting_conditions(f"node {name!r}"):
        if not may_equal(fact.shape.volume, product(sizes)):
            raise FactError(f"{fact} has {fact.shape.volume} elements, [{','.join(map(str, sizes))}] is wanted")


def _require_no_zeros(model: TypedModel, name: str, shape: Sequence[Dim], wanted: Sequence[Dim]) -> None:
    """A size that comes out as 0 in a run would stand for the one of ``x`` in its place, which then must be 0 too."""
    with model.noting_conditions(f"node {name!r}"):
        for axis, size in enumerate(wanted):
            if is_symbolic(size):
                may_be_zero_only_with(size, shape[axis] if axis < len(shape) else 1)


def wire_expand(model: TypedModel, name: str, x: OutletId, shape: OutletId) -> OutletId:
    """``x`` stretched to the common shape of itself and the one that ``shape`` holds."""
    from tract_core.ops.broadcast_dyn import DynBroadcast

    wanted, own = _known(model, shape), model.outlet_fact(x).shape
    if wanted is not None:
        return wire_broadcast(model, name, x, (*(1,) * (len(own) - len(wanted)), *wanted))
    missing = max(_length(model, shape, "the shape") - len(own), 0)
    # A size other than 1 stays whatever the shape holds.
    sizes = tuple(
        fresh_size(model, f"{name}_{axis}") if is_symbolic(size) or size == 1 else size
        for axis, size in enumerate((*(1,) * missing, *own))
    )
    return wire_one(model, name, DynBroadcast(sizes), x, shape)


def wire_fill(model: TypedModel, name: str, shape: OutletId, value: Constant) -> OutletId:
    """A tensor of the shape that ``shape`` holds, all of whose elements are ``value``, of rank 0."""
    from tract_core.ops.fill import DynFill

    wanted = _known(model, shape)
    if wanted is not None:
        return wire_broadcast(model, name, model.add_const(f"{name}.value", value), wanted)
    return wire_one(model, name, DynFill(value, _fresh(model, name, _length(model, shape, "the shape"))), shape)


def wire_tile(model: TypedModel, name: str, x: OutletId, multipliers: OutletId) -> OutletId:
    """``x`` repeated along each axis, as often as ``multipliers`` says."""
    from tract_core.ops.tile import DynTile, Tile

    counts = _known(model, multipliers)
    if counts is None:
        sizes = _fresh(model, name, model.outlet_fact(x).rank)
        return wire_one(model, name, DynTile(sizes), x, multipliers)
    return x if all(count == 1 for count in counts) else wire_one(model, name, Tile(counts), x)


def wire_move_axes(
    model: TypedModel,
    name: str,
    x: OutletId,
    axes: OutletId,
    *,
    back: bool = False,
    sizes: Sequence[Dim] | None = None,
) -> OutletId:
    """``x`` with ``axes``, a list, moved to the end; with ``back``, from there. ``sizes``: the result's, if known."""
    from tract_core.ops.axis_dyn import DynMoveAxes, order_of

    fact = model.outlet_fact(x)
    known = model.outlet_fact(axes).constant
    if known is not None:
        return wire_transpose(model, name, x, order_of([int(axis) for axis in known], fact.rank, back=back))
    sizes = _fresh(model, name, fact.rank) if sizes is None else tuple(sizes)
    return wire_one(model, name, DynMoveAxes(sizes, back), x, axes)


def wire_pad(model: TypedModel, name: str, x: OutletId, pads: Sequence[tuple[Dim, Dim]], mode: PadMode) -> OutletId:
    """``x`` with elements added before and after each axis; negative pads cut it first."""
    from tract_core.ops.pad import Pad
    from tract_core.ops.slice import Slice

    shape = model.outlet_fact(x).shape
    grown = tuple((_not_below_zero(model, before), _not_below_zero(model, after)) for before, after in pads)
    for axis, (size, pair, added) in enumerate(zip(shape, pads, grown, strict=True)):
        before, after = (more - wanted for wanted, more in zip(pair, added, strict=True))
        if (before, after) != (0, 0):
            x = wire_one(model, f"{name}.cut{axis}", Slice(axis, before, size - after), x)
    return x if all(pair == (0, 0) for pair in grown) else wire_one(model, name, Pad(grown, mode), x)


def _not_below_zero(model: TypedModel, dim: Dim) -> Dim:
    return dim if model.known.less_or_equal(0, dim) else dim_max(dim, 0)


def wire_dyn_pad(
    model: TypedModel, name: str, x: OutletId, pads: OutletId, mode: PadMode, *, value: OutletId | None = None
) -> OutletId:
    """``x`` padded as ``pads`` says: first the numbers before every axis, then those after.

    ``value``: of rank 0, replaces the value of `PadConstant`.
    """
    from tract_core.ops.pad import DynPad, PadConstant

    rank = model.outlet_fact(x).rank
    counts = _known(model, pads)
    if isinstance(mode, PadConstant) and value is not None and (given := model.outlet_fact(value).constant) is not None:
        mode, value = PadConstant(Constant(given)), None
    if counts is not None and len(counts) == 2 * rank and value is None:
        return wire_pad(model, name, x, list(zip(counts[:rank], counts[rank:], strict=True)), mode)
    parameters = [pads] if value is None else [pads, value]
    return wire_one(model, name, DynPad(mode, _fresh(model, name, rank)), x, *parameters)


def wire_range(model: TypedModel, name: str, start: OutletId, end: OutletId, step: OutletId) -> OutletId:
    """``start``, ``start + step``, ... up to and without ``end``: three outlets of rank 0 and of one type."""
    from tract_core.ops.range import Range

    length = _range_length(model, [start, end, step])
    if length is None:
        length = fresh_size(model, f"{name}_length")
    return wire_one(model, name, Range(length), start, end, step)


def _range_length(model: TypedModel, inputs: Sequence[OutletId]) -> Dim | None:
    from tract_core.ops.range import count_steps

    facts = [model.outlet_fact(outlet) for outlet in inputs]
    if any(fact.datum_type.is_complex() for fact in facts):
        return None  # the operator refuses them
    values = [fact.constant for fact in facts]
    if all(value is not None and value.size == 1 for value in values):
        return count_steps(*(value for value in values if value is not None))
    sizes = [_size_in(model, outlet) for outlet in inputs]
    if any(size is None for size in sizes):
        return None
    start, end, step = (size for size in sizes if size is not None)
    if is_symbolic(step) or int(step) == 0:
        return None
    count = ceil_div(end - start if int(step) > 0 else start - end, abs(int(step)))
    return count if model.known.less_or_equal(0, count) else dim_max(0, count)


def _size_in(model: TypedModel, x: OutletId) -> Dim | None:
    """The one size that a tensor holds, also as a float: f32 and f64 hold those that occur exactly."""
    from tract_core.ops.cast import Cast

    fact, node = model.outlet_fact(x), model.nodes[x.node]
    if fact.datum_type in (DatumType.F32, DatumType.F64):
        if fact.constant is not None and fact.constant.size == 1:
            value = float(fact.constant.item())
            return int(value) if value.is_integer() else None
        if isinstance(node.op, Cast):
            return _size_in(model, node.inputs[0])
    return fact.dims[0] if fact.dims is not None and len(fact.dims) == 1 else None


def wire_topk(
    model: TypedModel, name: str, x: OutletId, k: OutletId, axis: int, *, largest: bool
) -> tuple[OutletId, OutletId]:
    """The ``k`` (of rank 0) largest or smallest elements along ``axis``, and their positions."""
    from tract_core.ops.topk import Topk

    known = _known(model, k)
    count = fresh_size(model, f"{name}_k") if known is None else known[0]
    values, positions = model.wire_node(name, Topk(axis, largest, count), [x, k])
    return values, positions


def wire_one_hot(
    model: TypedModel, name: str, indices: OutletId, dim: OutletId, *, axis: int, off: Constant, on: Constant
) -> OutletId:
    """``indices`` with a new axis at ``axis``, of the size that ``dim`` (of rank 0) holds; see `OneHot`."""
    from tract_core.ops.one_hot import DynOneHot, OneHot

    known = _known(model, dim)
    if known is not None:
        return wire_one(model, name, OneHot(axis, known[0], off, on), indices)
    return wire_one(model, name, DynOneHot(axis, fresh_size(model, f"{name}_size"), off, on), indices, dim)


def wire_non_zero(model: TypedModel, name: str, x: OutletId) -> OutletId:
    """The places where ``x`` is not zero; their number is a fresh symbol, the same each time that it is asked."""
    from tract_core.ops.non_zero import NonZero

    for inlet in model.outlet(x).successors:
        if isinstance(model.nodes[inlet.node].op, NonZero):
            return OutletId(inlet.node)
    return wire_one(model, name, NonZero(fresh_size(model, f"{name}_count")), x)


def wire_compress(model: TypedModel, name: str, x: OutletId, condition: OutletId, axis: int) -> OutletId:
    """The elements of ``axis`` that ``condition``, booleans of rank 1, selects; their number is a fresh symbol."""
    from tract_core.ops.compress import Compress

    return wire_one(model, name, Compress(axis, fresh_size(model, f"{name}_count")), x, condition)


def wire_eye(model: TypedModel, name: str, *, rows: Dim, columns: Dim, diagonal: int, to: DType) -> OutletId:
    """A matrix of zeros with ones where ``column - row`` is ``diagonal``."""
    from tract_core.ops.binary import Eq

    row = _wire_count(model, f"{name}.rows", diagonal, rows)
    column = _wire_count(model, f"{name}.columns", 0, columns)
    row = wire_one(model, f"{name}.down", AddAxis(1), row)
    column = wire_one(model, f"{name}.across", AddAxis(0), column)
    return wire_cast(model, name, wire_one(model, f"{name}.equal", Eq(), row, column), to)


def _wire_count(model: TypedModel, name: str, first: int, count: Dim) -> OutletId:
    from tract_core.ops.range import Range

    start, end, step = (
        model.add_const(f"{name}.{part}", value)
        for part, value in (("start", first), ("end", count + first), ("step", 1))
    )
    return wire_one(model, name, Range(count), start, end, step)
