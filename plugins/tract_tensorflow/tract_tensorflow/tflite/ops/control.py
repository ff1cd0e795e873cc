"""Graphs that others call: branches, loops, calls, and what a composite operator is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import same_dim
from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.model.bodies import keeps_state
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.model.typed import TypedModel
from tract_core.ops.if_then_else_wiring import Body, wire_branches
from tract_core.ops.loop import wire_loop
from tract_core.ops.scan import Scan, forgetful
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import wire_reshape
from tract_core.plugins.tables import Rows
from tract_core.transforms.scan_state import export_states
from tract_tensorflow.tflite.body import read_body
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "IF")
@tflite_op(ROWS, "IF")
def if_then_else(node: TfliteNode, wire: Wiring) -> Sequence[OutletId | None]:
    """One of two graphs; the right one takes the node's place when the condition is known"""
    given = _given(node, wire, 1)

    def read(name: str, own_scope: bool) -> Body:
        facts = [wire.fact(outlet) for outlet in given]
        body = read_body(node, wire, node.integer(name, 0), facts, own_scope=own_scope)
        return forgetful(body), _unknown(wire, given)

    names = "then_subgraph_index", "else_subgraph_index"
    return _all_of(node, wire_branches(wire.model, wire.label("if"), wire.input(0), names, read))


@quantized_op(ROWS, "STABLEHLO_CASE")
@tflite_op(ROWS, "STABLEHLO_CASE")
def case(node: TfliteNode, wire: Wiring) -> Sequence[OutletId | None]:
    """The graph whose number is given; the last one for a number that none has"""
    graphs, number = node.integers("branch_subgraph_indices", ()), wire.tensor(0).reshape(())
    if not 1 <= len(graphs) <= node.file.limits.max_depth:
        raise CorruptModel(
            f"STABLEHLO_CASE of {len(graphs)} graphs, from 1 to {node.file.limits.max_depth} are allowed"
        )
    number = (number < 0).where(len(graphs) - 1, number)
    return _all_of(node, _one_of(node, wire, number, _given(node, wire, 1), graphs))


def _one_of(
    node: TfliteNode, wire: Wiring, number: Wired, given: Sequence[OutletId], graphs: Sequence[int]
) -> Sequence[OutletId]:
    """What the first graph gives where the number is 0, else one of the others, whose numbers are one less."""

    def read(name: str, own_scope: bool) -> Body:
        if name == "first":
            facts = [wire.fact(outlet) for outlet in given]
            return forgetful(read_body(node, wire, graphs[0], facts, own_scope=own_scope)), _unknown(wire, given)
        made = wire.model.empty_like()
        captured = _unknown(wire, [number.outlet, *given])
        fresh = {outlet: made.add_source(f"given{place}", wire.fact(outlet)) for place, outlet in enumerate(captured)}
        inner = Wiring(made, "others", [], node)
        outlets = [_held(wire, inner, outlet, fresh) for outlet in (number.outlet, *given)]
        made.set_outputs([*_one_of(node, inner, Wired(inner, outlets[0]) - 1, outlets[1:], graphs[1:])])
        return made, captured

    if len(graphs) == 1:
        body, captured = read("first", False)
        return inline_body(wire.model, body, captured, prefix=f"{wire.name}.")
    return wire.through(wire_branches, number.eq(0).outlet, ("first", "others"), read)


def _held(wire: Wiring, inner: Wiring, outlet: OutletId, fresh: Mapping[OutletId, OutletId]) -> OutletId:
    """The same tensor in a branch: an input of it, or what is known."""
    value = wire.fact(outlet).value
    return inner.cast(inner.const(value), wire.dtype(outlet)) if value is not None else fresh[outlet]


@quantized_op(ROWS, "WHILE", "STABLEHLO_WHILE")
@tflite_op(ROWS, "WHILE", "STABLEHLO_WHILE")
def while_loop(node: TfliteNode, wire: Wiring) -> Sequence[OutletId | None]:
    """A graph whose outputs are its next inputs, as long as another one says so"""
    given = _given(node, wire, 0)
    condition, index = node.integer("cond_subgraph_index", 0), node.integer("body_subgraph_index", 0)
    values = len(node.inputs)
    carried, seen = given[: values + node.calls.assigned], given[values + node.calls.assigned :]
    asked = _condition(node, wire, condition, [wire.fact(outlet) for outlet in given])
    first, *carried[values:] = inline_body(wire.model, asked, _unknown(wire, given), prefix=f"{wire.name}.first.")
    loop = _Loop(node, wire, condition, index, values, seen)
    begun: list[OutletId] = []
    if any(tensor.number("is_variable") for tensor in node.file.graph(index).tables("tensors")):
        states = loop.states([wire.fact(outlet).without_value() for outlet in carried])
        begun = inline_body(wire.model, states, [*carried, *_unknown(wire, seen)], prefix=f"{wire.name}.begun.")
    most = wire.const(np.array(np.iinfo(np.int64).max))
    found = wire.through(wire_loop, most, first, [*carried, *begun], make_body=loop.turn)
    return _all_of(node, found[: len(carried)])


