"""Wire the rows of a pulse, with a window of columns, up to where these are joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim
from tract_core.errors import TractError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import And
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.iff import Iff
from tract_core.ops.rounding import limits
from tract_core.ops.trilu import Trilu
from tract_core.plugins.keys import Array
from tract_pulse.bands.analysis import Along, along_inputs
from tract_pulse.bands.reach import Join, reach_of
from tract_pulse.ops.mask import PulseMask
from tract_pulse.ops.past import Past
from tract_pulse.pulsing.node import PulseNode, speaks_of
from tract_pulse.pulsing.skew import skew_of
from tract_pulse.pulsing.skewed import SkewWiring
from tract_pulse.pulsing.square import WINDOW, Cone, SquareNode, Squares, Window, cone_of
from tract_pulse.stream import CannotStream, Stream, Wire


def joined(squares: Squares, node: PulseNode) -> Wire:
    """The output of a node that joins the columns of one or more of its inputs.

    Raises CannotStream, about the node whose fault it is, where no window holds all the columns that count.
    """
    cone = cone_of(squares, node.node)
    pulse = squares.rate.growth(cone.row_length)
    if squares.rate.growth(cone.column_length) != pulse:
        raise CannotStream(f"its rows and columns, {cone.row_length} and {cone.column_length}, come at different rates")
    reach = reach_of(cone.joins, squares.analysis, squares.past)
    squares.granted.update(dict.fromkeys(reach.granted))
    squares.cut.update(dict.fromkeys(_first_of(cone.joins, reach.cut)))
    wiring = _Wiring(squares, node, cone, pulse)
    delay = reach.delay(wiring.latest(0), max(wiring.latest(1), wiring.signal_delay), pulse)
    before, ahead = reach.window(delay, pulse)
    wiring.window = Window(squares.before(pulse) if before is None else before, ahead, delay)
    for inner, along in cone.nodes:
        try:
            wiring.wire(inner, along)
        except TractError as error:
            raise CannotStream(error.problem, hint=error.hint).of(inner.id) from None
    outlet, row = wiring.outlet, cone.nodes[-1][1].row
    if row is None:
        raise CannotStream("its output has no axis of time")
    return Wire(outlet, Stream(row, delay, cone.row_length))


def _first_of(joins: Sequence[Join], ids: Sequence[int]) -> list[int]:
    """Those of some joins that do not join what another one gives, as weights."""
    every = {join.node.id for join in joins}
    return [
        join.node.id
        for join in joins
        if join.node.id in ids and not any(source.node in every for source in join.node.inputs)
    ]


class _Wiring:
    """The wiring of one cone. ``outlet``: what was wired last."""

    window: Window
    outlet: OutletId

    def __init__(self, squares: Squares, end: PulseNode, cone: Cone, pulse: Dim) -> None:
        self.squares, self.end, self.cone, self.pulse = squares, end, cone, pulse
        self.joins = {join.node.id: join for join in cone.joins}
        self.signal = self._signal()

    @property
    def signal_delay(self) -> int:
        """How late it is known which positions are in the signal."""
        assert self.signal.stream is not None
        return self.signal.stream.delay

    def latest(self, which: int) -> int:
        """The delay of the latest of what comes along the rows (0), or along the columns (1)."""
        wires = [(self.squares.wires[source].stream, place[which]) for source, place in self.cone.leaves]
        return max((stream.delay for stream, axis in wires if stream is not None and stream.axis == axis), default=0)

    def _signal(self) -> Wire:
        """True at the columns that are positions of the signal."""
        length = self.cone.column_length
        if length not in self.squares.signals:
            true = self.end.model.add_const(f"{self.end.name}.true", np.array(True))
            wire = Wire(self.end.wire(MultiBroadcastTo((self.pulse,)), true, suffix=".all"), Stream(0, 0, length))
            wire = self.end.with_known_end(wire)
            assert wire.stream is not None
            begin = wire.stream.delay
            mask = PulseMask(0, begin, length + begin, Constant(np.array(False)))
            self.squares.signals[length] = Wire(self.end.wire(mask, wire.outlet, suffix=".signal"), wire.stream)
        return self.squares.signals[length]

    def wire(self, node: TypedNode, along: Along) -> None:
        """One node; the very same outlet where it was wired before, for the same window."""
        key = (OutletId(node.id), along, self.window)
        if key not in self.squares.blocks:
            self.squares.blocks[key] = self._wired(node, along)
        self.outlet = self.squares.blocks[key]

    def _wired(self, node: TypedNode, along: Along) -> OutletId:
        squares, rate = self.squares, self.squares.rate
        found = SquareNode(squares.whole, node, model=squares.model, wires=(), rate=rate)
        join = self.joins.get(node.id)
        found.along, found.window = along, self.window
        found.sizes = (self.pulse, self.pulse + self.window.before + self.window.ahead)
        skew = skew_of(squares.whole, node, rate.symbol)
        if skew is not None:
            rows = self._input(found, skew.slot, skew.rows, Along(skew.row, None))
            return SkewWiring(found, skew, lambda source: squares.wires[source].outlet).wire(rows)
        found.along_inputs = join.inputs if join else along_inputs(squares.whole, node, along)
        found.inputs = [
            self._input(found, slot, source, place)
            for slot, (source, place) in enumerate(zip(node.inputs, found.along_inputs, strict=True))
        ]
        if join is not None:
            found.inputs = [self._only_signal(found, join, slot, outlet) for slot, outlet in enumerate(found.inputs)]
        row = squares.whole.registry[WINDOW].find(type(node.op))
        if row is not None:
            return row(node.op, found)
        if speaks_of(node.op, rate.symbol):
            raise CannotStream(f"it needs the length {rate.symbol} of the signal, which only its end tells")
        return found.wire(node.op, *found.inputs)

    def _input(self, node: SquareNode, slot: int, source: OutletId, place: Along) -> OutletId:
        """A block, or a stream as rows, or as a window of columns, or what is the same in every pulse."""
        if self.squares.is_square(source):
            return self.squares.blocks[source, place, self.window]
        wire = self.squares.wires[source]
        if wire.stream is None:
            return wire.outlet
        if node.pulse(wire) != self.pulse:
            raise CannotStream(
                f"input {slot} comes in pulses of {node.pulse(wire)}, and others in those of {self.pulse}"
            )
        role = "rows" if wire.stream.axis == place.row else "columns"
        return self._late(node, wire, role, f".{role}-{slot}")

    def _late(self, node: PulseNode, wire: Wire, role: str, suffix: str) -> OutletId:
        key = (wire.outlet, role, self.window)
        if key not in self.squares.late:
            assert wire.stream is not None
            before, ahead = (0, 0) if role == "rows" else (self.window.before, self.window.ahead)
            late = self.window.delay - ahead - wire.stream.delay
            if isinstance(before, int):
                self.squares.late[key] = node.delayed(wire, late, before + ahead, suffix).outlet
            else:
                past = Past(wire.stream.axis, late, ahead, before)
                self.squares.late[key] = node.kept(past, wire.outlet, suffix=suffix)
        return self.squares.late[key]

    def _only_signal(self, node: SquareNode, join: Join, slot: int, outlet: OutletId) -> OutletId:
        """An input of a join, with columns that are no positions of the signal as what makes no difference."""
        neutral, column = join.neutral[slot], join.inputs[slot].column
        if neutral is None or column is None or self._is_weight(join, slot):
            return outlet
        rank, model = self.squares.model.outlet_fact(outlet).rank, self.squares.model
        valid = self._late(node, self.signal, "columns", ".is_signal")
        for axis in range(rank):
            if axis != column:
                valid = node.wire(AddAxis(axis), valid, suffix=f".is_signal-{slot}")
        past = self.squares.past if node.node.id in self.squares.cut else None
        if isinstance(past, int) and join.inputs[slot].row is not None:
            near = self._near(node, join.inputs[slot], past - self.window.before, rank, suffix=f".near-{slot}")
            valid = node.wire(And(), valid, near, suffix=f".seen-{slot}")
        kind = model.outlet_fact(outlet).datum_type.storage
        value = model.add_const(f"{node.name}.nothing-{slot}", _element(neutral, kind).reshape((1,) * rank))
        return node.wire(Iff(), valid, outlet, value, suffix=f".signal-{slot}")

    def _near(self, node: SquareNode, place: Along, further: Dim, rank: int, suffix: str) -> OutletId:
        """True at near columns. ``further``: how much further back than the window they go, from its first row."""
        (row, column), model = place, self.squares.model
        assert row is not None
        assert column is not None
        shape = [size for _, size in sorted(zip((row, column), node.sizes, strict=True))]
        upper = row < column
        true = model.add_const(f"{node.name}{suffix}", np.array([[True]]))
        diagonal = model.add_const(f"{node.name}{suffix}", -further if upper else further)
        near = node.wire(MultiBroadcastTo(tuple(shape)), true, suffix=suffix)
        near = node.wire(Trilu(upper), near, diagonal, suffix=suffix)
        for axis in range(rank):
            if axis not in (row, column):
                near = node.wire(AddAxis(axis), near, suffix=suffix)
        return near

    def _is_weight(self, join: Join, slot: int) -> bool:
        """Whether an input is the output of a join, as weights of a softmax, which are 0 where there is no signal."""
        return join.neutral[slot] == 0 and join.node.inputs[slot].node in self.joins


def _element(value: float, kind: DatumType) -> Array:
    """A number in a type; for one that has no infinity, the last one on that side."""
    if np.isinf(value) and kind.is_integer():
        value = limits(kind)[value > 0]
    return np.array(value > 0 if kind.is_bool() else value, kind.numpy)
