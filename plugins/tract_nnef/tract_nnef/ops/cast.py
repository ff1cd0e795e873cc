"""Conversions between element types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.data import Constant, DatumType, QuantizedType
from tract_core.errors import CorruptModel
from tract_core.limits import limits_now
from tract_core.model.graph import OutletId
from tract_core.ops.cast import AsQuantized, Cast
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.expressions import type_name, variable
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(ROWS, CORE, "tract_core_cast(input: tensor<?>, to: string = '') -> (output: tensor<?>)")
def read_cast(call: Call) -> OutletId:
    """A conversion to the type that is named, with the parameters that ``graph.quant`` gives.

    What is written as a value is a constant of that type. Raises CorruptModel where nothing says the type, and where
    the two disagree.
    """
    quantized = call.quantized()
    if not call.text("to") and quantized is None:
        raise CorruptModel("tract_core_cast: neither 'to' nor graph.quant says the element type")
    kind = call.element_type("to") if call.text("to") else None
    if quantized is not None and kind not in (None, quantized.storage):
        raise CorruptModel(f"tract_core_cast: 'to' is {kind}, and graph.quant says {quantized}")
    to = quantized or kind
    assert to is not None  # one of them said it
    x = call.input("input")
    if isinstance(to, QuantizedType):
        return _stored(call, x, to)
    if isinstance(call.value("input"), OutletId):
        return call.op(Cast(to), call.real(x) if to.is_float() else _plain(call, x, to))
    cuts = call.dtype(x).is_float() and to.is_integer()
    return call.op(Cast(to), x) if cuts else call.input("input", to)


def _stored(call: Call, x: OutletId, to: QuantizedType) -> OutletId:
    """What becomes of that type when it is assigned: real numbers, or the integers that are stored."""
    kind = call.dtype(x)
    return call.op(Cast(to.storage), x) if kind.is_integer() and kind != to.storage else x


def _plain(call: Call, x: OutletId, to: DatumType) -> OutletId:
    """The integers that a quantised tensor stores; any other tensor as it is."""
    kind = call.dtype(x)
    return call.op(Cast(kind.storage), x) if kind.is_quantized() and to != kind.storage else x


ITEMS: Final[Mapping[str, DatumType]] = {
    "scalar": DatumType.F32,
    "integer": DatumType.I64,
    "logical": DatumType.BOOL,
    "string": DatumType.STRING,
}
"""The element types of tensors whose kind is all that the standard says."""


@reads(ROWS, STANDARD, "cast<?>(input: tensor<>) -> (output: tensor<?>)")
def read_standard_cast(call: Call) -> OutletId:
    """A conversion to the kind in angle brackets. Raises CorruptModel where there is none."""
    to = ITEMS.get(call.item)
    if to is None:
        raise CorruptModel("cast: the type in angle brackets is missing, as in cast<scalar>(x)")
    x = call.real(call.input("input"))
    return x if call.dtype(x) == to else call.op(Cast(to), x)


@reads(ROWS, STANDARD, "copy<?>(x: tensor<?>) -> (y: tensor<?>)")
def read_copy(call: Call) -> OutletId:
    """The tensor itself; ``graph.quant`` may say another type of the result."""
    return call.input("x")


@reads(ROWS, STANDARD, "copy_n<?>(x: tensor<?>, times: integer) -> (y: tensor<?>[])")
def read_copy_n(call: Call) -> list[OutletId]:
    """The tensor itself, several times."""
    times = call.integer("times")
    if not 0 <= times <= limits_now().max_nodes:
        raise CorruptModel(f"copy_n: {times} copies are wanted")
    return [call.input("x")] * times


@ROWS.row(NNEF_WRITE, AsQuantized)
def write_stored(op: AsQuantized, node: Spelling) -> Invocation | None:
    """A variable that holds the integers, where they are known; else a cast, which takes integers as those stored."""
    known = node.input_fact(0).value
    if isinstance(known, Constant):
        return variable(node.writer.hold(node.node.name, known), known.array.shape)
    return node.invoke("tract_core_cast", node.input(0), to=type_name(op.to), registry=CORE)


@ROWS.row(NNEF_WRITE, Cast)
def write_cast(op: Cast, node: Spelling) -> Invocation | None:
    """By the name of the type, with parameters in ``graph.quant``; integers are those that are stored in a file."""
    if isinstance(op.to, QuantizedType) and node.input_fact(0).datum_type.is_integer():
        return None
    return node.invoke("tract_core_cast", node.input(0), to=type_name(op.to), registry=CORE)
