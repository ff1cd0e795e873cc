"""Loops that go on while a condition holds.

A loop that only counts up to a number runs once for each slice of what it reads by that count, and what it writes by
the count is put together at the end (`Scan`). Any other one hands all that it changes from one iteration to the next
(`Loop`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, dim_min, same_dim
from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.loop import wire_loop
from tract_core.ops.scan import (
    FullInput,
    FullOutput,
    InputMapping,
    OutputMapping,
    Scan,
    ScannedInput,
    StateInput,
    forgetful,
)
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.body import Argument, argument_of, read_body
from tract_tensorflow.graphdef.flow import Bound, Flow, bounds_of
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.if_then_else import truth_of
from tract_tensorflow.graphdef.ops.sequence import zeros_for
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring, Variable

ROWS = Rows()


@tf_op(ROWS, "While", "StatelessWhile")
def loop(node: GraphNode, wire: GraphWiring) -> Sequence[OutletId | None]:
    """A function that runs on what it gave before, while another one says so"""
    condition, body = node.function("cond"), node.function("body")
    if len(body.signature.output_arg) != len(wire.slots) or len(body.signature.input_arg) != len(wire.slots):
        raise CorruptModel(
            f"a loop of {len(wire.slots)} values has a body of {len(body.signature.input_arg)} inputs and "
            f"{len(body.signature.output_arg)} outputs"
        )
    flow = Flow(body)
    handles = {slot for slot in range(len(wire.slots)) if isinstance(wire.marks.get(slot), Variable)}
    fixed = {slot for slot in range(len(wire.slots)) if slot in handles or flow.is_unchanged(slot)}
    while_ = _While(node, wire, flow, condition, body, fixed)
    if not while_.changing:  # it is over at once, or never
        return wire.slots
    counted = _counted(while_)
    return _as_loop(while_) if counted is None else _as_scan(while_, counted)


@frozen
class _While:
    """A loop. ``fixed``: the values that no iteration changes, handles among them."""

    node: GraphNode
    wire: GraphWiring
    flow: Flow
    condition: Message
    body: Message
    fixed: set[int]

    @property
    def changing(self) -> list[int]:
        """The values that iterations change."""
        return [slot for slot in range(len(self.wire.slots)) if slot not in self.fixed]

    def outer(self, slots: Sequence[int]) -> list[OutletId]:
        """Those of some values that a body has as inputs: tensors of which no value is known."""
        found = [self.wire.slots[slot] for slot in slots if slot in self.fixed]
        return [outlet for outlet in found if outlet is not None and self.wire.fact(outlet).value is None]


# --- loops that count ---


@frozen
class _Counted:
    """What is known of a loop that counts.

    ``count``: how many iterations there are. ``scanned``: the nodes that read a list by the count, and which it is.
    ``joined``: the lists that are written by the count, and what is written.
    """

    count: Dim
    scanned: Mapping[str, int] = field(default_factory=dict[str, int])
    joined: Mapping[int, str] = field(default_factory=dict[int, str])


def _counted(loop: _While) -> _Counted | None:
    """What a loop that counts reads and writes; ``None`` for one that does not, or that reads nothing by its count."""
    bounds = bounds_of(loop.condition)
    limits = [_iterations(loop, bound) for bound in bounds or ()]
    known = [limit for limit in limits if limit is not None]
    if not known or len(known) < len(limits):
        return None
    count = known[0]
    for other in known[1:]:
        count = count if same_dim(count, other) else dim_min(count, other)
    counters = {slot for slot in loop.changing if loop.flow.is_counter(slot) and _start(loop, slot) == 0}
    scanned = {
        node.name: slot
        for slot in loop.fixed
        for node in loop.flow.readers(slot)
        if _is_read_by_count(loop, node, slot, counters) and same_dim(loop.wire.shape(loop.wire.input(slot))[0], count)
    }
    joined = {slot: text for slot in loop.changing if (text := _written(loop, slot, counters, count)) is not None}
    return _Counted(count, scanned, joined) if scanned else None


def _iterations(loop: _While, bound: Bound) -> Dim | None:
    start = _start(loop, bound.counter)
    if bound.counter in loop.fixed or start is None or not loop.flow.is_counter(bound.counter):
        return None
    if bound.number is not None:
        return max(bound.number - start, 0)
    if bound.argument not in loop.fixed:
        return None
    dims = loop.wire.dims(loop.wire.input(bound.argument))
    return None if dims is None or len(dims) != 1 else dims[0] - start


def _start(loop: _While, slot: int) -> int | None:
    """The number that a counter begins with, where it is known."""
    outlet = loop.wire.slots[slot]
    if slot in loop.wire.marks or outlet is None or not loop.wire.dtype(outlet).is_integer():
        return None
    known = loop.wire.constant(outlet)
    return int(known.reshape(())) if known is not None and known.size == 1 else None


def _is_read_by_count(loop: _While, node: Message, slot: int, counters: set[int]) -> bool:
    return (
        node.op == "TensorListGetItem"
        and slot not in loop.wire.marks
        and len(node.input) >= 2
        and loop.flow.argument(node.input[0]) == slot
        and loop.flow.argument(node.input[1]) in counters
        and loop.wire.rank(loop.wire.input(slot)) > 0
    )


def _written(loop: _While, slot: int, counters: set[int], count: Dim) -> str | None:
    """What a loop writes to a list by its count, where it does nothing else with the list."""
    reserved = loop.wire.reserved(slot)
    node = loop.flow.producer(loop.flow.results[slot], "TensorListSetItem", "TensorListPushBack")
    if reserved is None or node is None or len(node.input) < 2:
        return None
    length = loop.wire.dims(reserved[1])
    alone = [reader.name for reader in loop.flow.readers(slot)] == [node.name]
    if node.op == "TensorListPushBack":
        is_its = alone and loop.flow.argument(node.input[0]) == slot and length == (0,)
        return node.input[1] if is_its else None
    if len(node.input) < 3:
        return None
    by_count = loop.flow.argument(node.input[0]) == slot and loop.flow.argument(node.input[1]) in counters
    return node.input[2] if alone and by_count and length is not None and same_dim(length[0], count) else None


def _as_scan(loop: _While, counted: _Counted) -> list[OutletId | None]:
    wire, idle = loop.wire, _idle_counters(loop, counted)
    states = [slot for slot in loop.changing if slot not in counted.joined and slot not in idle]
    start = [_first(loop, slot) for slot in states]
    slices = [wire.input(slot) for slot in counted.scanned.values()]
    pieces = [wire.fact(x).without_value().with_shape((1, *wire.shape(x)[1:])) for x in slices]
    given = _arguments(loop, {slot: wire.fact(x).without_value() for slot, x in zip(states, start, strict=True)})
    # A list that is only read by the count is there in slices alone.
    for slot in set(counted.scanned.values()):
        if all(reader.name in counted.scanned for reader in loop.flow.readers(slot)):
            given[slot] = Variable("a list that is read in slices")
    for slot in (*counted.joined, *idle):
        given[slot] = Variable("a list that is written in order, or what counts")
    whole = {name: fact.with_shape(fact.shape[1:]) for name, fact in zip(counted.scanned, pieces, strict=True)}
    wanted = [*(loop.flow.results[slot] for slot in states), *counted.joined.values()]
    inner = read_body(loop.node, wire, loop.body, given, wanted=wanted, replaced=whole)
    seen = [slot for slot in range(len(given)) if slot in loop.fixed and not isinstance(given[slot], Variable)]
    outer = loop.outer(seen)

    body = wire.model.empty_like()
    read = {
        f"state{slot}": body.add_source(f"state{slot}", wire.fact(x).without_value())
        for slot, x in zip(states, start, strict=True)
    }
    fed = [body.add_source(f"outer{place}", wire.fact(x)) for place, x in enumerate(outer)]
    cut = [
        wire_one(body, f"slice{place}.whole", RmAxis(0), body.add_source(f"slice{place}", fact))
        for place, fact in enumerate(pieces)
    ]
    order = _inputs_in_order(loop, given, states, list(read.values()), fed)
    found = inline_body(body, inner, [*order, *cut])
    joined = [wire_one(body, f"joined{place}", AddAxis(0), x) for place, x in enumerate(found[len(states) :])]
    body.set_outputs([*found[: len(states)], *joined])
    mappings: list[InputMapping] = [StateInput() for _ in states]
    mappings += [FullInput() for _ in outer] + [ScannedInput(0) for _ in slices]
    outputs = [OutputMapping(state=True, last=place) for place in range(len(states))]
    outputs += [OutputMapping(full=FullOutput(len(states) + place, 0)) for place in range(len(joined))]
    op = Scan(forgetful(body), tuple(mappings), tuple(outputs), external_state=True)
    results = wire.ops(op, *start, *outer, *slices)
    by_slot = dict(zip((*states, *counted.joined), results, strict=True))
    return [by_slot.get(slot, wire.slots[slot]) for slot in range(len(wire.slots))]


def _idle_counters(loop: _While, counted: _Counted) -> set[int]:
    """What counts, and is read for nothing else than to count, and to read and write lists in order."""
    flow, found = loop.flow, set[int]()
    writers = {flow.origin(flow.results[slot]).partition(":")[0] for slot in counted.joined}
    handed_on = {flow.argument(text) for text in flow.results}
    for slot in loop.changing:
        if flow.is_counter(slot) and slot not in handed_on and not loop.node.wants_output(slot):
            own = flow.origin(flow.results[slot]).partition(":")[0]
            if {reader.name for reader in flow.readers(slot)} <= {own, *counted.scanned, *writers}:
                found.add(slot)
    return found


def _inputs_in_order(
    loop: _While, given: Sequence[Argument], states: Sequence[int], read: Sequence[OutletId], fed: Sequence[OutletId]
) -> list[OutletId]:
    """What the arguments of a body are that are inputs of it, in the order of the arguments."""
    by_state, others = dict(zip(states, read, strict=True)), iter(fed)
    found: list[OutletId] = []
    for slot, argument in enumerate(given):
        if slot in by_state:
            found.append(by_state[slot])
        elif isinstance(argument, TypedFact) and argument.value is None:
            found.append(next(others))
    return found


def _arguments(loop: _While, changing: Mapping[int, TypedFact]) -> list[Argument]:
    return [
        changing[slot] if slot in changing else argument_of(loop.wire, slot) for slot in range(len(loop.wire.slots))
    ]


def _first(loop: _While, slot: int) -> OutletId:
    """What a value is before the first iteration: of a list of which nothing is set, zeros."""
    wire, reserved = loop.wire, loop.wire.reserved(slot)
    if reserved is None:
        return wire.input(slot)
    # Its elements are like those that an iteration puts into it.
    given = [argument_of(wire, one) for one in range(len(wire.slots))]
    given = [
        one.without_value() if isinstance(one, TypedFact) and place not in loop.fixed else one
        for place, one in enumerate(given)
    ]
    probe = read_body(loop.node, wire, loop.body, given, wanted=[loop.flow.results[slot]])
    fact = probe.outlet_fact(probe.outputs[0])
    inside = fact.symbols() - {
        name for outlet in wire.slots if outlet is not None for name in wire.fact(outlet).symbols()
    }
    if not fact.rank or (inside and not inside <= frozenset(wire.model.symbols.names)):
        raise Unsupported(f"the list in place {slot} of a loop is of {fact}, which nothing before the loop tells")
    item = wire.const(np.zeros((), fact.datum_type.numpy))
    return zeros_for(wire, reserved[1], wire.broadcast(item, fact.shape[1:]))


# --- any other loop ---


def _as_loop(loop: _While) -> list[OutletId | None]:
    wire, changing = loop.wire, loop.changing
    start = [_first(loop, slot) for slot in changing]
    seen = [slot for slot in sorted(loop.fixed) if not isinstance(wire.marks.get(slot), Variable)]
    outer = loop.outer(seen)

    def body(facts: Sequence[TypedFact]) -> tuple[TypedModel, Sequence[OutletId]]:
        made = wire.model.empty_like()
        made.add_source("iteration", TypedFact.of(DatumType.I64, ()))
        read = [made.add_source(f"carried{slot}", fact) for slot, fact in zip(changing, facts, strict=True)]
        fed = [made.add_source(f"outer{place}", wire.fact(x)) for place, x in enumerate(outer)]
        given = _arguments(loop, dict(zip(changing, facts, strict=True)))
        inner = read_body(loop.node, wire, loop.body, given, wanted=[loop.flow.results[slot] for slot in changing])
        after = inline_body(made, inner, _inputs_in_order(loop, given, changing, read, fed))
        after_facts = [made.outlet_fact(x).without_value() for x in after]
        asked = _arguments(loop, dict(zip(changing, after_facts, strict=True)))
        test = read_body(loop.node, wire, loop.condition, asked)
        (going,) = inline_body(made, test, _inputs_in_order(loop, asked, changing, after, fed), prefix="condition.")
        inside = GraphWiring(made, "going", [])
        made.set_outputs([truth_of(inside, going), *after])
        return made, outer

    asked = _arguments(loop, {slot: wire.fact(x) for slot, x in zip(changing, start, strict=True)})
    test = read_body(loop.node, wire, loop.condition, asked)
    all_read = [
        x
        for slot in range(len(wire.slots))
        if (x := dict(zip(changing, start, strict=True)).get(slot, wire.slots[slot])) is not None
        and wire.fact(x).value is None
    ]
    (begin,) = inline_body(wire.model, test, all_read, prefix=f"{wire.name}.condition.")
    most = wire.const(np.array(np.iinfo(np.int64).max))
    unread = {place for place, slot in enumerate(changing) if not loop.node.wants_output(slot)}
    found = wire.through(wire_loop, most, truth_of(wire, begin), start, make_body=body, unread=unread)
    by_slot = dict(zip(changing, found, strict=False))
    return [by_slot.get(slot, wire.slots[slot]) for slot in range(len(wire.slots))]
