"""Graphs that others call: branches, loops, calls, and what a composite operator is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.bodies import keeps_state
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.model.typed import TypedModel
from tract_core.ops.if_then_else_wiring import Body, wire_branches
from tract_core.ops.loop import wire_loop
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.body import read_body
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "IF")
@tflite_op(ROWS, "IF")
def if_then_else(node: TfliteNode, wire: Wiring) -> Sequence[OutletId | None]:
    """One of two graphs; the right one takes the node's place when the condition is known"""
    given = [wire.input(slot) for slot in range(1, len(node.inputs))]

    def read(name: str, own_scope: bool) -> Body:
        facts = [wire.fact(outlet) for outlet in given]
        return read_body(node, wire, node.integer(name, 0), facts, own_scope=own_scope), _unknown(wire, given)

    names = "then_subgraph_index", "else_subgraph_index"
    return _all_of(node, wire_branches(wire.model, wire.label("if"), wire.input(0), names, read))


@quantized_op(ROWS, "WHILE", "STABLEHLO_WHILE")
@tflite_op(ROWS, "WHILE", "STABLEHLO_WHILE")
def while_loop(node: TfliteNode, wire: Wiring) -> Sequence[OutletId | None]:
    """A graph whose outputs are its next inputs, as long as another one says so"""
    carried = [wire.input(slot) for slot in range(len(node.inputs))]
    condition, index = node.integer("cond_subgraph_index", 0), node.integer("body_subgraph_index", 0)
    facts = [wire.fact(outlet) for outlet in carried]
    (first,) = inline_body(
        wire.model, _condition(node, wire, condition, facts), _unknown(wire, carried), prefix=f"{wire.name}.first."
    )

    def body(facts: Sequence[TypedFact]) -> tuple[TypedModel, Sequence[OutletId]]:
        found = read_body(node, wire, index, facts)
        if len(found.outputs) != len(facts):
            raise CorruptModel(f"graph {index} has {len(found.outputs)} outputs, {len(facts)} values go round")
        if keeps_state(found):
            raise Unsupported("an operator inside a loop keeps something from run to run")
        after = _condition(node, wire, condition, [found.outlet_fact(outlet) for outlet in found.outputs])
        known = [outlet for outlet in found.outputs if found.outlet_fact(outlet).value is None]
        (again,) = inline_body(found, after, known, prefix="again.")
        iteration = found.add_source(found.unique_name("iteration"), TypedFact.of(DatumType.I64, ()))
        found.inputs = [iteration, *found.inputs[:-1]]
        found.set_outputs([again, *found.outputs])
        return found, ()

    most = wire.const(np.array(np.iinfo(np.int64).max))
    return _all_of(node, wire.through(wire_loop, most, first, carried, make_body=body))


@quantized_op(ROWS, "CALL")
@tflite_op(ROWS, "CALL")
def call(node: TfliteNode, wire: Wiring) -> Sequence[OutletId | None]:
    """Another graph, which takes the node's place"""
    return _called(node, wire, node.integer("subgraph", 0))


@quantized_op(ROWS, "STABLEHLO_COMPOSITE")
@tflite_op(ROWS, "STABLEHLO_COMPOSITE")
def composite(node: TfliteNode, wire: Wiring) -> Sequence[OutletId | None]:
    """The graph that says what the operator is made of"""
    return _called(node, wire, node.integer("decomposition_subgraph_index", 0))


def _called(node: TfliteNode, wire: Wiring, index: int) -> Sequence[OutletId | None]:
    given = [wire.input(slot) for slot in range(len(node.inputs))]
    body = read_body(node, wire, index, [wire.fact(outlet) for outlet in given])
    return _all_of(node, inline_body(wire.model, body, _unknown(wire, given), prefix=f"{wire.name}."))


def _condition(node: TfliteNode, wire: Wiring, index: int, facts: Sequence[TypedFact]) -> TypedModel:
    """The graph that says whether a loop goes on. Raises CorruptModel unless it has one output."""
    found = read_body(node, wire, index, facts)
    if len(found.outputs) != 1:
        raise CorruptModel(f"graph {index}, the condition of a loop, has {len(found.outputs)} outputs, 1 is wanted")
    return found


def _unknown(wire: Wiring, outlets: Sequence[OutletId]) -> list[OutletId]:
    """Those whose values are not known: what is known is a constant in the body, and no input of it."""
    return [outlet for outlet in outlets if wire.fact(outlet).value is None]


def _all_of(node: TfliteNode, found: Sequence[OutletId | None]) -> Sequence[OutletId | None]:
    """Raises CorruptModel unless there are as many as the node has outputs."""
    if len(found) != len(node.outputs):
        raise CorruptModel(f"the graph that is called has {len(found)} outputs, the node has {len(node.outputs)}")
    return found
