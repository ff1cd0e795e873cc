"""Which columns count in each row: those that the joins of a model do not surely leave out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, lcm

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic
from tract_core.frozen import frozen
from tract_core.model.typed import TypedNode
from tract_core.ops.rounding import limits
from tract_core.plugins.keys import Array
from tract_pulse.bands.analysis import LARGEST_UNIT, Along, BandAnalysis, Side
from tract_pulse.bands.far import FILL, Far
from tract_pulse.stream import CannotStream, PastLimit

AnalysisFor = Callable[[int, Side], BandAnalysis]
"""The analysis of one side, for a block size."""


@frozen
class Join:
    """A node that joins the columns of its inputs: ``neutral``, for each, the element that makes no difference."""

    node: TypedNode
    inputs: tuple[Along, ...]
    neutral: tuple[float | None, ...]


@frozen
class Reach:
    """In a row whose position is u modulo ``unit``, columns count from ``row + first[u]`` to ``row + last[u]``.

    Where none do, ``first`` is infinity, and ``last`` minus infinity. ``granted``: the joins, by the ids of their
    nodes, in whose rows data must not mask everything. ``cut``: those that look back without limit, but for the one
    that was asked for.
    """

    unit: int
    first: Array
    last: Array
    granted: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()

    def window(self, delay: int, pulse: Dim) -> tuple[int | None, int]:
        """How many columns count before the rows of a pulse (``None`` for all), and behind them, for rows so late.

        The delay says which rows come together: chunks of the signal may be a pulse each, or lie across two.
        """
        if is_symbolic(pulse):
            before, ahead = -self.first.min(), self.last.max()
        else:
            rows = np.arange(int(pulse))
            together = gcd(int(pulse), self.unit)
            places = (np.arange(-delay % together, self.unit, together)[:, None] + rows) % self.unit
            before, ahead = -(self.first[places] + rows).min(), (self.last[places] + rows).max() - rows[-1]
        return None if before == np.inf else int(max(before, 0)), int(max(ahead, 0))

    def delay(self, rows: int, columns: int, pulse: Dim) -> int:
        """The least delay of rows for which the columns that count have come, where both come as late as is said."""
        delay = max(rows, columns)
        while delay < columns + self.window(delay, pulse)[1]:
            delay += 1
        return delay


def reach_of(joins: Sequence[Join], analysis: AnalysisFor, past: PastLimit | None = None) -> Reach:
    """Which columns any of the joins needs. Raises CannotStream where that has no limit.

    ``past``: how far back those look that have no limit, where they may.
    """
    unit = 1
    while True:
        sides = analysis(unit, Side.AHEAD), analysis(unit, Side.BEHIND)
        found = [[_limit(join, side) for side in sides] for join in joins]
        wanted = lcm(unit, *(size for side in sides for size in side.units))
        if wanted == unit or wanted > LARGEST_UNIT:
            break
        unit = wanted
    cut: list[int] = []
    for join, (ahead, behind) in zip(joins, found, strict=True):
        endless = bool(behind.max() == np.inf)
        _check(join, ahead=bool(ahead.max() == np.inf), behind=endless and past is None)
        if endless:
            cut.append(join.node.id)
    places = np.arange(unit, dtype=np.float64)
    offsets = places[None, :] - places[:, None]
    first, last = np.full(unit, np.inf), np.full(unit, -np.inf)
    for join, (ahead, behind) in zip(joins, found, strict=True):
        counts = np.broadcast_to(ahead - 1 >= 1 - behind, offsets.shape)
        begin = unit * (1 - behind) + offsets
        begin = np.maximum(begin, -past) if isinstance(past, int) and join.node.id in cut else begin
        first = np.minimum(first, np.where(counts, begin, np.inf).min(1))
        last = np.maximum(last, np.where(counts, unit * (ahead - 1) + offsets, -np.inf).max(1))
    granted = tuple(join.node.id for join in joins if _relies_on_data(join, unit, analysis))
    return Reach(unit, first, last, granted, tuple(cut))


def _limit(join: Join, analysis: BandAnalysis) -> Array:
    """From which distance on an element makes no difference: where one of several factors is 0, for a product."""
    found = np.full((1, 1), np.inf)
    for source, along, neutral in zip(join.node.inputs, join.inputs, join.neutral, strict=True):
        if neutral is not None:
            kind = analysis.whole.outlet_fact(source).datum_type.storage
            found = np.minimum(found, _counts_nothing(analysis.far(source, along), neutral, kind))
    return found


def _counts_nothing(far: Far, neutral: float, kind: DatumType) -> Array:
    if np.isinf(neutral):
        least, most = limits(kind) if kind.is_integer() else (FILL, -FILL)
        out = far.high <= least if neutral < 0 else far.low >= most
        return np.where(far.is_flat & out, far.beyond, np.inf)
    return np.where(far.is_all(neutral), far.beyond, np.inf)


def _relies_on_data(join: Join, unit: int, analysis: AnalysisFor) -> bool:
    """Whether a mask that fills with a number would fill whole rows, which then average all, if data said so.

    Raises CannotStream where it may do so whatever data says: where a position does not see itself.
    """
    relies = False
    for source, along, neutral in zip(join.node.inputs, join.inputs, join.neutral, strict=True):
        kind = analysis(unit, Side.OWN).whole.outlet_fact(source).datum_type
        if neutral is None or not np.isinf(neutral) or not kind.is_float():
            continue
        sign = -1.0 if neutral > 0 else 1.0
        sides = (analysis(unit, side).far(source, along).times(sign) for side in (Side.AHEAD, Side.BEHIND))
        if not any((np.isfinite(far.high) & (far.high <= FILL)).any() for far in sides):
            continue
        own = [analysis(unit, side).far(source, along).times(sign) for side in (Side.OWN, Side.OWN_OR_NOT)]
        seen = [bool((far.low > FILL).all() and (far.per_block >= 0).all()) for far in own]
        relies |= not all(seen)
        if not any(seen):
            raise CannotStream(
                "its mask leaves nothing in some rows, where a number in the place of minus infinity averages all",
                hint="mask with minus infinity, or let each position see itself",
            ).of(join.node.id)
    return relies


def _check(join: Join, *, ahead: bool, behind: bool) -> None:
    if not ahead and not behind:
        return
    if ahead and behind:
        problem = "it joins all positions of the signal with each other: no mask limits which of them count"
        hint = "mask all but a band around each position, as where(abs(i - j) < 64, scores, -inf)"
    elif ahead:
        problem = "its mask looks ahead without limit, so that nothing is known before the signal has ended"
        hint = "let each position see a limited number of those behind it, or none, as in a causal model"
    else:
        problem = "its mask looks back without limit, so that each pulse would need all of the past"
        hint = (
            "limit how far it looks back, as with i - j < 128, or let the transform do so, as in --pulse 8,past=128, "
            "or Pulse(8, past=128); 'all' in the place of 128 keeps all of the past"
        )
    raise CannotStream(problem, hint=hint).of(join.node.id)
