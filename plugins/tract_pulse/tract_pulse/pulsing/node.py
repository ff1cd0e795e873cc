"""One node of the model over the whole signal, while what computes its pulses is wired: what rows of ``pulse`` see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim, same_dim
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import Condition
from tract_core.model.fact import TypedFact
from tract_core.model.fields import leaves
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.questions import node_axes
from tract_core.model.source import TypedSource
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.model.typed_graph import TypedGraph
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.plugins.keys import STATE, Array
from tract_core.plugins.tables import TableKey, function_row
from tract_pulse.ops.delay import Delay
from tract_pulse.ops.mask import PulseMask
from tract_pulse.pulsing.rate import Rate
from tract_pulse.stream import LATE, CannotStream, PastLimit, Stream, Wire


class PulseNode:
    """A node, and what its pulses are computed from.

    ``whole``: the model over the whole signal. ``model``: the one over pulses, as far as it is wired. ``wires``: its
    tensors in the place of the node's inputs. ``rate``: how much of the signal comes in one pulse. ``output_facts``:
    the facts of the outputs over the whole signal. ``past``: how far back attention looks that has no limit.
    """

    def __init__(
        self,
        whole: TypedModel,
        node: TypedNode,
        *,
        model: TypedModel,
        wires: Sequence[Wire],
        rate: Rate,
        past: PastLimit | None = None,
    ) -> None:
        self.whole, self.node, self.model = whole, node, model
        self.wires, self.rate = list(wires), rate
        self.past: PastLimit | None = past
        self.output_facts = tuple(whole.output_facts(node))
        self.waited = 0
        """By how many positions the latest of the inputs was delayed, for other reasons than what is read of it."""
        self._latest = max((wire.stream.delay for wire in wires if wire.stream is not None), default=0)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    def fact(self, wire: Wire) -> TypedFact:
        """The fact of one pulse of a tensor."""
        return self.model.outlet_fact(wire.outlet)

    def input_fact(self, slot: int) -> TypedFact:
        """The fact of an input over the whole signal."""
        return self.whole.outlet_fact(self.node.inputs[slot])

    def mapping(self) -> AxesMapping | None:
        """Which axis of which input becomes which axis of which output, over the whole signal."""
        return node_axes(self.whole, self.node)

    def stream(self, slot: int) -> Stream:
        """The stream of an input. Raises CannotStream where it is whole."""
        found = self.wires[slot].stream
        if found is None:
            raise CannotStream(f"input {slot} is the same in every pulse, wanted a stream")
        return found

    def wants_whole(self, *slots: int) -> None:
        """Raises CannotStream where one of these inputs is a stream, as weights and shapes cannot be."""
        for slot in slots:
            if slot < len(self.wires) and self.wires[slot].stream is not None:
                raise CannotStream(
                    f"input {slot} comes as a stream, which the operator wants whole",
                    hint="let it be a constant, or an input without the symbol",
                )

    def pulse(self, wire: Wire) -> Dim:
        """How many positions of a stream are in one pulse of it."""
        assert wire.stream is not None
        return self.fact(wire).shape[wire.stream.axis]

    def wire_all(self, op: TypedOp, *inputs: OutletId, suffix: str = "") -> tuple[OutletId, ...]:
        """Add an operator, under the node's name or one that begins with it; returns its outlets.

        Raises CannotStream where one of the inputs is only known at the end of the signal.
        """
        if LATE in inputs:
            slot, symbol = inputs.index(LATE), self.rate.symbol
            raise CannotStream(
                f"input {slot} is only known when the signal has ended, as its length {symbol} is", hint=_NO_WHOLE
            )
        return self.model.wire_node(self.name + suffix, op, inputs)

    def wire(self, op: TypedOp, *inputs: OutletId, suffix: str = "") -> OutletId:
        """Like `wire_all`, for an operator with one output."""
        (outlet,) = self.wire_all(op, *inputs, suffix=suffix)
        return outlet

    def delayed(self, wire: Wire, delay: int, overlap: int = 0, suffix: str = ".delay") -> Wire:
        """The stream, so many positions later, and with ``overlap`` positions in front of each pulse.

        The delay of such a stream counts from the first position of a pulse, which is one of the overlap. A stream that
        is late only because it waits waits once.
        """
        if not delay and not overlap:
            return wire
        assert wire.stream is not None
        if wire.stream.delay >= self._latest:
            self.waited += delay
        later = replace(wire.stream, delay=wire.stream.delay + delay + overlap)
        source, before = wire.outlet, self.model.nodes[wire.outlet.node]
        if isinstance(before.op, Delay) and before.op.axis == wire.stream.axis and not before.op.overlap:
            (source,), delay = before.inputs, before.op.delay + delay
        return Wire(self.kept(Delay(wire.stream.axis, delay, overlap), source, suffix=suffix), later)

    def kept(self, op: TypedOp, x: OutletId, suffix: str) -> OutletId:
        """Like `wire`, for an operator that keeps something between pulses: one that is there already serves again."""
        if x == LATE:
            return self.wire(op, x, suffix=suffix)
        readers = sorted(reader.node for reader in self.model.outlet(x).successors)
        same = (OutletId(node) for node in readers if self.model.nodes[node].op == op)
        return next(same, None) or self.wire(op, x, suffix=suffix)

    def number(self, size: Dim, what: str, hint: str = "give it as a number") -> int:
        """A size that is a number, at least for signals for which the output is not empty.

        ``what``, ``hint``: what messages call it, and what to do. Raises CannotStream for one that the length of the
        signal decides.
        """
        found = self.rate.lengths.number(size, *self.output_facts[0].shape)
        if found is None:
            raise CannotStream(f"{what} is {size}, which depends on the length of the signal", hint=hint)
        return found

    def are_equal(self, one: Dim, other: Dim) -> bool:
        """Whether two sizes are equal in every run that is not refused."""
        wanted = Condition(one, "==", other)
        if same_dim(one, other) is True or self.whole.conditions.answer(wanted, self.whole.symbols) is True:
            return True
        return self.rate.lengths.same(one, other)

    def with_known_end(self, wire: Wire, suffix: str = ".until_end") -> Wire:
        """The stream, so late that where the signal ends is known before its end goes by, for what comes behind it."""
        assert wire.stream is not None
        stream = wire.stream
        missing = self.rate.passed_before_known(stream.length, stream.delay, self.pulse(wire))
        if missing is None:
            raise CannotStream(
                f"where its input ends, after {stream.length} positions, is not known in time for what follows it",
                hint=f"let its length grow evenly with {self.rate.symbol}, or put nothing behind it",
            )
        return self.delayed(wire, missing, suffix=suffix)

    def masked(self, wire: Wire, value: float | Array, suffix: str = ".mask") -> Wire:
        """The stream, with one value wherever it holds no signal."""
        stream = wire.stream
        assert stream is not None
        constant = Constant(np.array(value, self.fact(wire).datum_type.storage.numpy))
        mask = PulseMask(stream.axis, stream.delay, stream.length + stream.delay, constant)
        return Wire(self.kept(mask, wire.outlet, suffix), stream)

    def in_step(self, wires: Sequence[Wire]) -> tuple[list[Wire], int]:
        """The same tensors, each stream as late as the latest one, and that delay."""
        latest = max((wire.stream.delay for wire in wires if wire.stream is not None), default=0)
        found = [
            wire if wire.stream is None else self._waiting(wire, latest - wire.stream.delay, f".delay-{slot}")
            for slot, wire in enumerate(wires)
        ]
        return found, latest

    def _waiting(self, wire: Wire, delay: int, suffix: str) -> Wire:
        """The stream, so many positions later; one that is the same at all positions is so at once."""
        node = self.model.nodes[wire.outlet.node]
        if wire.stream is None or not isinstance(node.op, MultiBroadcastTo):
            return self.delayed(wire, delay, suffix=suffix)
        shape = self.model.outlet_fact(node.inputs[0]).shape
        axis = wire.stream.axis - self.fact(wire).rank + len(shape)
        if axis >= 0 and shape[axis] != 1:
            return self.delayed(wire, delay, suffix=suffix)
        return replace(wire, stream=replace(wire.stream, delay=wire.stream.delay + delay))

    def output(self, outlet: OutletId, axis: int, delay: int, slot: int = 0) -> Wire:
        """An output that streams along ``axis``."""
        return Wire(outlet, Stream(axis, delay, self.output_facts[slot].shape[axis]))


PulseFn = Callable[[Any, PulseNode], Sequence[Wire] | Wire | None]
"""``(op, node) -> wires``: wire what computes one pulse of the outputs; ``None`` leaves it to the axes mapping.

