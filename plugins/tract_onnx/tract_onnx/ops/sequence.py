"""Sequences of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType, SequenceType
from tract_core.data.containers import KNOWN_ITEMS
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import CorruptModel, FactError
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import RmAxis
from tract_core.ops.loop import wire_loop
from tract_core.ops.sequence import (
    SequenceAt,
    SequenceConstruct,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    SplitToSequence,
    item_shape,
    wire_at,
    wire_concat_from,
)
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_onnx.body import Body, read_body
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "SequenceConstruct")
def construct(node: OnnxNode, wire: Wiring) -> OutletId:
    """The inputs, in order"""
    inputs = wire.all_inputs()
    return wire.op(SequenceConstruct(wire.dtype(inputs[0])), *inputs)


@onnx_op(ROWS, "SequenceEmpty")
def empty(node: OnnxNode, wire: Wiring) -> OutletId:
    """Nothing, where tensors of type ``dtype`` could be"""
    return wire.op(SequenceConstruct(node.element_type("dtype", DatumType.F32)))


@onnx_op(ROWS, "SequenceInsert")
def insert(node: OnnxNode, wire: Wiring) -> OutletId:
    """One more tensor, in front of a position or at the end"""
    return wire.op(SequenceInsert(), wire.input(0), wire.input(1), *_position(wire, 2))


@onnx_op(ROWS, "SequenceErase")
def erase(node: OnnxNode, wire: Wiring) -> OutletId:
    """The tensor at a position, or the last one, left out"""
    return wire.op(SequenceErase(), wire.input(0), *_position(wire, 1))


def _position(wire: Wiring, slot: int) -> list[OutletId]:
    position = wire.optional_input(slot)
    return [] if position is None else [position]


@onnx_op(ROWS, "SequenceAt")
def at(node: OnnxNode, wire: Wiring) -> OutletId:
    """The tensor at a position"""
    return wire.through(wire_at, wire.input(0), wire.input(1))


@onnx_op(ROWS, "SequenceLength")
def length(node: OnnxNode, wire: Wiring) -> OutletId:
    """The number of tensors"""
    return wire.op(SequenceLength(), wire.input(0))


@onnx_op(ROWS, "ConcatFromSequence")
def concat_from(node: OnnxNode, wire: Wiring) -> OutletId:
    """The tensors joined along ``axis``, which may be a new one"""
    return wire.through(wire_concat_from, wire.input(0), node.integer("axis"), new_axis=node.flag("new_axis"))


@onnx_op(ROWS, "SplitToSequence")
def split(node: OnnxNode, wire: Wiring) -> OutletId:
    """A tensor cut along ``axis``: slices where the sizes of the pieces are known"""
    x, sizes = wire.input(0), wire.optional_input(1)
    if wire.rank(x) == 0:
        raise FactError("a tensor without axes cannot be split")
    axis = node.axis("axis", wire.rank(x), 0)
    keep_axis = sizes is not None or node.flag("keepdims", default=True)
    if sizes is None:
        sizes = wire.const(np.array(1, np.int64))
    whole = wire.shape(x)[axis]
    pieces = _pieces(wire, whole, sizes)
    if pieces is None:
        return wire.op(SplitToSequence(axis, keep_axis), x, sizes)
    if any(not is_symbolic(size) and int(size) < 0 for size in pieces) or not may_equal(sum(pieces), whole):
        raise CorruptModel(f"pieces of sizes {', '.join(map(str, pieces))} are wanted of an axis of size {whole}")
    start: Dim = 0
    found: list[OutletId] = []
    for size in pieces:
        piece = wire.op(Slice(axis, start, start + size), x)
        found.append(piece if keep_axis else wire.op(RmAxis(axis), piece))
        start = start + size
    return wire.op(SequenceConstruct(wire.dtype(x)), *found)


def _pieces(wire: Wiring, size: Dim, sizes: OutletId) -> Sequence[Dim] | None:
    """The sizes of the pieces; ``None`` when they, or their number, are only known in a run, or there are many."""
    known = wire.dims(sizes)
    if known is None or len(known) > KNOWN_ITEMS:
        return None
    if wire.rank(sizes) == 1:
        return known
    chunk = known[0]
    if is_symbolic(size) or is_symbolic(chunk):
        return None
    size, chunk = int(size), int(chunk)
    if chunk < 1:
        raise CorruptModel(f"SplitToSequence into pieces of size {chunk}")
    whole, rest = divmod(size, chunk)
    return None if whole > KNOWN_ITEMS else [*[chunk] * whole, *([rest] if rest else [])]


@onnx_op(ROWS, "SequenceMap")
def sequence_map(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | None]:
    """A graph applied to the tensors of a sequence, one after the other"""
    inputs, graph = wire.all_inputs(), node.graph("body")
    if len(inputs) != len(graph.input):
        raise CorruptModel(f"SequenceMap has {len(inputs)} inputs, its body has {len(graph.input)}")
    facts = [_item_fact(wire, x) for x in inputs]
    inner = read_body(node, wire, graph, facts)
    results = [inner.model.outlet_fact(outlet).datum_type for outlet in inner.model.outputs]
    count = wire.op(SequenceLength(), inputs[0])
    empty_ones = [wire.op(SequenceConstruct(kind)) for kind in results]

    def body(carried: Sequence[TypedFact]) -> tuple[TypedModel, Sequence[OutletId]]:
        return _map_body(wire, carried, list(zip(inputs, facts, strict=True)), inner), [*inputs, *inner.captured]

    yes = wire.const(np.array(True))
    return wire.through(wire_loop, count, yes, empty_ones, make_body=body)


def _item_fact(wire: Wiring, x: OutletId) -> TypedFact:
    """What the body sees of an input: an item of a sequence, or the tensor itself."""
    fact = wire.fact(x)
    if not isinstance(fact.datum_type, SequenceType):
        return fact.without_value()
    item = fact.datum_type.item
    return TypedFact.of(item.datum_type, item_shape(wire.model, wire.label("item"), item, x))


def _map_body(
    wire: Wiring, carried: Sequence[TypedFact], inputs: Sequence[tuple[OutletId, TypedFact]], inner: Body
) -> TypedModel:
    """One iteration: an item of every sequence, the graph, and each result put at the end of its sequence.

    ``inputs``: with the fact of what the graph sees of each.
    """
    body = wire.model.empty_like()
    index = body.add_source("index", TypedFact.of(DatumType.I64, ()))
    sequences = [body.add_source(f"result{slot}", fact) for slot, fact in enumerate(carried)]
    read: list[OutletId] = []
    for slot, (x, seen) in enumerate(inputs):
        source = body.add_source(f"input{slot}", wire.fact(x).without_value())
        is_sequence = isinstance(wire.dtype(x), SequenceType)
        at_index = SequenceAt(tuple(seen.shape))
        read.append(wire_one(body, f"item{slot}", at_index, source, index) if is_sequence else source)
    for slot, x in enumerate(inner.captured):
        read.append(body.add_source(f"outer{slot}", wire.fact(x).without_value()))
    if len(inner.model.inputs) != len(read):
        raise FactError(f"the body of SequenceMap has {len(inner.model.inputs)} inputs, {len(read)} are given")
    results = inline_body(body, inner.model, read)
    grown = [
        wire_one(body, f"grown{slot}", SequenceInsert(), sequence, result)
        for slot, (sequence, result) in enumerate(zip(sequences, results, strict=True))
    ]
    body.set_outputs([body.add_const("again", np.array(True)), *grown])
    return body
