"""Loops that end when a condition says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.loop import wire_loop
from tract_core.plugins.tables import Rows
from tract_onnx.body import read_body
from tract_onnx.graph import names_read
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Loop")
def loop(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | None]:
    """A graph that runs until its condition is false, or for a number of iterations"""
    limit, begin, graph = wire.optional_input(0), wire.optional_input(1), node.graph("body")
    if limit is None and begin is None:
        raise Unsupported("Loop has neither a number of iterations nor a condition: it would not end")
    carried = [wire.input(slot) for slot in range(2, len(wire.slots))]
    if len(graph.input) != 2 + len(carried) or len(graph.output) < 1 + len(carried):
        raise CorruptModel(
            f"Loop carries {len(carried)} values, its body has {len(graph.input)} inputs and {len(graph.output)} "
            f"outputs; {2 + len(carried)} inputs and at least {1 + len(carried)} outputs are wanted"
        )
    # What exporters note of shapes in a body often holds for the first iteration only.
    file = replace(node.file, ignore_value_info=True, ignore_output_shapes=True)
    plain = replace(node, file=file)
    given = [_iteration(graph.input[0]), _condition(graph.input[1])]

    def body(facts: Sequence[TypedFact]) -> tuple[TypedModel, Sequence[OutletId]]:
        found = read_body(plain, wire, graph, [*given, *facts])
        if begin is None:  # without a condition at the start, what the body says about it does not count
            found.model.outputs[0] = found.model.add_const("again", np.array(True))
        return found.model, found.captured

    most = wire.const(np.array(np.iinfo(np.int64).max)) if limit is None else limit
    first = wire.const(np.array(True)) if begin is None else begin
    read = names_read(graph)
    untaken = {slot for slot in range(len(carried)) if graph.input[2 + slot].name not in read}
    unread = {slot for slot in range(len(carried)) if not node.wants_output(slot)}
    return wire.through(wire_loop, most, first, carried, make_body=body, untaken=untaken, unread=unread)


def _iteration(info: onnx.ValueInfoProto) -> TypedFact:
    """The number of the iteration: an integer, with one axis of size 1 where the body says so."""
    return TypedFact.of(DatumType.I64, (1,) * _rank(info))


def _condition(info: onnx.ValueInfoProto) -> TypedFact:
    """The condition, which holds whenever the body runs."""
    return TypedFact.of_value(Constant(np.full((1,) * _rank(info), True)))


def _rank(info: onnx.ValueInfoProto) -> int:
    return 1 if len(info.type.tensor_type.shape.dim) == 1 else 0
