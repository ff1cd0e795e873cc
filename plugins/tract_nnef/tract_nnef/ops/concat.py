"""Put tensors together along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis
from tract_core.ops.concat import TypedConcat
from tract_core.ops.wiring import wire_cast
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(ROWS, STANDARD, "concat<?>(values: tensor<?>[], axis: integer) -> (value: tensor<?>)")
def read_concat(call: Call) -> OutletId:
    """Tensors one after the other. Raises CorruptModel where there are none."""
    parts = _of_one_type(call)
    return call.op(TypedConcat(call.axis("axis", call.rank(parts[0]))), *parts)


@reads(ROWS, STANDARD, "stack<?>(values: tensor<?>[], axis: integer) -> (value: tensor<?>)")
def read_stack(call: Call) -> OutletId:
    """Tensors of one shape along a new axis. Raises CorruptModel where there are none."""
    parts = _of_one_type(call)
    axis = call.axis("axis", call.rank(parts[0]) + 1)
    return call.op(TypedConcat(axis), *(call.op(AddAxis(axis), part) for part in parts))


def _of_one_type(call: Call) -> Sequence[OutletId]:
    """The tensors in the widest of their types, floats before integers. Quantised ones of several types become real."""
    parts = call.inputs("values")
    if not parts:
        raise CorruptModel(f"{call.name}: there are no tensors")
    if len({call.dtype(part) for part in parts}) == 1:
        return parts
    parts = [call.real(part) for part in parts]
    widest = max(map(call.dtype, parts), key=_width)
    return [wire_cast(call.model, call.unique("part"), part, widest) for part in parts]


def _width(kind: DType) -> tuple[bool, bool, int]:
    return kind.is_float(), kind.is_number(), kind.storage.itemsize


@ROWS.row(NNEF_WRITE, TypedConcat)
def write_concat(op: TypedConcat, node: Spelling) -> Invocation | None:
    """By its axis."""
    return node.invoke("concat", node.inputs, axis=op.axis)
