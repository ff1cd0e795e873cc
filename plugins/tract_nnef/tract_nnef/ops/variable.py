"""What comes from outside: inputs of the graph, variables, whose values lie beside the text, and constants in it."""

from __future__ import annotations

import warnings
from math import prod
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType, DType
from tract_core.data.blocks import Q4_0, Q8_1, Blocks
from tract_core.dims import is_symbolic
from tract_core.errors import CorruptModel, ModelWarning
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.blocks import reference as unpacked_blocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.wiring import require_shape, wire_broadcast, wire_reshape
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_nnef.ops.cast import ITEMS
from tract_nnef.reading import values
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.expressions import type_name, variable
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_IN_ARCHIVES: Final = (Q4_0.name, Q8_1.name)
"""The formats of blocks that archives have."""

_NARROW: Final = {"f16": DatumType.F16, "bf16": DatumType.BF16}
"""Those that are elements of a tensor."""


@reads(ROWS, STANDARD, "external<? = scalar>(shape: integer[]) -> (output: tensor<?>)")
def read_external(call: Call) -> OutletId:
    """An input: of floats, unless the type in angle brackets or ``graph.quant`` says otherwise."""
    kind: DType = call.quantized() or ITEMS.get(call.item, DatumType.F32)
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
    array = call.reader.tensors.stored(label)
    if isinstance(array, Blocks):
        return _unpacked(call, array, label, shape)
    if array.shape != shape:
        raise CorruptModel(f"the tensor {label!r} has shape {list(array.shape)}, the graph wants {list(shape)}")
    return call.model.add_const(call.node, array)


def _unpacked(call: Call, blocks: Blocks, label: str, shape: tuple[int, ...]) -> OutletId:
    """Bytes, and the operator that unpacks them; blocks run along the last axis, or along all but the first."""
    form = blocks.format
    rows, columns = shape[:-1], shape[-1] if shape else 0
    if columns % form.length:
        rows, columns = shape[:1], prod(shape[1:])
    if prod(shape) != prod(blocks.shape) or len(shape) < 2 or columns % form.length:
        raise CorruptModel(
            f"the tensor {label!r} has shape {list(blocks.shape)}, in blocks of {form.length}, "
            f"the graph wants {list(shape)}"
        )
    content = blocks.content.reshape(*rows, columns // form.length, form.size)
    packed = call.model.add_const(f"{call.node}.blocks", content)
    if (*rows, columns) == shape:
        return call.op(UnpackBlocks(form.name), packed)
    (unpacked,) = call.model.wire_node(f"{call.node}.rows", UnpackBlocks(form.name), [packed])
    return wire_reshape(call.model, call.node, unpacked, shape)


@ROWS.row(NNEF_WRITE, UnpackBlocks)
def write_blocks(op: UnpackBlocks, node: Spelling) -> Invocation | None:
    """A variable in blocks, where they are known. What reads it gets floats of 32 bits; products take them as any.

    One of floats in a format that archives do not have. Warns with ModelWarning.
    """
    packed, shape = node.input_fact(0).constant, node.output_fact().shape
    if packed is None or node.output_fact().rank < 2 or not packed.size:
        return None
    if op.form in _NARROW:
        return _write_narrow(op, node, packed)
    if op.form not in _IN_ARCHIVES:
        return _write_floats(op, node, packed)
    if op.to is not DatumType.F32 and not (op.to is DatumType.F16 and _is_cast_by_readers(node)):
        return None
    sizes = tuple(int(size) for size in shape)
    blocks = Blocks(FORMATS[op.form], sizes, np.ascontiguousarray(packed).reshape(-1))
    return variable(node.writer.hold(node.node.name, blocks), sizes)


def _write_narrow(op: UnpackBlocks, node: Spelling, packed: Array) -> Invocation | None:
    """A variable of floats of 16 bits, and their conversion; ``None`` where the archive may have either no more."""
    if not node.allows(CORE) or (op.form == "bf16" and not node.allows(PY)):
        return None
    array = np.ascontiguousarray(packed).view(_NARROW[op.form].numpy)[..., 0]
    stored = node.let("stored", variable(node.writer.hold(f"{node.node.name}.stored", Constant(array)), array.shape))
    return node.invoke("tract_core_cast", stored, to=type_name(op.to), registry=CORE)


def _write_floats(op: UnpackBlocks, node: Spelling, packed: Array) -> Invocation:
    warnings.warn(
        f"weights in blocks of {op.form} are written as {op.to.short}: archives have no such blocks, "
        "and are larger than what the model was read from",
        ModelWarning,
        stacklevel=2,
    )
    floats = Constant(unpacked_blocks(op, packed))
    return variable(node.writer.hold(node.node.name, floats), floats.array.shape)


def _is_cast_by_readers(node: Spelling) -> bool:
    """Whether all that read it say that they want f16: the established engine casts blocks in no other way."""
    model = node.writer.model
    readers = [model.nodes[inlet.node] for outlet in node.outlets() for inlet in model.outlet(outlet).successors]
    return all(_says_type(reader.op) and reader.outputs[0].fact.datum_type is DatumType.F16 for reader in readers)


def _says_type(op: TypedOp) -> bool:
    from tract_nnef.ops.einsum import as_matmul

    return isinstance(op, Gather) or (isinstance(op, EinSum) and as_matmul(op.axes) is None)


@reads(ROWS, STANDARD, "constant<? = scalar>(shape: integer[], value: ?[]) -> (output: tensor<?>)")
def read_constant(call: Call) -> OutletId:
    """A tensor whose elements are listed, or are all the one that is.

    Raises CorruptModel for another number of them, and for anything but values.
    """
    value, shape = values.written(call.value("value"), call.model), call.dims("shape")
    held = values.literal(value, ITEMS.get(call.item, DatumType.F32))
    if not isinstance(held, np.ndarray):
        raise CorruptModel(f"constant: numbers are wanted as values, found {values.shown(value)}")
    if held.size == 1 and not all(size == 1 for size in shape):
        return wire_broadcast(call.model, call.unique("constant"), call.constant_array(held.reshape(())), shape)
    if any(map(is_symbolic, shape)) or held.size != prod(map(int, shape)):
        sizes = ", ".join(map(str, shape))
        raise CorruptModel(f"constant: there are {held.size} values, wanted 1, or as many as [{sizes}] has")
    return call.constant_array(held.reshape([int(size) for size in shape]))


@reads(ROWS, STANDARD, "update<?>(variable: tensor<?>, value: tensor<?>) -> (result: tensor<?>)")
def read_update(call: Call) -> OutletId:
    """The new value of a variable, which keeps its old one: every run begins with the values of the file.

    Warns with ModelWarning. Raises CorruptModel for another shape.
    """
    variable, value = call.input("variable"), call.input("value")
    require_shape(call.model, call.node, "value", value, call.shape(variable))
    warnings.warn(
        f"{call.node}: a variable is updated, which holds for this run only; "
        "make it an input and an output of the graph to carry it on",
        ModelWarning,
        stacklevel=2,
    )
    return value
