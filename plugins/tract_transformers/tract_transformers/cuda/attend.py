"""The kernel of attention over pages.

A block takes a token and a head of keys, with some of the queries that share it. Each of its warps goes over every so
many positions of the text, 32 at a time: a position for each thread while scores are computed, of which keys have
positions innermost, and some columns for each thread while values are mixed. Softmax goes on from one time to the next,
and in the end what the warps have comes together (as in flash-decoding: https://arxiv.org/abs/2311.01282).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from tract_cuda.kernels.online import Online
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter, sizes
from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import F32, I8, I32, I64, ElementType
from tract_llvm.language.values import Value, Variable

from tract_core.frozen import frozen

SCALES: Final = ("key_scales", "value_scales")
"""What there is of each position and head beside integers of 8 bits."""

WARPS: Final = 8
"""Of a block."""

_NUMBERS_AT_ONCE: Final = 16
"""How many numbers of a key, or of values, a thread reads before it multiplies, so that it waits seldom."""

_VALUES_AT_ONCE: Final = 8
"""Of how many values these are at most."""

_QUERIES_AT_ONCE: Final = 4
"""How many numbers of a query one access to shared memory reads."""


@frozen
class GpuPagedAttendPlan:
    """Its fields are those of `PagedAttention`, and how it is computed.

    ``kept``: the type of what pages hold. ``shared``: queries of a token that share a head of keys, ``rows`` of which a
    block has. ``depth``: numbers of a key; ``width``: of a value. ``powers``: of a score and the largest one; ``bent``:
    the hyperbolic tangent, where scores have a cap.
    """

    kept: ElementType
    page: int
    shared: int
    rows: int
    depth: int
    width: int
    scale: float
    cap: float | None
    window: int | None
    sinks: bool
    powers: Expression
    bent: Expression | None

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "paged_attention"

    @property
    def threads(self) -> int:
        """Of a block."""
        return WARPS * WARP

    @property
    def columns(self) -> int:
        """How many columns of values a thread has."""
        return -(-self.width // WARP)

    @property
    def values_at_once(self) -> int:
        """How many values a thread reads before it multiplies: a power of two."""
        most = max(min(_NUMBERS_AT_ONCE // self.columns, _VALUES_AT_ONCE), 1)
        return 1 << (most.bit_length() - 1)

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``query``: how far apart tokens, heads, those that share one, and numbers are."""
        tensors = (Parameter("query", F32), *sizes("query.", 4), Parameter("keys", self.kept))
        numbers = (Parameter(name, I64) for name in ("positions", "owners", "pages"))
        sinks = [Parameter("sinks", F32)] if self.sinks else []
        scales = [Parameter(name, F32) for name in SCALES] if self.kept is I8 else []
        counts = (Parameter("heads"), Parameter("table"))
        results = (Parameter("result", F32), Parameter("refused", I32))
        return (*counts, *tensors, Parameter("values", self.kept), *scales, *numbers, *sinks, *results)

    def emit(self, k: Kernel) -> None:
        """result[t,h,g] = sum over positions of share * value"""
        with k.when(k.memory("refused")[0].equals(0)):
            _Attention(self, k).write()