@frozen
class _Loop:
    """A loop. ``condition``, ``body``: its graphs.

    ``values``: how many values its node is given; ``seen``: what variables hold that it only reads.

    What operators of the body keep goes from iteration to iteration, and begins anew in each run; where an iteration
    changes the sizes of values, in each iteration. So does TFLite's interpreter, which then reserves memory anew.
    """

    node: TfliteNode
    wire: Wiring
    condition: int
    body: int
    values: int
    seen: Sequence[OutletId]

    __eq__ = object.__eq__  # it is itself alone
    __hash__ = object.__hash__

    def states(self, carried: Sequence[TypedFact]) -> TypedModel:
        """What gives the states at first, for the carried values at first."""
        found, began = self._one(carried)
        found.inputs = found.inputs[: len(found.inputs) - len(began)]
        found.set_outputs(began)
        found.prune()
        return found

    def turn(self, facts: Sequence[TypedFact]) -> tuple[TypedModel, Sequence[OutletId]]:
        """An iteration, and whether there is another one. ``facts``: of the carried values, and of the states."""
        node, wire, carried = self.node, self.wire, self.values + self.node.calls.assigned
        found, began = self._one(facts[:carried])
        after = [*(found.outlet_fact(outlet) for outlet in found.outputs[:carried]), *map(wire.fact, self.seen)]
        asked = _condition(node, wire, self.condition, after)
        read, kept = (
            found.inputs[carried : len(found.inputs) - len(began)],
            found.inputs[len(found.inputs) - len(began) :],
        )
        known = [outlet for outlet in found.outputs[:carried] if found.outlet_fact(outlet).value is None]
        again, *assigned = inline_body(found, asked, [*known, *read], prefix="again.")
        states = found.outputs[carried:]
        iteration = found.add_source(found.unique_name("iteration"), TypedFact.of(DatumType.I64, ()))
        found.inputs = [iteration, *found.inputs[:carried], *kept, *read]
        found.set_outputs([again, *found.outputs[: self.values], *assigned, *states])
        return found, _unknown(wire, self.seen)

    def _one(self, carried: Sequence[TypedFact]) -> tuple[TypedModel, list[OutletId]]:
        """The body, with what it keeps as its last inputs and outputs; and what that is at first, in the body."""
        found = read_body(self.node, self.wire, self.body, [*carried, *map(self.wire.fact, self.seen)])
        if len(found.outputs) != len(carried):
            count = len(found.outputs) - self.node.calls.assigned
            raise CorruptModel(f"graph {self.body} has {count} outputs, {self.values} values go round")
        if not keeps_state(found):
            return found, []
        if not all(_alike(one, found.outlet_fact(outlet)) for one, outlet in zip(carried, found.outputs, strict=True)):
            return forgetful(found), []
        began: list[OutletId] = []
        for place in found.eval_order():
            op = found.nodes[place].op
            if isinstance(op, Scan) and op.keeps:
                began += export_states(found, found.nodes[place], op)
        return found, began


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
    given = _given(node, wire, 0)
    body = forgetful(read_body(node, wire, index, [wire.fact(outlet) for outlet in given]))
    return _all_of(node, inline_body(wire.model, body, _unknown(wire, given), prefix=f"{wire.name}."))


def _given(node: TfliteNode, wire: Wiring, first: int) -> list[OutletId]:
    """What graphs are given: the inputs from one on, and what the variables hold that they read or assign."""
    return [wire.input(slot) for slot in range(first, len(node.inputs) + len(node.calls.held))]


def _condition(node: TfliteNode, wire: Wiring, index: int, facts: Sequence[TypedFact]) -> TypedModel:
    """The graph that says whether a loop goes on. Raises CorruptModel unless it has one output."""
    found = read_body(node, wire, index, facts)
    count = len(found.outputs) - node.calls.assigned
    if count != 1:
        raise CorruptModel(f"graph {index}, the condition of a loop, has {count} outputs, 1 is wanted")
    if keeps_state(found):
        raise Unsupported("an operator in the condition of a loop keeps something from run to run")
    going = found.outputs[0]
    fact = found.outlet_fact(going)
    if fact.rank and fact.shape.volume == 1:  # ONNX wants no axes
        going = wire_reshape(found, found.unique_name("going"), going, ())
        found.set_outputs([going, *found.outputs[1:]])
    return found


def _alike(one: TypedFact, other: TypedFact) -> bool:
    """Whether two have the same sizes."""
    return one.rank == other.rank and all(same_dim(*pair) for pair in zip(one.shape, other.shape, strict=True))


def _unknown(wire: Wiring, outlets: Sequence[OutletId]) -> list[OutletId]:
    """Those whose values are not known: what is known is a constant in the body, and no input of it."""
    return [outlet for outlet in outlets if wire.fact(outlet).value is None]


def _all_of(node: TfliteNode, found: Sequence[OutletId | None]) -> Sequence[OutletId | None]:
    """Raises CorruptModel unless there are as many as the node has outputs, and variables that are assigned."""
    count = len(found) - node.calls.assigned
    if count != len(node.outputs):
        raise CorruptModel(f"the graph that is called has {count} outputs, the node has {len(node.outputs)}")
    return found
