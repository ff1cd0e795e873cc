"""Tensors with two axes of time, as the scores of attention: the rows of a pulse, each with a window of columns.

Nothing is wired for such a tensor until an operator joins its columns, as a weighted sum does. By then, all that leads
there is known: which positions surely make no difference, and how late rows and columns come. Only the others are in
the window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.questions import node_axes
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.tables import TableKey, function_row
from tract_pulse.bands.analysis import NEUTRAL, Along, BandAnalysis, Side, along_inputs, growing
from tract_pulse.bands.reach import Join
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.pulsing.rate import Rate
from tract_pulse.pulsing.skew import skew_of
from tract_pulse.stream import SQUARE, CannotStream, PastLimit, Wire


@frozen
class Window:
    """Rows come ``delay`` late. Their columns begin ``before`` positions earlier, and end ``ahead`` positions later.

    Where ``before`` is a symbol, it grows with each pulse.
    """

    before: Dim
    ahead: int
    delay: int


class SquareNode(PulseNode):
    """A node with two axes of time, or one that joins one of them, while the rows of a pulse are wired.

    ``along``: where rows and columns are in the output; ``along_inputs``: in the inputs. ``inputs``: what it reads.
    ``sizes``: of a block, rows and columns.
    """

    along: Along
    along_inputs: Sequence[Along]
    window: Window
    inputs: Sequence[OutletId]
    sizes: tuple[Dim, Dim]

    def block(self, shape: Sequence[Dim], along: Along) -> tuple[Dim, ...]:
        """The sizes of a block of a tensor that has ``shape`` over the whole signal."""
        places = dict(zip(along, self.sizes, strict=True))
        return tuple(places.get(axis, size) for axis, size in enumerate(shape))


WindowFn = Callable[[Any, SquareNode], OutletId]
"""``(op, node) -> outlet``: wire the rows of one pulse of the output, with a window of columns."""

WINDOW: TableKey[type, WindowFn] = TableKey(
    "window", "how the operator computes the rows of a pulse, with a window of columns", function_row
)


class Squares:
    """What is shared by the joins of one model: what is known of masks, and what has been wired for which window.

    ``wires``: as in `Translation`. ``blocks``: by tensor, place of rows and columns, and window. ``late``: streams as
    rows, or as windows of columns. ``signals``: by length, true at the positions of the signal. ``granted``: as in
    `Reach`. ``past``: as of `reach_of`. ``cut``: the joins that have no other limit, by the ids of their nodes.
    """

    def __init__(
        self,
        whole: TypedModel,
        model: TypedModel,
        rate: Rate,
        wires: Mapping[OutletId, Wire],
        past: PastLimit | None = None,
    ) -> None:
        self.whole, self.model, self.rate, self.wires = whole, model, rate, wires
        self.past: PastLimit | None = past
        self.cut: dict[int, None] = {}
        self._before: dict[Dim, Dim] = {}
        self.blocks: dict[tuple[OutletId, Along, Window], OutletId] = {}
        self.late: dict[tuple[OutletId, str, Window], OutletId] = {}
        self.signals: dict[Dim, Wire] = {}
        self.granted: dict[int, None] = {}
        self._analyses: dict[tuple[int, Side], BandAnalysis] = {}

    def before(self, pulse: Dim) -> Dim:
        """How many positions came before a pulse, of streams that come in pulses of that size."""
        if pulse not in self._before:
            self._before[pulse] = self.model.symbols.new_symbol("before")
        return self._before[pulse]

    @cached_property
    def order(self) -> dict[int, int]:
        """For each node, its place in the order of evaluation."""
        return {node_id: place for place, node_id in enumerate(self.whole.eval_order())}

    def analysis(self, unit: int, side: Side) -> BandAnalysis:
        """Of one side, for a block size."""
        if (unit, side) not in self._analyses:
            self._analyses[unit, side] = BandAnalysis(self.whole, self.rate.symbol, unit, side)
        return self._analyses[unit, side]

    def is_square(self, outlet: OutletId) -> bool:
        """Whether a tensor waits for its columns to be joined."""
        return self.wires[outlet].outlet == SQUARE


@frozen
class Cone:
    """An operator that joins columns, and all that leads there.

    ``nodes``: those of tensors with two axes of time, in order, then the operator itself; each with the place of rows
    and columns in its output. ``joins``: those that join columns. ``leaves``: what is read that has one axis of time.
    ``row_length``, ``column_length``: of the signal along both.
    """

    nodes: tuple[tuple[TypedNode, Along], ...]
    joins: tuple[Join, ...]
    leaves: tuple[tuple[OutletId, Along], ...]
    row_length: Dim
    column_length: Dim


def cone_of(squares: Squares, end: TypedNode) -> Cone:
    """What leads to a node that joins one of two axes of time. Raises CannotStream where it joins neither, or both."""
    along, inputs = _ends(squares, end)
    reads: dict[tuple[int, Along], Reads] = {(end.id, along): Reads(end.inputs, inputs)}
    leaves: dict[tuple[OutletId, Along], None] = {}
    waiting = [(end.id, along)]
    while waiting:
        key = waiting.pop()
        for source, place in zip(*reads[key], strict=True):
            _check_place(squares, key[0], source, place)
            if not squares.is_square(source):
                leaves[source, place] = None
            elif (source.node, place) not in reads:
                reads[source.node, place] = _reads(squares, squares.whole.nodes[source.node], place)
                waiting.append((source.node, place))
    ordered = sorted(reads, key=lambda key: squares.order[key[0]])
    joins = [_join(squares, node_id, reads[node_id, place].places) for node_id, place in ordered]
    slot = next(slot for slot, source in enumerate(end.inputs) if squares.is_square(source))
    shape, (row, column) = squares.whole.outlet_fact(end.inputs[slot]).shape, inputs[slot]
    assert row is not None
    assert column is not None
    return Cone(
        tuple((squares.whole.nodes[node_id], place) for node_id, place in ordered),
        tuple(join for join in joins if join is not None),
        tuple(leaves),
        shape[row],
        shape[column],
    )


class Reads(NamedTuple):
    """What a node of a cone reads, and where rows and columns are in it."""

    sources: Sequence[OutletId]
    places: Sequence[Along]


def _reads(squares: Squares, node: TypedNode, place: Along) -> Reads:
    """All inputs of a node; of one that ends a skew, the rows."""
    skew = skew_of(squares.whole, node, squares.rate.symbol)
    if skew is not None:
        return Reads([skew.rows], [Along(skew.row, None)])
    return Reads(node.inputs, along_inputs(squares.whole, node, place))


def _ends(squares: Squares, node: TypedNode) -> tuple[Along, list[Along]]:
    """Where the rows are in the output of a node that joins columns, and where both are in its inputs."""
    whole = squares.whole
    slot = next(slot for slot, source in enumerate(node.inputs) if squares.is_square(source))
    row, mapping = whole.registry[NEUTRAL].find(type(node.op)), node_axes(whole, node)
    if row is None or mapping is None:
        raise CannotStream(f"nothing is known of how {node.op.name} joins one of two axes of time", hint=_ROW)
    axes = growing(whole.outlet_fact(node.inputs[slot]), squares.rate.symbol)
    joined = [axis for axis in axes if row(node.op, slot, axis) is not None]
    if len(joined) != 1:
        raise CannotStream(f"it joins axes {joined} of input {slot}, along both of which the signal comes")
    (column,) = joined
    rows = next(axis for axis in axes if axis != column)
    letters = [mapping.inputs[slot][axis] for axis in (rows, column)]
    inputs = [Along(*(_place(term, letter) for letter in letters)) for term in mapping.inputs]
    return Along(_place(mapping.outputs[0], letters[0]), None), inputs


def _place(term: str, letter: str) -> int | None:
    return term.index(letter) if term.count(letter) == 1 else None


def _check_place(squares: Squares, reader: int, source: OutletId, place: Along) -> None:
    axes = growing(squares.whole.outlet_fact(source), squares.rate.symbol)
    strays = [axis for axis in axes if not place.has(axis)]
    if strays:
        raise CannotStream(
            f"axis {strays[0]} of its input {squares.whole.outlet_name(source)!r} grows with the signal, but is neither"
            " the axis of its rows nor that of its columns"
        ).of(reader)


def _join(squares: Squares, node_id: int, inputs: Sequence[Along]) -> Join | None:
    """How a node joins columns, if it does."""
    node = squares.whole.nodes[node_id]
    row = squares.whole.registry[NEUTRAL].find(type(node.op))
    if row is None:
        return None
    try:
        if any(
            place.row is not None and row(node.op, slot, place.row) is not None for slot, place in enumerate(inputs)
        ):
            raise CannotStream("it joins the rows of what is joined along its columns behind it")
        neutral = tuple(
            None if place.column is None else row(node.op, slot, place.column) for slot, place in enumerate(inputs)
        )
    except CannotStream as error:
        raise error.of(node_id) from None
    return Join(node, tuple(inputs), neutral) if any(value is not None for value in neutral) else None


_ROW = "whoever brings the operator can add a row to the table 'neutral'"