class _Attention:
    """The queries of a block, while it is written."""

    def __init__(self, plan: GpuPagedAttendPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        heads, groups = k.size("heads"), k.index(plan.shared // plan.rows)
        self.token, self.head, group = k.spot(k.block(), [heads, heads, groups])
        self.first = group * plan.rows
        self.queries = k.shared(F32, plan.rows * plan.depth)
        self.tops, self.powers = (k.shared(F32, WARPS * plan.rows) for _ in range(2))
        self.mixed = k.shared(F32, WARPS * plan.rows * plan.columns * WARP)

    def write(self) -> None:
        """The whole kernel."""
        k, plan = self.k, self.plan
        self._fetch()
        k.barrier()
        position = k.convert(k.memory("positions")[self.token], k.positions)
        online = Online(k, plan.rows, WARP, plan.powers, F32)
        mixed = [[k.variable(k.constant(0, F32)) for _ in range(plan.columns)] for _ in range(plan.rows)]
        begin = k.index(0)
        if plan.window is not None:
            begin = position - (plan.window - 1)
            begin = k.select(begin > 0, begin, begin.like(0))
        with k.loop("keys", position + 1, begin + k.warp() * WARP, WARPS * WARP) as first:
            place = first + k.lane()
            at = k.smaller(place, position)
            page, inside = self._page(at), at % plan.page
            spot, powers = page * plan.page + inside, list[Value]()
            totals = self._totals(page * plan.depth * plan.page + inside)
            key_scale, value_scale = self._scales(spot)
            for row, total in enumerate(totals):
                score = self._score(total * key_scale)
                (power,), factor = online.taken(row, [k.select(place <= position, score, score.like(-inf))])
                powers.append(power * value_scale)
                for one in mixed[row]:
                    one.value = one.value * factor
            self._mix(spot * plan.width, position + 1 - first, powers, mixed)
        for row, line in enumerate(mixed):
            self._keep(row, online, [one.value for one in line])
        k.barrier()
        self._give()

    def _fetch(self) -> None:
        """The queries, to where all threads read them."""
        k, plan = self.k, self.plan
        query, (token, head, share, step) = k.memory("query"), k.sizes("query.", 4)
        start = self.token * token + self.head * head + self.first * share
        with k.loop("query", plan.rows * plan.depth, k.thread(), plan.threads) as one:
            self.queries[one] = query[start + one // plan.depth * share + one % plan.depth * step]

    def _page(self, position: Value) -> Value:
        """The place of a page and of the head, where a position of the text is."""
        k = self.k
        text = k.convert(k.memory("owners")[self.token], k.positions)
        number = k.memory("pages")[text * k.size("table") + position // self.plan.page]
        return k.convert(number, k.positions) * k.size("heads") + self.head

    def _scales(self, spot: Value) -> tuple[Value | float, Value | float]:
        """Of the key and the value at a position. ``spot``: its place among those of all pages and heads."""
        if self.plan.kept is not I8:
            return 1, 1
        key, value = (self.k.memory(name)[spot] for name in SCALES)
        return key, value

    def _totals(self, place: Value) -> list[Value]:
        """Of each row, with the key that begins at a place, whose numbers are as far apart as a page has positions."""
        k, plan, keys = self.k, self.plan, self.k.memory("keys")
        sums = [k.variable(k.constant(0, F32)) for _ in range(plan.rows)]
        whole = plan.depth // _NUMBERS_AT_ONCE * _NUMBERS_AT_ONCE

        def add(first: Value, count: int) -> None:
            numbers = [k.convert(keys[place + (first + n) * plan.page], F32) for n in range(count)]
            for row, total in enumerate(sums):
                queries = self._query(first + row * plan.depth, count)
                for query, number in zip(queries, numbers, strict=True):
                    total.value = query.times_plus(number, total.value)

        with k.loop("depth", k.index(whole), 0, _NUMBERS_AT_ONCE) as first:
            add(first, _NUMBERS_AT_ONCE)
        if whole < plan.depth:
            add(k.index(whole), plan.depth - whole)
        return [total.value for total in sums]

    def _query(self, place: Value, count: int) -> list[Value]:
        """So many numbers of a query, from a place on."""
        if self.plan.depth % _QUERIES_AT_ONCE or count % _QUERIES_AT_ONCE:
            return [self.queries[place + n] for n in range(count)]
        starts = range(0, count, _QUERIES_AT_ONCE)
        vectors = [self.k.read(self.queries, place + n, _QUERIES_AT_ONCE) for n in starts]
        return [vector.lane(lane) for vector in vectors for lane in range(_QUERIES_AT_ONCE)]

    def _score(self, total: Value) -> Value:
        plan, score = self.plan, total * self.plan.scale
        if plan.cap is None or plan.bent is None:
            return score
        return plan.bent.compute([score * (1 / plan.cap)]) * plan.cap

    def _mix(self, place: Value, count: Value, powers: Sequence[Value], mixed: Sequence[Sequence[Variable]]) -> None:
        """Add the values of up to 32 positions by their powers. ``place``: where that of each thread begins.

        A thread whose position is behind that of the token has the value of this one, and a power of 0.
        """
        k, plan, values = self.k, self.plan, self.k.memory("values")
        spots = [k.lane() + n * WARP for n in range(plan.columns)]
        spots = [k.select(one < plan.width, one, one.like(0)) for one in spots]
        with k.loop("mix", k.smaller(count, WARP), 0, plan.values_at_once) as first:
            lanes = [k.convert(first + n, I32) for n in range(plan.values_at_once)]
            begins = [k.from_lane(place, lane) for lane in lanes]
            read = [[k.convert(values[begin + spot], F32) for spot in spots] for begin in begins]
            for row, power in enumerate(powers):
                shares = [k.from_lane(power, lane) for lane in lanes]
                for share, line in zip(shares, read, strict=True):
                    for total, number in zip(mixed[row], line, strict=True):
                        total.value = share.times_plus(number, total.value)

    def _keep(self, row: int, online: Online, mixed: Sequence[Value]) -> None:
        """What this warp has of a row, to where all threads read it."""
        k, plan = self.k, self.plan
        place = k.warp() * plan.rows + row
        top, total = online.top(row), online.total(row)
        with k.when(k.lane().equals(0)):
            self.tops[place], self.powers[place] = top, total
        for n, one in enumerate(mixed):
            self.mixed[place * (plan.columns * WARP) + n * WARP + k.lane()] = one

    def _give(self) -> None:
        """What all warps have, together."""
        k, plan = self.k, self.plan
        start = ((self.token * k.size("heads") + self.head) * plan.shared + self.first) * plan.width
        with k.loop("give", plan.rows * plan.width, k.thread(), plan.threads) as one:
            row, column = one // plan.width, one % plan.width
            nothing = k.constant(-inf, F32)
            if plan.sinks:
                nothing = k.memory("sinks")[self.head * plan.shared + self.first + row]
            tops = [self.tops[row + warp * plan.rows] for warp in range(WARPS)]
            base = nothing
            for top in tops:
                base = k.intrinsic("maxnum", base, top)
            base = k.select(base.equals(-inf), base.like(0), base)
            total, mixed = plan.powers.compute([nothing, base]), k.constant(0, F32)
            for warp, top in enumerate(tops):
                place, factor = row + warp * plan.rows, plan.powers.compute([top, base])
                total = self.powers[place].times_plus(factor, total)
                mixed = self.mixed[place * (plan.columns * WARP) + column].times_plus(factor, mixed)
            k.memory("result")[start + one] = mixed / total
