"""A model over a whole signal, as a model over pulses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tract_core.dims import Dim, substitute, symbols_of
from tract_core.dims import symbol as symbol_of
from tract_core.errors import TractError, TransformError
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.model.substitute import symbols_in
from tract_core.model.translate import translate
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import Array
from tract_pulse.bands.analysis import growing
from tract_pulse.pulsing.joined import joined
from tract_pulse.pulsing.late import late_outputs
from tract_pulse.pulsing.lengths import Lengths
from tract_pulse.pulsing.node import PULSE, PulseNode, by_axes
from tract_pulse.pulsing.rate import Rate, rate_of_input
from tract_pulse.pulsing.square import Squares
from tract_pulse.stream import LATE, SQUARE, CannotStream, PastLimit, Stream, Wire


@dataclass(slots=True)
class Translation:
    """What became of a model: the one over pulses, and for each tensor of the old one its wire, if it has one.

    ``whole``: the old one. ``blocked``: all nodes that cannot be streamed, with the reason; also those behind others
    that cannot, which have no wires.
    ``waited``: what `PulseNode.waited` says of each node, by its id, where that is not 0. ``granted``, ``cut``: as in
    `Reach`. ``past``: as of `reach_of`.
    """

    whole: TypedModel
    model: TypedModel
    wires: dict[OutletId, Wire] = field(default_factory=dict[OutletId, Wire])
    blocked: list[tuple[TypedNode, TractError]] = field(default_factory=list[tuple[TypedNode, TractError]])
    waited: dict[int, int] = field(default_factory=dict[int, int])
    granted: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()
    past: PastLimit | None = None

    def block(self, node: TypedNode, error: TractError) -> None:
        """Note that a node cannot be streamed, or the one whose fault it is; the same is noted once."""
        culprit = error.node_id if isinstance(error, CannotStream) else None
        node = node if culprit is None else self.whole.nodes[culprit]
        if all(other is not node or known.problem != error.problem for other, known in self.blocked):
            self.blocked.append((node, error))


def translated(whole: TypedModel, symbol: str, pulse: Dim, past: PastLimit | None = None) -> Translation:
    """The model over pulses, as far as there is one. Raises TransformError where nothing streams.

    ``past``: as of `reach_of`.
    """
    rate = _rate(whole, symbol, pulse)
    found = _walked(whole, rate, pulse, past, on=False)
    if found.blocked:
        found.blocked = _walked(whole, rate, pulse, past, on=True).blocked
    return found


def _walked(whole: TypedModel, rate: Rate, pulse: Dim, past: PastLimit | None, *, on: bool) -> Translation:
    """``on``: whether to go on behind nodes that cannot be streamed, as if they could."""
    found = Translation(whole, whole.empty_like(), past=past)
    found.model.symbols = whole.symbols.copy()
    for name in sorted(symbols_of(pulse)):
        if name not in found.model.symbols:
            found.model.symbols.add(name)
    for outlet in whole.inputs:
        found.wires[outlet] = _input(whole, found.model, outlet, rate, pulse)
    walk(found, rate, on=on)
    return found


def walk(found: Translation, rate: Rate, *, on: bool = False) -> None:
    """Wire all nodes of a model whose inputs are wired. ``on``: as of `_walked`."""
    whole, model = found.whole, found.model
    squares = Squares(whole, model, rate, found.wires, found.past)

    def wire(node: TypedNode, inputs: Sequence[Wire]) -> Sequence[Wire] | None:
        if isinstance(node.op, TypedSource):
            return None
        pulsing = PulseNode(whole, node, model=model, wires=inputs, rate=rate, past=found.past)
        try:
            wires = _node(pulsing, squares)
        except TractError as error:
            found.block(node, error)
            wires = _stand_ins(pulsing) if on else None
        if pulsing.waited:
            found.waited[node.id] = pulsing.waited
        return wires

    translate(whole, found.wires, wire)
    for node, error in late_outputs(whole, found.wires):
        found.block(node, error)
    found.granted, found.cut = tuple(squares.granted), tuple(squares.cut)
    for outlet in whole.outputs:
        if outlet in found.wires and squares.is_square(outlet):
            found.block(whole.nodes[outlet.node], _two_axes(whole.outlet_fact(outlet), rate.symbol))


def _stand_ins(node: PulseNode) -> Sequence[Wire] | None:
    """What stands for the outputs of a node that cannot be streamed, so that what reads them is looked at, too.

    Nothing where it is not known how they would come.
    """
    found: list[Wire] = []
    for slot, fact in enumerate(node.output_facts):
        axes, shape = growing(fact, node.rate.symbol), list(fact.shape)
        try:
            for axis in axes:
                shape[axis] = node.rate.growth(shape[axis])
        except CannotStream:
            return None
        if len(axes) > 1:
            return None
        source = node.model.add_source(node.model.unique_name(node.name), TypedFact.of(fact.datum_type, shape))
        found.append(node.output(source, axes[0], 0, slot) if axes else Wire(source))
    return found


def _rate(whole: TypedModel, symbol: str, pulse: Dim) -> Rate:
    if "pulse.streaming_symbol" in whole.properties:
        raise TransformError(
            "pulse: the model takes pulses already", hint="transform the model as it was before it is pulsed"
        )
    rates, inputs, lengths = list[Rate](), list[tuple[Dim, Dim]](), Lengths(whole, symbol)
    for outlet in whole.inputs:
        axes = growing(whole.outlet_fact(outlet), symbol)
        if axes:
            length = whole.outlet_fact(outlet).shape[axes[0]]
            rates.append(rate_of_input(lengths, length, pulse))
            inputs.append((length, substitute(length, {symbol: pulse})))
    if not rates:
        raise _nothing_streams(whole, symbol, pulse)
    if any(rate != rates[0] for rate in rates):
        found = ", ".join(str(rate.pulse) for rate in rates)
        raise TransformError(
            f"pulse {pulse}: the inputs come at different rates: {found} positions of {symbol} a pulse",
            hint="give the inputs lengths that are multiples of each other, as S and 2*S",
        )
    return replace(rates[0], inputs=tuple(inputs))


def _nothing_streams(whole: TypedModel, symbol: str, pulse: Dim) -> TransformError:
    """The error for a symbol that is the size of no input."""
    facts = "; ".join(f"{whole.outlet_name(outlet)}: {whole.outlet_fact(outlet)}" for outlet in whole.inputs)
    there = sorted(frozenset[str]().union(*(whole.outlet_fact(outlet).symbols() for outlet in whole.inputs)))
    if there:
        which = there[0] if len(there) == 1 else f"one of {', '.join(there)}"
        python = f"Pulse({str(pulse)!r}, symbol={there[0]!r})"
        hint = f"name {which}, as in --pulse {there[0]}={pulse}, or {python}: the size along which the signal comes"
    elif whole.inputs:
        name, fact = whole.outlet_name(whole.inputs[0]), whole.outlet_fact(whole.inputs[0])
        example = fact.with_shape([*fact.shape[:-1], symbol_of(symbol)])
        setting = f"set_input_fact({name!r}, {str(example)!r})"
        hint = f"load the file with that symbol for the size along which the signal comes, as {setting} does"
    else:
        hint = "a model without inputs has no signal"
    return TransformError(
        f"Can not pulse a tensor with no streaming dim ({symbol}): "
        f"no input has a size with the symbol {symbol}; the inputs are {facts}",
        hint=hint,
    )


def _input(whole: TypedModel, model: TypedModel, outlet: OutletId, rate: Rate, pulse: Dim) -> Wire:
    fact = whole.outlet_fact(outlet)
    axes = growing(fact, rate.symbol)
    name = whole.outlet_name(outlet)
    if not axes:
        return Wire(model.add_source(name, fact))
    if len(axes) > 1:
        raise TransformError(
            f"pulse: the input {name!r} ({fact}) grows with {rate.symbol} along axes {axes}, it can come along one",
            hint="give the other axes symbols of their own",
        )
    length = fact.shape[axes[0]]
    shape = [substitute(size, {rate.symbol: pulse}) for size in fact.shape]
    return Wire(model.add_source(name, fact.with_shape(shape)), Stream(axes[0], 0, length))


def _node(node: PulseNode, squares: Squares) -> Sequence[Wire]:
    op = node.node.op
    if len(node.output_facts) == 1 and len(growing(node.output_facts[0], node.rate.symbol)) == 2:
        return [Wire(SQUARE)]
    if any(wire.outlet == SQUARE for wire in node.wires):
        return [joined(squares, node)]
    rule = node.whole.registry[PULSE].find(type(op))
    found = None if rule is None else rule(op, node)
    if found is None:
        found = _unchanged(node) if all(wire.stream is None for wire in node.wires) else by_axes(node)
    wires = [found] if isinstance(found, Wire) else list(found)
    for wire, fact in zip(wires, node.output_facts, strict=True):
        _check(node, wire, fact)
    return wires


def _unchanged(node: PulseNode) -> Sequence[Wire]:
    """What no stream reaches is the same in every pulse, or only known when the signal has ended."""
    op, inputs = node.node.op, [wire.outlet for wire in node.wires]
    if LATE in inputs or node.rate.symbol in symbols_in(op):
        return [Wire(LATE)] * len(node.output_facts)
    return [Wire(outlet) for outlet in node.wire_all(op, *inputs)]


def _check(node: PulseNode, wire: Wire, whole: TypedFact) -> None:
    """Raises CannotStream where an output grows with the signal along an axis that is not that of its stream."""
    axes = growing(whole, node.rate.symbol)
    stream = wire.stream
    if wire.outlet == LATE:
        return
    if stream is None and axes:
        raise CannotStream(f"its output, {whole}, grows with the signal, but does not come along one of its axes")
    if stream is not None and [axis for axis in axes if axis != stream.axis]:
        raise _two_axes(whole, node.rate.symbol)


def _two_axes(fact: TypedFact, symbol: str) -> CannotStream:
    axes = growing(fact, symbol)
    return CannotStream(f"its output, {fact}, grows with the signal along axes {axes}, and can only come along one")


def check_all_streams(found: Translation) -> None:
    """Raises TransformError that lists every node that cannot be streamed; its cause has an error for each."""
    if not found.blocked:
        return
    places = [f"node {node.name!r} ({node.op.name})" for node, _ in found.blocked]
    reasons = [error.problem for _, error in found.blocked]
    count, hints = len(found.blocked), dict.fromkeys(error.hint for _, error in found.blocked if error.hint is not None)
    listed = "; ".join(f"{place}: {reason}" for place, reason in zip(places, reasons, strict=True))
    what = (
        f"{places[0]} cannot be streamed: {reasons[0]}" if count == 1 else f"{count} nodes cannot be streamed: {listed}"
    )
    errors = zip(found.blocked, places, strict=True)
    each = [CannotStream(error.problem, where=place, hint=error.hint) for (_, error), place in errors]
    raise TransformError(f"pulse: {what}", hint="; ".join(hints) or None) from ExceptionGroup(
        "the nodes' own reasons", each
    )


def properties(found: Translation, whole: TypedModel, symbol: str) -> Iterator[tuple[str, Array]]:
    """What the model says of its streams: delays, axes, and lengths over the whole signal."""
    inputs = [found.wires[outlet].stream for outlet in whole.inputs]
    outputs = [found.wires[outlet].stream for outlet in whole.outputs]
    yield "pulse.delay", np.array([0 if one is None else one.delay for one in outputs], np.int64)
    for what, streams in (("input", inputs), ("output", outputs)):
        yield f"pulse.{what}_axes", np.array([-1 if one is None else one.axis for one in streams], np.int64)
        yield f"pulse.{what}_lengths", np.array(["" if one is None else str(one.length) for one in streams], object)
    yield "pulse.streaming_symbol", np.array([symbol], object)
