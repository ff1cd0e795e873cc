"""Conversions between element types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.data import DatumType, QuantizedType
from tract_core.errors import CorruptModel
from tract_core.limits import limits_now
from tract_core.model.graph import OutletId
from tract_core.ops.cast import Cast
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.expressions import type_name
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
    value = call.value("input")
    if isinstance(value, OutletId) or isinstance(to, QuantizedType):
        return call.op(Cast(to), call.tensor("input"))
    natural = call.tensor("input")
    cuts = call.dtype(natural).is_float() and to.is_integer()
    return call.op(Cast(to), natural) if cuts else call.tensor("input", to)


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
    x = call.real(call.tensor("input"))
    return x if call.dtype(x) == to else call.op(Cast(to), x)


@reads(ROWS, STANDARD, "copy<?>(x: tensor<?>) -> (y: tensor<?>)")
def read_copy(call: Call) -> OutletId:
    """The tensor itself; ``graph.quant`` may say another type of the result."""
    return call.tensor("x")


@reads(ROWS, STANDARD, "copy_n<?>(x: tensor<?>, times: integer) -> (y: tensor<?>[])")
def read_copy_n(call: Call) -> list[OutletId]:
    """The tensor itself, several times."""
    times = call.integer("times")
    if not 0 <= times <= limits_now().max_nodes:
        raise CorruptModel(f"copy_n: {times} copies are wanted")
    return [call.tensor("x")] * times


@ROWS.row(NNEF_WRITE, Cast)
def write_cast(op: Cast, node: Spelling) -> Invocation | None:
    """By the name of the type; its parameters stand in ``graph.quant``."""
    return node.invoke("tract_core_cast", node.input(0), to=type_name(op.to), registry=CORE)
