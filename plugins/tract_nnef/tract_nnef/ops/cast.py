"""Conversions between element types."""

from __future__ import annotations

from tract_core.data import QuantizedType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.cast import Cast
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
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
    if not isinstance(value, OutletId) and not isinstance(to, QuantizedType):
        return call.tensor("input", to)
    return call.op(Cast(to), call.tensor("input"))


@ROWS.row(NNEF_WRITE, Cast)
def write_cast(op: Cast, node: Spelling) -> Invocation | None:
    """By the name of the type; its parameters stand in ``graph.quant``."""
    return node.invoke("tract_core_cast", node.input(0), to=type_name(op.to), registry=CORE)
