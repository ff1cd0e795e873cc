"""What is said of a model over pulses: what each of its nodes adds to the delay, and what it keeps between pulses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from tract_core.analysis.findings import Sheet
from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic
from tract_core.model.graph import OutletId
from tract_core.model.questions import node_cost
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.scan import Scan, StateInput
from tract_core.runtime.streams import Streamed, StreamEnd
from tract_pulse.pulsing.translate import Translation
from tract_pulse.stream import Wire

Cell = str | int | float | None


def streamed(found: Translation, whole: TypedModel) -> Mapping[str, Streamed]:
    """The tensors of the model over the whole signal, by name, that a model over pulses has."""
    outputs = {
        found.wires[outlet].outlet: whole.outlet_name(outlet) for outlet in whole.outputs if outlet in found.wires
    }
    tensors: dict[str, Streamed] = {}
    for outlet, wire in found.wires.items():
        if not _is_there(wire):
            continue
        own = whole.outlet_name(outlet) if outlet in whole.outputs else None
        name = own or outputs.get(wire.outlet) or found.model.outlet_name(wire.outlet)
        stream = wire.stream
        end = None if stream is None else StreamEnd(stream.axis, stream.delay, stream.length)
        tensors[whole.outlet_name(outlet)] = Streamed(name, end)
    return tensors


def sheets(found: Translation, whole: TypedModel) -> Iterator[Sheet]:
    """Tables for people: nodes that add to the delay, outputs, what is kept, and what is taken for granted."""
    late = Lateness(found, whole)
    added = tuple(row for node_id in whole.eval_order() if (row := late.row(whole.nodes[node_id])) is not None)
    if added:
        columns = ("node", "operator", "adds", "adds (input)", "looks ahead (input)", "delay", "delay (input)")
        yield Sheet("what each node adds to the delay, in its own positions and in those of the input", columns, added)
    outputs = tuple(late.output(outlet) for outlet in whole.outputs if outlet in found.wires)
    if outputs:
        columns = ("output", "axis", "in a pulse", "delay", "delay (input)", "length")
        yield Sheet("outputs", columns, outputs)
    kept = tuple(_kept(found.model))
    if kept and not found.blocked:
        total = ("all", "", *(_sum([row[place] for row in kept]) for place in (2, 3)))
        yield Sheet("kept between pulses", ("node", "operator", "elements", "bytes"), (*kept, total))
    cut = [whole.nodes[node_id] for node_id in found.cut]
    if cut:
        columns = ("node", "operator", "positions before its own that each one sees", "exact for signals of up to")
        fits = found.past + 1 if isinstance(found.past, int) else found.past
        rows = tuple((node.name, node.op.name, found.past, fits) for node in cut)
        yield Sheet("attention that has no limit of its own", columns, rows)
    nodes = [whole.nodes[node_id] for node_id in found.granted]
    if nodes:
        rows = tuple((node.name, node.op.name, "data never masks all of a row with a number") for node in nodes)
        yield Sheet("taken for granted", ("node", "operator", "that"), rows)


class Lateness:
    """How late streams are, in positions of the first input that streams."""

    def __init__(self, found: Translation, whole: TypedModel) -> None:
        self.found, self.whole = found, whole
        first = next(wire for outlet in whole.inputs if (wire := found.wires[outlet]).stream is not None)
        self._pulse = self._pulse_of(first)

    def row(self, node: TypedNode) -> tuple[Cell, ...] | None:
        """What a node adds; ``None`` for one that adds nothing, and looks at nothing but the present."""
        outs = [wire for outlet in node.outlets() if (wire := self.found.wires.get(outlet)) is not None]
        out = next((wire for wire in outs if _is_there(wire) and wire.stream is not None), None)
        ins = [self.found.wires[outlet] for outlet in node.inputs if outlet in self.found.wires]
        ins = [wire for wire in ins if _is_there(wire) and wire.stream is not None]
        if out is None or not ins:
            return None
        after, scale = self.delay(out), self.scale(out)
        befores = [(self.delay(wire), self.scale(wire)) for wire in ins]
        if after is None or not scale or any(before is None for before, _ in befores):
            return (node.name, node.op.name, None, None, None, out.stream.delay if out.stream else None, None)
        before, unit = max((delay or Fraction(0), scale or Fraction(1)) for delay, scale in befores)
        added = after - before
        ahead = added - self.found.waited.get(node.id, 0) * unit
        if not added and not ahead:
            return None
        own = out.stream.delay if out.stream is not None else 0
        return (node.name, node.op.name, *map(_number, (added / scale, added, ahead)), own, _number(after))

    def output(self, outlet: OutletId) -> tuple[Cell, ...]:
        """How an output comes."""
        name, wire = self.whole.outlet_name(outlet), self.found.wires[outlet]
        if not _is_there(wire) or wire.stream is None:
            return (name, None, None, None, None, None)
        stream, pulse = wire.stream, self._pulse_of(wire)
        return (name, stream.axis, _size(pulse), stream.delay, _number(self.delay(wire)), str(stream.length))

    def delay(self, wire: Wire) -> Fraction | None:
        """How late a stream is, in positions of the input; ``None`` where nothing tells."""
        assert wire.stream is not None
        scale = self.scale(wire)
        return Fraction(0) if not wire.stream.delay else None if scale is None else wire.stream.delay * scale

    def scale(self, wire: Wire) -> Fraction | None:
        """How many positions of the input are one of a stream."""
        pulse = self._pulse_of(wire)
        if pulse == self._pulse:
            return Fraction(1)
        return (
            None
            if is_symbolic(pulse) or is_symbolic(self._pulse) or pulse == 0
            else Fraction(int(self._pulse), int(pulse))
        )

    def _pulse_of(self, wire: Wire) -> Dim:
        assert wire.stream is not None
        return self.found.model.outlet_fact(wire.outlet).shape[wire.stream.axis]


def _is_there(wire: Wire) -> bool:
    """Whether a tensor has a place in the model over pulses already."""
    return wire.outlet.node >= 0


def _kept(model: TypedModel) -> Iterator[tuple[Cell, ...]]:
    """What the nodes of a model keep from one turn to the next, where that is not nothing."""
    for node in model.live_nodes():
        sizes: list[tuple[Dim, int]] = []
        for kind, count in node_cost(model, node).items():
            if kind.startswith("BUF("):
                sizes.append((count, DatumType[kind[4:-1]].itemsize))
        if isinstance(node.op, Scan) and not node.op.reset_every_turn:  # a loop's states count as nothing in its cost
            slots = (slot for slot, mapping in enumerate(node.op.inputs) if isinstance(mapping, StateInput))
            facts = [model.outlet_fact(node.inputs[slot]) for slot in slots]
            sizes += [(fact.shape.volume, fact.datum_type.itemsize) for fact in facts]
        elements = sum((count for count, _ in sizes), start=0)
        if elements != 0:
            yield node.name, node.op.name, _size(elements), _size(sum((count * size for count, size in sizes), start=0))


def _sum(cells: list[Cell]) -> Cell:
    numbers = [cell for cell in cells if isinstance(cell, int)]
    return sum(numbers) if len(numbers) == len(cells) else None


def _size(size: Dim) -> int | str:
    return str(size) if is_symbolic(size) else int(size)


def _number(value: Fraction | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)
