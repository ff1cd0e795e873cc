"""What is done with pages before attention: numbers are looked at, pages copied, new keys and values put there."""

from __future__ import annotations

from typing import Final

from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size, Sizes, Taken
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, I8, I32, INDEX, U64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_transformers.ops.paged_attention import LARGEST, LEAST

PAGES: Final = ("keys", "values", "key_scales", "value_scales")
"""What pages hold, by the names of arguments; scales where keys and values are integers."""


@frozen
class PageCheckPlan:
    """Refuses where a page or a position is named that does not exist, or where texts are cut wrongly; else, copies.

    ``kept``: the types of what pages hold, as `PAGES` has them; ``runs``: how each of them is copied. ``page``: their
    positions.
    """

    kept: tuple[ElementType, ...]
    runs: tuple[Run, ...]
    page: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "check_pages"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``each``: how many elements of each kind a page has."""
        return Signature.of(
            *map(Size, ("tokens", "texts", "table", "count", "room")),
            *(Memory(name, INDEX) for name in ("positions", "begins", "pages", "copies")),
            *(Memory(name, kind) for name, kind in zip(PAGES, self.kept, strict=False)),
            Sizes("each", len(self.kept)),
            Memory("status", INDEX),
        )

    def emit(self, k: Kernel) -> None:
        """As `Controls.check` does, then the copies, one after the other."""
        taken = self.signature.taken(k)
        with k.loop("task", k.end, k.begin), k.either(self._wrong(k, taken)) as (then, otherwise):
            with then:
                taken.memory("status")[0] = k.index(1)
            with otherwise, k.loop("copy", taken.size("count")) as one:
                source, target = (taken.memory("copies")[one * 2 + place] for place in range(2))
                for name, run, size in zip(PAGES, self.runs, taken.sizes("each"), strict=False):
                    pages = taken.memory(name)
                    run.copy(k, pages.at(source * size), pages.at(target * size), size)

    def _wrong(self, k: Kernel, taken: Taken) -> Value:
        """Whether anything is named that does not exist."""
        tokens, texts, table, count, room = map(taken.size, ("tokens", "texts", "table", "count", "room"))
        begins = taken.memory("begins")
        wrong = k.variable(begins[0].differs(0) | begins[texts].differs(tokens))
        with k.loop("text", texts) as text:
            wrong.value = wrong.value | (begins[text] > begins[text + 1])
        limits = ("positions", tokens, table * self.page), ("pages", texts * table, room), ("copies", count * 2, room)
        for name, size, limit in limits:
            with k.loop(name, size) as place:
                wrong.value = wrong.value | _outside(taken.memory(name)[place], limit)
        return wrong.value


def _outside(number: Value, limit: Value) -> Value:
    """Whether a number is not from 0 to before ``limit``."""
    return number.bits(U64) >= limit.bits(U64)


@frozen
class PageStorePlan:
    """Puts the keys and values of new tokens into their pages: keys [H,depth,page], values [H,page,width].

    ``kept``: the type of what pages hold. ``values``: how many numbers of a value there are, of ``width`` in a page.
    """

    kept: ElementType
    page: int
    depth: int
    values: int
    width: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "store_pages"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``moves``: how far apart tokens, heads and numbers are of what is put there."""
        return Signature.of(
            *map(Size, ("texts", "table", "heads")),
            *(Memory(name, INDEX) for name in ("positions", "begins", "pages")),
            *(Memory(name, F32) for name in ("new_keys", "new_values")),
            Sizes("key_moves", 3),
            Sizes("value_moves", 3),
            *memories(self.kept),
        )

    def emit(self, k: Kernel) -> None:
        """A task for each head."""
        taken = self.signature.taken(k)
        begins, pages = taken.memory("begins"), taken.memory("pages")
        with (
            k.loop("task", k.end, k.begin) as head,
            k.loop("text", taken.size("texts")) as text,
            k.loop("token", begins[text + 1], begins[text]) as token,
        ):
            position = taken.memory("positions")[token]
            page = pages[text * taken.size("table") + position // self.page]
            self._put(k, taken, (token, head), page * taken.size("heads") + head, position % self.page)

    def _put(self, k: Kernel, taken: Taken, new: tuple[Value, Value], place: Value, inside: Value) -> None:
        """The key and the value of a token and a head. ``place``: of head and page; ``inside``: of the position."""
        keys = taken.memory("keys").at(place * (self.depth * self.page) + inside)
        values = taken.memory("values").at((place * self.page + inside) * self.width)
        for name, size, target, step in (("key", self.depth, keys, self.page), ("value", self.values, values, 1)):
            moves = taken.sizes(f"{name}_moves")
            source = taken.memory(f"new_{name}s").at(new[0] * moves[0] + new[1] * moves[1])
            if self.kept is I8:
                scale = taken.memory(f"{name}_scales").at(place * self.page + inside)
                _put_bytes(k, (source, moves[2]), (target, step), scale, size)
                continue
            with k.loop(name, size) as one:
                target[one * step] = source[one * moves[2]]


def memories(kept: ElementType) -> list[Memory]:
    """What pages hold in a type, as arguments."""
    both = [Memory(name, kept) for name in PAGES[:2]]
    return both + [Memory(name, F32) for name in PAGES[2:]] if kept is I8 else both


_SIGN: Final = 1 << 31
"""A bit of f32."""

_ROUNDS: Final = 12582912.0
"""1.5 * 2**23: of a number to which it is added, the lowest bits are the integer that is nearest."""


def _put_bytes(k: Kernel, source: tuple[Buffer, Value], target: tuple[Buffer, int], scale: Buffer, size: int) -> None:
    """As `in_bytes` does it. ``source``, ``target``: where numbers and integers are, and how far apart."""
    largest = k.variable(k.constant(0, I32))
    with k.loop("largest", size) as one:
        bits = source[0][one * source[1]].bits(I32) & (_SIGN - 1)
        largest.value = k.select(bits > largest.value, bits, largest.value)
    top = largest.value.bits(F32)
    is_usual = (top >= LEAST) & (top < float("inf"))
    inverse = k.select(is_usual, k.constant(LARGEST, F32) / top, 0.0)
    with k.loop("bytes", size) as one:
        number = k.select(is_usual, source[0][one * source[1]], 0.0)
        target[0][one * target[1]] = k.convert((number * inverse + _ROUNDS).bits(I32), I8)  # of which 8 bits count
    scale[0] = k.select(top < LEAST, k.constant(0, F32), top * (1 / LARGEST))
