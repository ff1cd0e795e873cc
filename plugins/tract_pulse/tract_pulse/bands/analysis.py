"""Walk back from where columns are joined to the positions that masks are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np

from tract_core.dims import is_symbolic, symbols_of
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.questions import node_axes
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import TableKey, function_row
from tract_pulse.bands.far import EITHER, UNKNOWN, Far, choose, exactly

NeutralFn = Callable[[Any, int, int], "float | None"]
"""``(op, slot, axis) -> value``: the element that makes no difference where the operator joins an axis of an input.

``None`` where it does not join positions along that axis. Raises CannotStream where there is no such element. A row
says, too, that axes of which the axes mapping knows nothing stay in place.
"""

NEUTRAL: TableKey[type, NeutralFn] = TableKey(
    "neutral", "which element makes no difference to what the operator joins along an axis", function_row
)


class Along(NamedTuple):
    """Which axis of a tensor goes along the rows, and which one along the columns, where it has them."""

    row: int | None
    column: int | None

    def has(self, axis: int) -> bool:
        """Whether an axis is one of the two."""
        return axis in (self.row, self.column)


def growing(fact: TypedFact, symbol: str) -> list[int]:
    """The axes that grow with the signal, whose length is ``symbol``."""
    return [axis for axis, size in enumerate(fact.shape) if is_symbolic(size) and symbol in symbols_of(size)]


def along_inputs(whole: TypedModel, node: TypedNode, along: Along) -> list[Along]:
    """For each input of a node with one output, where the rows and columns of the output are in it."""
    mapping = node_axes(whole, node)
    stays = whole.registry[NEUTRAL].find(type(node.op)) is not None

    def before(slot: int, axis: int | None) -> int | None:
        if axis is None or mapping is None:
            return None
        (output,), source = mapping.outputs, mapping.inputs[slot]
        cut = not any(output[axis] in term for term in mapping.inputs)
        if stays and cut and len(source) == len(output) and source[axis] not in output:
            return axis
        return mapping.track(("out", 0, axis), ("in", slot))

    return [Along(before(slot, along.row), before(slot, along.column)) for slot in range(len(node.inputs))]


@frozen
class View:
    """What a row of ``band`` sees of a node: what is known of its inputs, and where rows and columns are."""

    analysis: BandAnalysis
    node: TypedNode
    along: Along
    inputs: tuple[Far, ...]

    @property
    def output(self) -> TypedFact:
        """The fact of the output."""
        return self.analysis.whole.outlet_fact(OutletId(self.node.id))

    def input_fact(self, slot: int) -> TypedFact:
        """The fact of an input."""
        return self.analysis.whole.outlet_fact(self.node.inputs[slot])

    def constant(self, slot: int) -> Array | None:
        """The value of an input, where it is part of the model."""
        return self.analysis.whole.constant(self.node.inputs[slot])

    def position(self, axis: int) -> Far | None:
        """The position along an axis of the output: a row or a column."""
        return self.analysis.position(self.along, axis)

    def rounded(self, far: Far, *, down: bool, up: bool) -> Far:
        """`Far.rounded`; the analysis is told by which unit it would be exact."""
        for coefficients in (far.per_block, far.per_distance):
            for value in np.unique(coefficients[np.isfinite(coefficients)]):
                self.analysis.units.add(Fraction(float(value)).limit_denominator(LARGEST_UNIT).denominator)
        return far.rounded(down=down, up=up)


BandFn = Callable[[Any, View], Far]
"""``(op, view) -> far``: what is surely known of the output far away from the diagonal of rows and columns."""

BAND: TableKey[type, BandFn] = TableKey(
    "band", "what is known of the output far away from the diagonal, for tensors with two axes of time", function_row
)


class Side(Enum):
    """Which columns an analysis is about."""

    AHEAD = "ahead of the row"
    BEHIND = "behind the row"
    OWN = "the row's own, where booleans that depend on data are true"
    OWN_OR_NOT = "the row's own, where booleans that depend on data are false"


_ORDINARY: Final = Far.between(-1000, 1000)
"""What scores are taken to be, where it matters whether a mask took them out."""

LARGEST_UNIT: Final = 512
"""Positions are told apart in blocks of up to so many: what is known of them is an array with a place for each pair."""


class BandAnalysis:
    """What is known of one side: of the columns ahead of the row, or of those behind it; or of the row's own.

    ``symbol``: the length of the signal. ``unit``: as in `tract_pulse.bands.far`. ``units``: block sizes with which
    more would have been known.
    """

    def __init__(self, whole: TypedModel, symbol: str, unit: int, side: Side) -> None:
        self.whole, self.symbol, self.unit, self.side = whole, symbol, unit, side
        self.units = set[int]()
        self._known: dict[tuple[OutletId, Along], Far] = {}
        self._data = _data(whole)

    def position(self, along: Along, axis: int) -> Far | None:
        """The position along an axis, which is a row or a column; ``None`` for other axes."""
        if not along.has(axis):
            return None
        places = np.arange(self.unit, dtype=np.float64)
        is_row = axis == along.row
        larger = self.side is (Side.BEHIND if is_row else Side.AHEAD)
        places = places[:, None] if is_row or self.is_own else places[None, :]
        return Far.between(places, places, -np.inf, self.unit, self.unit if larger else 0)

    @property
    def is_own(self) -> bool:
        """Whether it is about the column that is the row."""
        return self.side in {Side.OWN, Side.OWN_OR_NOT}

    def _nothing(self, fact: TypedFact) -> Far:
        """What is known of a tensor without looking."""
        if fact.datum_type.is_bool():
            return exactly(float(self.side is Side.OWN)) if self.is_own else EITHER
        return _ORDINARY if self.is_own and fact.datum_type.is_float() else UNKNOWN

    def far(self, outlet: OutletId, along: Along) -> Far:
        """What is known of a tensor of the model over the whole signal."""
        waiting = [(outlet, along)]
        while waiting:
            key = waiting[-1]
            if key in self._known:
                waiting.pop()
                continue
            inputs = list(self._inputs(*key))
            missing = [one for one in inputs if one is not None and one not in self._known]
            if missing:
                waiting += missing
                continue
            self._known[key] = self._answer(*key, inputs)
            waiting.pop()
        return self._known[outlet, along]

    def _inputs(self, outlet: OutletId, along: Along) -> Iterator[tuple[OutletId, Along] | None]:
        """The inputs that matter, ``None`` for those of which nothing is known."""
        fact, node = self.whole.outlet_fact(outlet), self.whole.nodes[outlet.node]
        if fact.constant is not None or self.whole.registry[BAND].find(type(node.op)) is None:
            return
        if outlet.node in self._data and None in along:
            return
        for source, places in zip(node.inputs, along_inputs(self.whole, node, along), strict=True):
            axes = growing(self.whole.outlet_fact(source), self.symbol)
            yield (source, places) if all(places.has(axis) for axis in axes) else None

    def _answer(self, outlet: OutletId, along: Along, inputs: Sequence[tuple[OutletId, Along] | None]) -> Far:
        fact, node = self.whole.outlet_fact(outlet), self.whole.nodes[outlet.node]
        if fact.constant is not None:
            return _of_constant(fact.constant)
        row = self.whole.registry[BAND].find(type(node.op))
        if row is None or len(inputs) < len(node.inputs) or outlet.slot:
            return self._nothing(fact)
        facts = [self.whole.outlet_fact(source) for source in node.inputs]
        known = [
            self._known[one] if one is not None else self._nothing(other)
            for one, other in zip(inputs, facts, strict=True)
        ]
        found = row(node.op, View(self, node, along, tuple(known)))
        if not self.is_own or not fact.datum_type.is_float():
            return found
        return choose([(np.isinf(found.low) & np.isinf(found.high) & (found.low < found.high), _ORDINARY)], found)


def _of_constant(array: Array) -> Far:
    if array.dtype.kind not in "iufb" or not array.size or np.isnan(array.astype(np.float64)).any():
        return UNKNOWN
    return Far.between(float(array.min()), float(array.max()))


def _data(whole: TypedModel) -> set[int]:
    """The nodes that depend on the elements of the model's inputs, of which one axis of time tells nothing."""
    found = set[int]()
    for node_id in whole.eval_order():
        node = whole.nodes[node_id]
        if isinstance(node.op, TypedSource) or any(source.node in found for source in node.inputs):
            found.add(node_id)
    return found
