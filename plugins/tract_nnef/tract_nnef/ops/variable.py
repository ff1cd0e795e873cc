"""What comes from outside: inputs of the graph, and variables, whose values lie beside the text."""

from __future__ import annotations

from tract_core.data import DatumType, DType
from tract_core.errors import CorruptModel
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, STANDARD, reads

ROWS = Rows()


@reads(ROWS, STANDARD, "external<? = scalar>(shape: integer[]) -> (output: tensor<?>)")
def read_external(call: Call) -> OutletId:
    """An input: of floats, unless the type in angle brackets or ``graph.quant`` says otherwise."""
    kinds: dict[str, DType] = {"scalar": DatumType.F32, "integer": DatumType.I64, "logical": DatumType.BOOL}
    kind = call.quantized() or kinds.get(call.item, DatumType.F32)
    return call.source(TypedFact.of(kind, call.dims("shape")))


@reads(ROWS, CORE, "tract_core_external(datum_type: string, shape: integer[]) -> (output: tensor<?>)")
def read_typed_external(call: Call) -> OutletId:
    """An input of any element type, with symbols in its shape."""
    kind = call.quantized() or call.element_type("datum_type")
    return call.source(TypedFact.of(kind, call.dims("shape")))


@reads(ROWS, STANDARD, "variable<? = scalar>(label: string, shape: integer[]) -> (output: tensor<?>)")
def read_variable(call: Call) -> OutletId:
    """A constant, from the file of its label. Raises CorruptModel where that has another shape."""
    label, shape = call.text("label"), call.integers("shape")
    array = call.reader.tensors.tensor(label)
    if array.shape != shape:
        raise CorruptModel(f"the tensor {label!r} has shape {list(array.shape)}, the graph wants {list(shape)}")
    return call.model.add_const(call.model.unique_name(call.node), array)
