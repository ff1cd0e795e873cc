"""The models inside an operator, over pulses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tract_core.dims import Dim
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import STATE
from tract_pulse.ops.delay import Delay
from tract_pulse.pulsing.lengths import Lengths, in_full
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.pulsing.translate import Translation, walk
from tract_pulse.stream import CannotStream, Stream, Wire


class Body:
    """A body of the operator of a node, over pulses. ``wires``: its outputs, and how they come.

    ``name``: what messages call it. ``inputs``: for each input of the body, the fact of one pulse, and how it comes.
    ``outside``: what its symbols are in the model around it. Raises CannotStream with all that cannot be streamed.
    """

    def __init__(
        self,
        node: PulseNode,
        name: str,
        body: TypedModel,
        inputs: Sequence[tuple[TypedFact, Stream | None]],
        outside: Mapping[str, Dim],
    ) -> None:
        whole = in_full(body.substitute(outside), node.rate.symbol)
        found = Translation(whole, whole.empty_like(), past=node.past)
        found.model.symbols = whole.symbols.copy()
        found.model.symbols.add_symbols(node.model.symbols)
        for outlet, (fact, stream) in zip(whole.inputs, inputs, strict=True):
            if stream is not None and not node.are_equal(whole.outlet_fact(outlet).shape[stream.axis], stream.length):
                raise CannotStream(f"{name} takes {whole.outlet_fact(outlet)}, which is not always of the same length")
            source = found.model.add_source(whole.outlet_name(outlet), fact.without_value())
            found.wires[outlet] = Wire(source, stream)
        walk(found, replace(node.rate, lengths=Lengths(whole, node.rate.symbol, node.rate.lengths)))
        if found.blocked:
            raise _blocked(name, found)
        self.wires = [found.wires[outlet] for outlet in whole.outputs]
        self.model = found.model
        for condition, origin in whole.conditions:
            self.model.conditions.add(condition, origin)
        self.model.set_outputs([wire.outlet for wire in self.wires])

    @property
    def streams(self) -> list[Stream | None]:
        """How the outputs come."""
        return [wire.stream for wire in self.wires]

    def later(self, slot: int, delay: int) -> None:
        """Delay an output."""
        wire = self.wires[slot]
        if delay and wire.stream is not None:
            name = self.model.unique_name(f"output_{slot}.delay")
            (outlet,) = self.model.wire_node(name, Delay(wire.stream.axis, delay), [wire.outlet])
            self.wires[slot] = Wire(outlet, replace(wire.stream, delay=wire.stream.delay + delay))
            self.model.set_outputs([one.outlet for one in self.wires])

    @property
    def keeps(self) -> list[str]:
        """The names of the nodes that keep something from one turn to the next."""
        table = self.model.registry[STATE]
        return [node.name for node in self.model.live_nodes() if table.find(type(node.op)) is not None]


def _blocked(name: str, found: Translation) -> CannotStream:
    reasons = [f"node {node.name!r} ({node.op.name}): {error.problem}" for node, error in found.blocked]
    hints = dict.fromkeys(error.hint for _, error in found.blocked if error.hint is not None)
    return CannotStream(f"in {name}, {'; '.join(reasons)}", hint="; ".join(hints) or None)
