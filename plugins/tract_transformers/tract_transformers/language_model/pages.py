"""Which pages have the keys and values of which texts, and which beginnings of texts are still there.

A page belongs to as many texts as begin alike up to its end. Who writes to one that others have too gets a copy first.
What a text leaves behind is found by its tokens, as long as nobody needs the room: a tree of pages, whose oldest leaves
go first. Source of both: Kwon et al., arXiv:2309.06180, and Zheng et al., arXiv:2312.07104.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tract_core.errors import LimitExceeded
from tract_transformers.language_model.past import common_beginning

FIRST: Final = 4
"""For how many pages there is room at first; then, for twice as many each time."""

MOST_LOOKED_AT: Final = 64
"""How many ways to go on behind a page are looked at for the longest that fits."""


class PagePool:
    """Numbers of pages, and how many texts or memories each belongs to. ``most``: how many there may be, if not any."""

    def __init__(self, size: int, most: int | None = None) -> None:
        """``size``: positions of a page."""
        self.size, self.most = size, most
        self._uses = [0] * FIRST
        self._free = list(range(FIRST))[::-1]

    @property
    def room(self) -> int:
        """How many pages there is memory for."""
        return len(self._uses)

    @property
    def taken(self) -> int:
        """How many belong to somebody."""
        return len(self._uses) - len(self._free)

    def is_shared(self, page: int) -> bool:
        """Whether it belongs to more than one."""
        return self._uses[page] > 1

    def take(self, count: int) -> list[int]:
        """So many pages that were nobody's. Raises LimitExceeded, and takes none, where there may not be as many."""
        while len(self._free) < count:
            there = len(self._uses)
            more = there if self.most is None else min(there, self.most - there)
            if more <= 0:
                raise LimitExceeded(f"all {there} pages of {self.size} positions are in use", hint="allow more pages")
            self._uses += [0] * more
            self._free = [*range(there + more - 1, there - 1, -1), *self._free]
        found = [self._free.pop() for _ in range(count)]
        for page in found:
            self._uses[page] = 1
        return found

    def share(self, page: int) -> int:
        """It belongs to one more. Returns it."""
        self._uses[page] += 1
        return page

    def give_back(self, page: int) -> None:
        """It belongs to one less."""
        self._uses[page] -= 1
        if not self._uses[page]:
            self._free.append(page)


@dataclass(slots=True, eq=False)
class _Remembered:
    """A page that is remembered: the ``tokens`` that it has, behind those of the pages up to ``before``."""

    page: int
    tokens: tuple[int, ...]
    before: _Remembered | None
    behind: dict[tuple[int, ...], _Remembered] = field(default_factory=dict[tuple[int, ...], "_Remembered"])


class Memory:
    """The pages of texts that were, by their tokens. ``most``: how many are remembered."""

    def __init__(self, pages: PagePool, most: int) -> None:
        self._pages, self._most = pages, most
        self._root = _Remembered(-1, (), None)
        self._order: OrderedDict[_Remembered, None] = OrderedDict()
        """What was of use last at the end; a page is of use whenever one behind it is."""

    def find(self, tokens: Sequence[int]) -> tuple[list[int], int]:
        """The pages with the longest beginning of a text that is remembered, now shared, and its length in tokens."""
        found: list[int] = []
        node, length, size = self._root, 0, self._pages.size
        while (rest := tuple(tokens[length : length + size])) in node.behind:
            node, length = node.behind[rest], length + len(rest)
            found.append(self._pages.share(node.page))
        others = [(common_beginning(one.tokens, rest), one) for one in list(node.behind.values())[-MOST_LOOKED_AT:]]
        common, best = max(others, key=lambda one: one[0], default=(0, node))
        if common:
            found.append(self._pages.share(best.page))
            node, length = best, length + common
        self._use(node)
        return found, length

    def keep(self, tokens: Sequence[int], pages: Sequence[int]) -> None:
        """Remember the pages of a text, of which the last one may not be full."""
        node, size = self._root, self._pages.size
        for number, page in enumerate(pages):
            held = tuple(tokens[number * size : (number + 1) * size])
            if held not in node.behind:
                new = node.behind[held] = _Remembered(self._pages.share(page), held, node)
                self._order[new] = None
            node = node.behind[held]
        self._use(node)
        self.shrink(self._most)

    def shrink(self, most: int) -> None:
        """Forget what was of no use for longest, until there are at most so many."""
        while len(self._order) > most:
            node, _ = self._order.popitem(last=False)
            assert not node.behind  # whatever is behind was of use no later
            assert node.before is not None  # all but the root are behind another one
            del node.before.behind[node.tokens]
            self._pages.give_back(node.page)

    def shrink_by(self, count: int) -> None:
        """Forget until so many pages are free that were not, or nothing is left."""
        wanted = self._pages.taken - count
        while self._order and self._pages.taken > wanted:
            self.shrink(len(self._order) - 1)

    def _use(self, node: _Remembered) -> None:
        """A page was of use, and those before it."""
        while node.before is not None:
            self._order.move_to_end(node)
            node = node.before


class Text:
    """The tokens of one text, and the pages that have them."""

    def __init__(self, pages: PagePool) -> None:
        self._pages = pages
        self.tokens: list[int] = []
        self.pages: list[int] = []

    def needs(self, count: int) -> int:
        """How many pages `make_room` will take."""
        return len(self._wanted(count))

    def _wanted(self, count: int) -> list[int]:
        """The numbers of the pages for ``count`` more tokens that are missing, or belong to others too."""
        size, there = self._pages.size, len(self.pages)
        numbers = range(len(self.tokens) // size, -(-(len(self.tokens) + count) // size))
        return [one for one in numbers if one >= there or self._pages.is_shared(self.pages[one])]

    def make_room(self, count: int) -> list[tuple[int, int]]:
        """Have pages of its own for ``count`` more tokens. Returns which pages to copy, from one to another.

        Raises LimitExceeded; then it has the pages that it had.
        """
        wanted, there = self._wanted(count), len(self.pages)
        new = self._pages.take(len(wanted))
        copies: list[tuple[int, int]] = []
        for number, page in zip(wanted, new, strict=True):
            if number >= there:
                self.pages.append(page)
            else:
                copies.append((self.pages[number], page))
                self._pages.give_back(self.pages[number])
                self.pages[number] = page
        return copies

    def restore(self, pages: Sequence[int]) -> None:
        """Have the pages again that it had before `make_room`, as nothing came of what was to be written."""
        for page in pages:
            self._pages.share(page)
        for page in self.pages:
            self._pages.give_back(page)
        self.pages = list(pages)

    def truncate(self, length: int) -> None:
        """Keep the first ``length`` tokens."""
        del self.tokens[length:]
        needed = -(-length // self._pages.size)
        while len(self.pages) > needed:
            self._pages.give_back(self.pages.pop())

    def become(self, tokens: Sequence[int], pages: Sequence[int]) -> None:
        """Another text, whose pages belong to this one already."""
        self.truncate(0)
        self.tokens, self.pages = list(tokens), list(pages)

    def fork(self) -> Text:
        """Another text with the same beginning, which goes its own way."""
        found = Text(self._pages)
        found.become(self.tokens, [self._pages.share(page) for page in self.pages])
        return found
