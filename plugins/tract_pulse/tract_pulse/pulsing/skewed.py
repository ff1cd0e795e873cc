"""Wire scores by relative position for the rows of a pulse, and the distances of its window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim, symbols_of
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.axis import Reshape
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.slice import Slice
from tract_pulse.bands.analysis import Along
from tract_pulse.pulsing.node import speaks_of
from tract_pulse.pulsing.skew import Skew
from tract_pulse.pulsing.square import SquareNode
from tract_pulse.stream import CannotStream


class SkewWiring:
    """Wires a skew for the rows of a pulse.

    ``node``: the one that ends it. ``read``: gives what a tensor that is the same in every pulse is over pulses.
    """

    def __init__(self, node: SquareNode, skew: Skew, read: Callable[[OutletId], OutletId]) -> None:
        self.node, self.skew, self.read = node, skew, read
        self.symbol = node.rate.symbol

    def wire(self, rows: OutletId) -> OutletId:
        """``rows``: those of the pulse. Returns the block. Raises CannotStream for a pulse that is no number."""
        window, (count, columns) = self.node.window, self.node.sizes
        if not isinstance(count, int):
            raise CannotStream(f"a pulse of {count} is no number, which scores by relative position want")
        if not isinstance(window.before, int):
            raise CannotStream(
                "scores by relative position want a limit to how far they look back",
                hint="give a number of positions, as in --pulse 8,past=128, or Pulse(8, past=128)",
            )
        rank = self.node.output_facts[0].rank
        if self.node.along != Along(rank - 2, rank - 1):
            raise CannotStream("its rows and columns are not its last two axes")
        table = self._distances(-(window.before + count - 1), window.ahead + count - 1)
        factors = (rows, table) if self.skew.slot == 0 else (table, rows)
        x = self.node.wire(self.skew.product.op, *factors, suffix=".by_distance")
        return self._skewed(x, rank, count, int(columns))

    def _distances(self, first: int, last: int) -> OutletId:
        """The table from one distance to another, both included; zeros where it has none, as these are masked."""
        ((begin, _), *rest), skew = self.skew.path, self.skew
        fact = self.node.whole.outlet_fact(begin.inputs[0])
        size = fact.shape[skew.axis]
        low, high = skew.centre + first, skew.centre + last + 1
        kept = max(low, 0), max(min(high, int(size)), 0)
        x = self.read(begin.inputs[0])
        x = self.node.wire(Slice(skew.axis, *kept), x, suffix=".distances")
        if kept != (low, high):
            pads = [(0, 0)] * fact.rank
            pads[skew.axis] = (kept[0] - low, high - kept[1])
            zero = PadConstant(Constant(np.zeros((), fact.datum_type.storage.numpy)))
            x = self.node.wire(Pad(tuple(pads), zero), x, suffix=".no_distance")
        for place, (node, slot) in enumerate(rest):
            inputs = [x if index == slot else self.read(source) for index, source in enumerate(node.inputs)]
            x = self.node.wire(self._of_window(node, high - low), *inputs, suffix=f".table-{place}")
        return x

    def _of_window(self, node: TypedNode, count: int) -> Any:
        """The operator on the table, for so many distances."""
        op: Any = node.op
        if not speaks_of(op, self.symbol):
            return op
        if not isinstance(op, Reshape):
            raise CannotStream("its table by distance is computed with the length of the signal")
        return replace(op, before=self._sizes(op.before, count), after=self._sizes(op.after, count))

    def _sizes(self, sizes: Sequence[Dim], count: int) -> tuple[Dim, ...]:
        return tuple(count if self.symbol in symbols_of(size) else size for size in sizes)

    def _skewed(self, x: OutletId, rank: int, rows: int, columns: int) -> OutletId:
        """Row u, column ``rows - 1 - u + w`` of the product, as row u and column w."""
        at, wire = rank - 2, self.node.wire
        kind = self.node.model.outlet_fact(x).datum_type.storage.numpy
        pads = (*((0, 0),) * (rank - 1), (1, 0))
        x = wire(Pad(pads, PadConstant(Constant(np.zeros((), kind)))), x, suffix=".padded")
        x = wire(Reshape(at, (rows, columns + rows), (columns + rows, rows)), x, suffix=".turned")
        x = wire(Slice(at, 1, columns + rows), x, suffix=".shifted")
        x = wire(Reshape(at, (columns + rows - 1, rows), (rows, columns + rows - 1)), x, suffix=".skewed")
        return wire(Slice(rank - 1, 0, columns), x)
