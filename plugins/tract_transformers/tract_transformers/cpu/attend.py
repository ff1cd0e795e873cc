"""The kernel of attention over pages.

A task takes some tokens and a head of keys: their rows are all queries that share this head. Rows meet the keys of one
page at a time, as a product whose columns are positions, and so does each row of powers the values of the page; both
products are those of any matrices, a tile in registers. Between them, softmax goes on from page to page by the largest
score so far (Milakov and Gimelshein, arXiv:1805.02867).

Sums of a row go from begin to end, whatever other rows there are: a token gets the same bits alone, as a part of a
prompt, and beside other texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.query import folded
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size, Sizes
from tract_cpu.kernels.sums import SMALL_TILES, Sums, Tile
from tract_llvm.elements.expressions import Expression
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import where
from tract_llvm.language.types import F32, I32, INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_transformers.cpu.store import memories

MOST_VECTORS: Final = 8
"""Of a row of a tile."""


@frozen
class PagedAttendPlan:
    """Its fields are those of `PagedAttention`, and how it is computed.

    ``kept``: the type of what pages hold. ``shared``: queries of a token that share a head of keys. ``depth``: numbers
    of a key; ``values``: of a value, ``width``: as many with those that fill whole vectors. ``tokens``: of a task, at
    most. ``powers``: of a score and the largest one; ``bent``: the hyperbolic tangent. ``run``: how rows are written.
    ``tallest``: rows of the largest tile; ``registers``: how many vectors fit.
    """

    kept: ElementType
    page: int
    shared: int
    depth: int
    values: int
    width: int
    tokens: int
    scale: float
    cap: float | None
    window: int | None
    sinks: bool
    powers: Expression
    bent: Expression | None
    run: Run
    tallest: int
    registers: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "paged_attention"

    @property
    def rows(self) -> int:
        """Of a task, at most."""
        return self.tokens * self.shared

    @property
    def scratch(self) -> int:
        """Bytes: queries, scores, mixed values, what is left of the sums of each row, and two numbers."""
        return self.rows * (self.depth + self.page + self.width + self.run.lanes + 2) * F32.bytes

    @property
    def signature(self) -> Signature:
        """What it is called with. ``query``: how far apart tokens, heads, those that share one, and numbers are."""
        return Signature.of(
            *map(Size, ("tokens", "texts", "table", "heads")),
            Memory("queries", F32),
            Sizes("query", 4),
            *memories(self.kept),
            *(Memory(name, INDEX) for name in ("positions", "begins", "pages")),
            Memory("result", F32),
            *([Memory("sinks", F32)] if self.sinks else []),
        )

    def emit(self, k: Kernel) -> None:
        """Result[t,h,g] = sum over positions of share * value; a task for each head of some tokens."""
        taken = self.signature.taken(k)
        heads, begins = taken.size("heads"), taken.memory("begins")
        with k.loop("task", k.end, k.begin) as task:
            first = task // heads * self.tokens
            last = k.smaller(first + self.tokens, taken.size("tokens"))
            with k.loop("text", taken.size("texts")) as text:
                start, end = begins[text], k.smaller(begins[text + 1], last)
                start = k.select(start > first, start, first)
                with k.when(start < end):
                    table = taken.memory("pages").at(text * taken.size("table"))
                    names = ["queries", "positions", "result", *(one.name for one in memories(self.kept))]
                    names += ["sinks"] if self.sinks else []
                    places = {name: taken.memory(name) for name in names}
                    _Rows(self, k, places, taken.sizes("query"), heads).attend(table, task % heads, start, end)


class _Rows:
    """The rows of some tokens of one text, and of one head, while the kernel is written."""

    def __init__(
        self, plan: PagedAttendPlan, k: Kernel, places: dict[str, Buffer], query: list[Value], heads: Value
    ) -> None:
        self.plan, self.k, self._places, self._query, self._heads = plan, k, places, query, heads
        self._lanes = plan.run.lanes
        self._scores = k.scratch(F32)
        self._mixed = self._scores.at(plan.rows * plan.page)
        self._totals = self._mixed.at(plan.rows * plan.width)
        self._largest = self._totals.at(plan.rows * self._lanes)
        self._factors = self._largest.at(plan.rows)
        self._queries = self._factors.at(plan.rows)

    def attend(self, table: Buffer, head: Value, start: Value, end: Value) -> None:
        """Write the results of the tokens from ``start`` to before ``end``. ``table``: the pages of their text."""
        k, plan = self.k, self.plan
        rows = (end - start) * plan.shared
        queries = self._places["queries"].at(start * self._query[0] + head * self._query[1])
        self._positions = self._places["positions"].at(start)
        first, last = self._bounds(end - start)
        with k.loop("begin", rows) as row:
            self._begin(queries, row)
            if plan.sinks:
                self._largest[row] = self._places["sinks"][head * plan.shared + row % plan.shared]
                self._totals[row * self._lanes] = k.constant(1, F32)
        with k.loop("page", last // plan.page + 1, first // plan.page) as number:
            before = number * plan.page
            there = k.smaller(last + 1 - before, plan.page)
            keys, values, *self._scales = self._page(table[number], head)
            self._ahead = self._page(table[k.smaller(number + 1, last // plan.page)], head)
            self._tiles(rows, lambda row, height: self._score(keys, there, row, height))
            with k.loop("soft", rows) as row:
                self._share(row, before)
            self._tiles(rows, lambda row, height: self._mix(values, there, row, height))
        result = self._places["result"].at((start * self._heads + head) * (plan.shared * plan.values))
        with k.loop("write", rows) as row:
            self._write(result, row)

    def _page(self, number: Value, head: Value) -> list[Buffer]:
        """The keys and the values of a page and a head, and their scales, if there are such."""
        plan, place = self.plan, number * self._heads + head
        sizes = (plan.depth * plan.page, plan.page * plan.width, plan.page, plan.page)
        kinds = (one.name for one in memories(plan.kept))
        return [self._places[name].at(place * size) for name, size in zip(kinds, sizes, strict=False)]

    def _bounds(self, tokens: Value) -> tuple[Value, Value]:
        """The first position that any of the tokens sees, and the last one."""
        k = self.k
        low, high = k.variable(self._positions[0]), k.variable(self._positions[0])
        with k.loop("bounds", tokens, 1) as token:
            position = self._positions[token]
            low.value = k.smaller(low.value, position)
            high.value = k.select(position > high.value, position, high.value)
        if self.plan.window is None:
            return k.index(0), high.value
        first = low.value - (self.plan.window - 1)
        return k.select(first > 0, first, first.like(0)), high.value

    def _begin(self, queries: Buffer, row: Value) -> None:
        """A row has seen nothing. Its query comes to where numbers lie side by side."""
        k, plan, zero = self.k, self.plan, self.k.constant(0, F32, self._lanes)
        self._largest[row] = k.constant(float("-inf"), F32)
        self._totals.put(row * self._lanes, zero)
        with k.loop("zeros", plan.width, step=self._lanes) as place:
            self._mixed.put(row * plan.width + place, zero)
        query = queries.at(row // plan.shared * self._query[0] + row % plan.shared * self._query[2])
        with k.loop("query", plan.depth) as one:
            self._queries[row * plan.depth + one] = query[one * self._query[3]]

    # --- products ---

    def _tiles(self, rows: Value, compute: Callable[[Value, int], None]) -> None:
        """Call ``compute(row, height)`` for tiles of all rows."""
        k, done = self.k, self.k.index(0)
        for height in (self.plan.tallest, *(one for one in SMALL_TILES if one < self.plan.tallest)):
            limit = rows - (rows - done) % height
            with k.loop(f"rows{height}", limit, done, height) as row:
                compute(row, height)
            done = limit

    def _vectors(self, height: int, most: int) -> int:
        """How many vectors a row of such a tile has: a power of two, as registers suffice."""
        found = 1
        while 2 * found <= min(most, MOST_VECTORS) and self._fits(height, 2 * found):
            found *= 2
        return found

    def _fits(self, height: int, vectors: int) -> bool:
        """Whether the sums of a tile, a factor and a row of columns fit; one row alone takes these from memory."""
        return height * vectors + (vectors if height > 1 else 0) + 1 <= self.plan.registers

    def _score(self, keys: Buffer, there: Value, row: Value, height: int) -> None:
        """Scores of some rows with the keys [depth,page] of a page, of which ``there`` count."""
        k, plan, lanes = self.k, self.plan, self._lanes
        vectors = self._vectors(height, plan.page // lanes)
        queries = [self._queries.at((row + one) * plan.depth) for one in range(height)]
        with k.loop("column", there, step=vectors * lanes) as column:
            sums = Sums(k, Tile(height, vectors, lanes), F32, height, chained=False)

            def add(d: Value, chain: int) -> None:
                self._ahead[0].prefetch(d * plan.page + column)
                places = [d * plan.page + column + one * lanes for one in range(vectors)]
                columns = [k.convert(keys.vector(place, lanes), F32) for place in places]
                for one, query in enumerate(queries):
                    sums.add(chain, one, query.splat(d, lanes), columns)

            for one, line in enumerate(sums.along(k.index(plan.depth), add)):
                for place, total in enumerate(line):
                    self._scores.put((row + one) * plan.page + column + place * lanes, total)

    def _mix(self, values: Buffer, there: Value, row: Value, height: int) -> None:
        """Add the values [page,width] of a page, of which ``there`` count, by the powers of some rows."""
        k, lanes, count = self.k, self._lanes, self.plan.width // self._lanes
        vectors = self._vectors(height, count)
        whole = count - count % vectors
        with k.loop("width", whole * lanes, step=vectors * lanes) as column:
            self._mix_some(values, there, (row, height), (column, vectors))
        if whole < count:
            self._mix_some(values, there, (row, height), (k.index(whole * lanes), count - whole))

    def _mix_some(self, values: Buffer, there: Value, rows: tuple[Value, int], columns: tuple[Value, int]) -> None:
        k, plan, lanes = self.k, self.plan, self._lanes
        (row, height), (column, vectors) = rows, columns
        sums = Sums(k, Tile(height, vectors, lanes), F32, height, chained=False)

        def add(key: Value, chain: int) -> None:
            self._ahead[1].prefetch(key * plan.width + column)
            places = [key * plan.width + column + one * lanes for one in range(vectors)]
            line = [k.convert(values.vector(place, lanes), F32) for place in places]
            for one in range(height):
                sums.add(chain, one, self._scores.splat((row + one) * plan.page + key, lanes), line)

        for one, totals in enumerate(sums.along(there, add)):
            factor = self._factors.splat(row + one, lanes)
            for place, total in enumerate(totals):
                at = (row + one) * plan.width + column + place * lanes
                self._mixed.put(at, self._mixed.vector(at, lanes).times_plus(factor, total))

    # --- softmax ---

    def _share(self, row: Value, before: Value) -> None:
        """Powers in the place of a row's scores with a page, whose first position is ``before``."""
        k, plan, lanes = self.k, self.plan, self._lanes
        limit = k.convert(self._positions[row // plan.shared] - before, I32)
        line = self._scores.at(row * plan.page)
        scores = [self._masked(line, limit, place) for place in range(0, plan.page, lanes)]
        old = self._largest[row]
        new = folded(reduce(_larger, scores), _larger)
        new = where(new > old, new, old)
        self._largest[row] = new
        base = where(new.equals(float("-inf")), new.like(0), new).splat(lanes)  # a page of which it sees nothing
        factor = plan.powers.compute([old.splat(lanes), base])
        self._factors[row] = factor.lane(0)
        total = self._totals.vector(row * lanes, lanes)
        self._totals.put(row * lanes, total.times_plus(factor, self._powered(line, scores, base)))

    def _powered(self, line: Buffer, scores: Sequence[Value], base: Value) -> Value:
        """Put powers in the place of scores, times the scales of values. Returns their sums, by lanes."""
        powers = [self.plan.powers.compute([one, base]) for one in scores]
        for number, power in enumerate(powers):
            place = number * self._lanes
            line.put(place, power * self._scales[1].vector(place, self._lanes) if self._scales else power)
        return reduce(lambda a, b: a + b, powers)

    def _masked(self, line: Buffer, limit: Value, place: int) -> Value:
        """The scores of some positions, minus infinity for those that a row does not see.

        ``limit``: the last one that it sees, counted from the begin of the page.
        """
        k, plan, lanes = self.k, self.plan, self._lanes
        score = line.vector(place, lanes) * plan.scale
        if self._scales:
            score = score * self._scales[0].vector(place, lanes)
        if plan.cap is not None and plan.bent is not None:
            score = plan.bent.compute([score * (1 / plan.cap)]) * plan.cap
        position = k.lanes(lanes, I32)
        seen = position <= (limit - place).splat(lanes)
        if plan.window is not None:
            seen = seen & (position > (limit - (place + plan.window)).splat(lanes))
        return where(seen, score, float("-inf"))

    def _write(self, result: Buffer, row: Value) -> None:
        """result[t,h,g,:] = mixed / total"""
        k, plan, lanes = self.k, self.plan, self._lanes
        total = folded(self._totals.vector(row * lanes, lanes), lambda a, b: a + b)
        token, one = row // plan.shared, row % plan.shared
        mixed = self._mixed.at(row * plan.width)
        target = result.at(token * (self._heads * (plan.shared * plan.values)) + one * plan.values)

        def put(place: Value, count: int, mask: Value | None) -> None:
            target.put(place, mixed.vector(place, count, mask) / total.splat(count), mask)

        plan.run.each(k, k.index(plan.values), put)


def _larger(a: Value, b: Value) -> Value:
    return where(a > b, a, b)
