"""Values looked up by a key."""

from __future__ import annotations

import numpy as np
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, ONNX, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.lookup import Lookup
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@reads(
    ROWS,
    ONNX,
    "tract_onnx_ml_direct_lookup(input: tensor<integer>, values: tensor<?>, fallback: tensor<?>)"
    " -> (output: tensor<?>)",
)
def read_direct_lookup(call: Call) -> OutletId:
    """The value at each place; ``fallback`` for a place that there is not."""
    x, values = call.whole("input"), call.array("values")
    keys = np.arange(len(values), dtype=call.dtype(x).numpy)
    return call.op(Lookup(Constant(keys), Constant(values), _without_axes(call.array("fallback"))), x)


@reads(
    ROWS,
    ONNX,
    "tract_onnx_ml_reverse_lookup(input: tensor<?>, keys: tensor<?>, fallback: tensor<integer>,"
    " datum_type: string = 'i32') -> (output: tensor<integer>)",
)
def read_reverse_lookup(call: Call) -> OutletId:
    """The place of each element among the keys; ``fallback`` for one that is not there."""
    keys, kind = call.array("keys"), call.element_type("datum_type")
    places = np.arange(len(keys), dtype=kind.numpy)
    fallback = _without_axes(call.array("fallback").astype(kind.numpy))
    return call.op(Lookup(Constant(keys), Constant(places), fallback), call.input("input"))


def _without_axes(x: Array) -> Constant:
    return Constant(x.reshape(()) if x.size == 1 else x)


@ROWS.row(NNEF_WRITE, Lookup)
def write_lookup(op: Lookup, node: Spelling) -> Invocation | None:
    """Where either the keys or the values are the places 0, 1, 2 and so on."""
    fallback, x = node.constant("fallback", op.default), node.input(0)
    if _are_places(op.keys):
        values = node.constant("values", op.values)
        return node.invoke("tract_onnx_ml_direct_lookup", x, values, fallback=fallback, registry=ONNX)
    if not _are_places(op.values):
        return None
    kind = op.values.datum_type
    named = {"fallback": int(op.default.array), "datum_type": None if kind is DatumType.I32 else kind.short}
    return node.invoke("tract_onnx_ml_reverse_lookup", x, node.constant("keys", op.keys), **named, registry=ONNX)


def _are_places(values: Constant) -> bool:
    return values.datum_type.is_integer() and np.array_equal(values.array, np.arange(len(values.array)))