Raises `CannotStream` where the operator wants of the signal what a stream does not have.
"""

PULSE: TableKey[type, PulseFn] = TableKey("pulse", "how the operator computes one pulse of a stream", function_row)


def by_axes(node: PulseNode, op: TypedOp | None = None) -> list[Wire]:
    """The rule for operators that compute each position from the same position of their inputs, and know no others.

    That is what their axes mapping says. ``op``: what is wired, if that is not the node's own operator. Raises
    CannotStream where the mapping says something else.
    """
    mapping = node.mapping()
    if mapping is None:
        raise CannotStream(f"nothing is known of how {node.node.op.name} streams", hint=_ROW)
    if op is None and node.whole.registry[STATE].find(type(node.node.op)) is not None:
        raise CannotStream(f"nothing is known of how {node.node.op.name}, which has a state, streams", hint=_ROW)
    letter = _letter(node, mapping)
    axes = [term.index(letter) if term.count(letter) == 1 else None for term in mapping.outputs]
    found = [axis for axis in axes if axis is not None]
    if len(found) < len(axes):
        raise _joins(node)
    if speaks_of(node.node.op, node.rate.symbol):
        raise CannotStream(
            f"it needs the length {node.rate.symbol} of the signal, which only its end tells", hint=_NO_WHOLE
        )
    wires, delay = node.in_step(_judged(node))
    outlets = node.wire_all(op or node.node.op, *(wire.outlet for wire in wires))
    return [
        node.output(outlet, axis, delay, slot) for slot, (outlet, axis) in enumerate(zip(outlets, found, strict=True))
    ]


def _judged(node: PulseNode) -> list[Wire]:
    """The inputs, with 0 where no signal is in those that the operator may refuse, as positions in a table."""
    found = list(node.wires)
    for slot in node.node.op.judges:
        if slot < len(found) and found[slot].stream is not None:
            found[slot] = node.masked(node.with_known_end(found[slot], f".until_end-{slot}"), 0, f".signal-{slot}")
    return found


def speaks_of(op: TypedOp, symbol: str) -> bool:
    """Whether an operator, or one in its bodies, says something by a symbol: facts of tensors do not count.

    In a body the symbol would be the size of a pulse, where it is that of an input.
    """
    for leaf in leaves(op, (TypedFact, TypedGraph)):
        if isinstance(leaf, TypedGraph):
            if any(speaks_of(node.op, symbol) for node in leaf.live_nodes() if not isinstance(node.op, TypedSource)):
                return True
        elif symbol in symbols_in(leaf):
            return True
    return False


_NO_WHOLE = "a stream only has what came so far: compute along another axis, or over a window of fixed length"
_ROW = "whoever brings the operator can add a row to the table 'pulse'"


def _letter(node: PulseNode, mapping: AxesMapping) -> str:
    """The name of the axis along which all streams come."""
    letters, lengths = set[str](), list[Dim]()
    for wire, term in zip(node.wires, mapping.inputs, strict=True):
        if wire.stream is not None:
            letters.add(term[wire.stream.axis])
            lengths.append(wire.stream.length)
            if term.count(term[wire.stream.axis]) != 1:
                raise _joins(node)
    if len(letters) != 1:
        raise CannotStream(
            "its inputs come along different axes: each position of one meets all positions of the other",
            hint="let them come along one axis; attention streams where a mask, in bands or blocks, bounds its reach",
        )
    letter = letters.pop()
    for slot, (wire, term) in enumerate(zip(node.wires, mapping.inputs, strict=True)):
        if wire.stream is None and letter in term and node.input_fact(slot).shape[term.index(letter)] != 1:
            raise CannotStream(
                f"input {slot} has a size along the axis of the stream, but is the same in every pulse",
                hint="let it be of size 1 there, or come as a stream, too",
            )
    if not all(node.are_equal(length, lengths[0]) for length in lengths):
        found = " and ".join(map(str, lengths))
        raise CannotStream(
            f"its inputs are streams of different lengths, {found}",
            hint="cut or pad them to one length",
        )
    return letter


def _joins(node: PulseNode) -> CannotStream:
    slot = next(slot for slot, wire in enumerate(node.wires) if wire.stream is not None)
    axis = node.stream(slot).axis
    return CannotStream(
        f"what it gives depends on all of axis {axis} of input {slot}, along which the signal comes", hint=_NO_WHOLE
    )
