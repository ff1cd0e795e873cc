"""What is done with pages before attention: numbers are looked at, pages copied, new keys and values put there."""

from __future__ import annotations

from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size, Sizes, Taken
from tract_llvm.language.types import F32, INDEX, U64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen


@frozen
class PageCheckPlan:
    """Refuses where a page or a position is named that does not exist, or where texts are cut wrongly; else, copies.

    ``kept``: the type of what pages hold, of whose bits ``run`` copies ``keys`` and ``values`` for each page. ``page``:
    its positions.
    """

    kept: ElementType
    run: Run
    page: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "check_pages"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``each``: how many elements the keys and the values of a page have."""
        return Signature.of(
            *map(Size, ("tokens", "texts", "table", "count", "room")),
            *(Memory(name, INDEX) for name in ("positions", "begins", "pages", "copies")),
            *(Memory(name, self.kept) for name in ("keys", "values")),
            Sizes("each", 2),
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
                for name, size in zip(("keys", "values"), taken.sizes("each"), strict=True):
                    pages = taken.memory(name)
                    self.run.copy(k, pages.at(source * size), pages.at(target * size), size)

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
            *(Memory(name, self.kept) for name in ("keys", "values")),
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
            with k.loop(name, size) as one:
                target[one * step] = source[one * moves[2]]
