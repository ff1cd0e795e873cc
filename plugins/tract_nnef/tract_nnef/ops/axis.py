"""Operators that only change how elements are arranged in axes."""

from __future__ import annotations

from tract_core.dims import is_symbolic
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis, moves_for
from tract_core.ops.concat import TypedConcat
from tract_core.ops.reshape import reshape_sizes
from tract_core.ops.wiring import wire_squeeze, wire_transpose, wire_unsqueeze
from tract_core.ops.wiring_dyn import wire_dyn_reshape
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, PY, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    STANDARD,
    "reshape<?>(input: tensor<?>, shape: integer[], axis_start: integer = 0, axis_count: integer = -1)"
    " -> (output: tensor<?>)",
)
def read_reshape(call: Call) -> OutletId:
    """Some axes in another shape; there, 0 stands for the size in that place, and -1 for what is left over.

    Raises CorruptModel for axes that are not there.
    """
    x, computed = call.input("input"), call.computed("shape")
    shape, start, count = call.shape(x), call.integer("axis_start"), call.integer("axis_count")
    end = len(shape) if count == -1 else start + count
    if not 0 <= start <= end <= len(shape):
        raise CorruptModel(f"reshape: axis_start {start} and axis_count {count} are outside of {len(shape)} axes")
    if computed is not None:
        kept = [call.constant_sizes(part) for part in (shape[:start], shape[end:])]
        sizes = call.op(TypedConcat(0), kept[0], computed, kept[1]) if end - start < len(shape) else computed
        return wire_dyn_reshape(call.model, call.unique("reshape"), x, sizes)
    before, wanted = shape[start:end], call.dims("shape")
    after = reshape_sizes(before, wanted)
    if after is not None:
        return x if before == after else call.op(Reshape(start, before, after), x)
    known = [before[axis] if not is_symbolic(size) and size == 0 else size for axis, size in enumerate(wanted)]
    sizes = call.constant_sizes((*shape[:start], *known, *shape[end:]))
    return wire_dyn_reshape(call.model, call.unique("reshape"), x, sizes, allow_zero=True)


@reads(ROWS, STANDARD, "transpose<?>(input: tensor<?>, axes: integer[]) -> (output: tensor<?>)")
def read_transpose(call: Call) -> OutletId:
    """The axes in another order: for each one of the output, that of the input. Those behind them stay."""
    x = call.input("input")
    axes = call.axes("axes", call.rank(x))
    if sorted(axes) != list(range(len(axes))):
        raise CorruptModel(f"transpose: axes {list(axes)} are no permutation of the first {len(axes)}")
    return wire_transpose(call.model, call.unique("transpose"), x, (*axes, *range(len(axes), call.rank(x))))


@reads(ROWS, STANDARD, "squeeze<?>(input: tensor<?>, axes: integer[]) -> (output: tensor<?>)")
def read_squeeze(call: Call) -> OutletId:
    """Axes of size 1 removed, by their numbers in the input."""
    x = call.input("input")
    return wire_squeeze(call.model, call.unique("squeeze"), x, call.axes("axes", call.rank(x)))


@reads(ROWS, STANDARD, "unsqueeze<?>(input: tensor<?>, axes: integer[]) -> (output: tensor<?>)")
def read_unsqueeze(call: Call) -> OutletId:
    """Axes of size 1 added, by their numbers in the output."""
    x = call.input("input")
    axes = call.axes("axes", call.rank(x) + len(call.integers("axes")))
    return wire_unsqueeze(call.model, call.unique("unsqueeze"), x, axes)


@ROWS.row(NNEF_WRITE, AddAxis)
def write_add_axis(op: AddAxis, node: Spelling) -> Invocation | None:
    """An axis added."""
    return node.invoke("unsqueeze", node.input(0), axes=[op.axis])


@ROWS.row(NNEF_WRITE, RmAxis)
def write_rm_axis(op: RmAxis, node: Spelling) -> Invocation | None:
    """An axis removed."""
    return node.invoke("squeeze", node.input(0), axes=[op.axis])


@ROWS.row(NNEF_WRITE, MoveAxis)
def write_move_axis(op: MoveAxis, node: Spelling) -> Invocation | None:
    """All axes, in their new order. Of moves with the same effect, one comes back: that which declutter prefers."""
    order = op.permutation(node.input_fact(0).rank)
    if node.allows(PY) and moves_for(order) != [op]:
        return None
    return node.invoke("transpose", node.input(0), axes=list(order))


@ROWS.row(NNEF_WRITE, Reshape)
def write_reshape(op: Reshape, node: Spelling) -> Invocation | None:
    """The new sizes of a run of axes. One size that is 0 is written as what is left over, as 0 means another thing.

    ``None`` for what changes nothing, which is read as nothing. The established engine takes no empty list, so that for
    it no sizes are axes removed.
    """
    if not op.after and not node.allows(PY):
        return node.invoke("squeeze", node.input(0), axes=list(range(op.at, op.at + len(op.before))))
    sizes = [-1 if size == 0 else size for size in op.after]
    if sizes.count(-1) > 1 or op.before == op.after or reshape_sizes(op.before, sizes) != op.after:
        return None
    return node.invoke("reshape", node.input(0), shape=sizes, axis_start=op.at, axis_count=len(op.before))
