"""What is named is looked at, then each token is told its text and where its key and value go: once for all layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_cuda.kernels.gather import refuse
from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.kernel import Kernel, Parameter
from tract_llvm.language.types import I32, I64
from tract_llvm.language.values import Value, Variable

from tract_core.frozen import frozen

NOWHERE: Final = -1
"""The slot of a token behind which another one writes to the same place."""

_NUMBERS: Final = tuple(Parameter(name, I64) for name in ("positions", "begins", "pages"))


@frozen
class GpuPageCheckPlan:
    """One block. Refuses where pages and positions are named that do not exist, or where texts are cut wrongly.

    ``page``: the positions of one.
    """

    page: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "check_pages"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many there are of each, ``cuts`` of begins, and what names pages."""
        counts = map(Parameter, ("tokens", "texts", "cuts", "table", "copied", "room"))
        return (*counts, *_NUMBERS, Parameter("copies", I64), Parameter("status", I32))

    def emit(self, k: Kernel) -> None:
        """As `Controls.check` does."""
        tokens, texts, cuts, table, copied, room = map(k.size, ("tokens", "texts", "cuts", "table", "copied", "room"))
        begins, wrong = k.memory("begins"), k.variable(cuts.differs(texts + 1))
        with k.when(cuts.equals(texts + 1)):
            wrong.value = wrong.value | begins[0].differs(0) | begins[texts].differs(k.convert(tokens, I64))
            with k.loop("text", texts, k.thread(), THREADS) as text:
                wrong.value = wrong.value | (begins[text] > begins[text + 1])
        positions = k.convert(table, I64) * self.page
        limits = ("positions", tokens, positions), ("pages", texts * table, room), ("copies", copied * 2, room)
        for name, count, limit in limits:
            numbers, most = k.memory(name), k.convert(limit, I64)
            with k.loop(name, count, k.thread(), THREADS) as place:
                wrong.value = wrong.value | (numbers[place] < 0) | (numbers[place] >= most)
        with k.when(wrong.value):
            refuse(k)


@frozen
class PlacesPlan:
    """One thread for one token. ``page``: positions of one."""

    page: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "page_places"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many tokens there are, and pages of a text; of each token its text and its slot, among all positions."""
        given = (Parameter("tokens"), Parameter("table"), *_NUMBERS, Parameter("refused", I32))
        return (*given, Parameter("owners", I64), Parameter("slots", I64))

    def emit(self, k: Kernel) -> None:
        """Of tokens with the same slot, only the last one has it."""
        token, tokens = k.block() * THREADS + k.thread(), k.size("tokens")
        with k.when((token < tokens) & k.memory("refused")[0].equals(0)):
            text = k.variable(k.index(0))
            self._go_on(k, text, token)
            k.memory("owners")[token] = k.convert(text.value, I64)
            slot, other = self._slot(k, text.value, token), k.variable(text.value)
            is_last = k.variable(slot.equals(slot))
            with k.loop("later", tokens, token + 1) as later:
                self._go_on(k, other, later)
                is_last.value = is_last.value & self._slot(k, other.value, later).differs(slot)
            k.memory("slots")[token] = k.select(is_last.value, slot, slot.like(NOWHERE))

    def _go_on(self, k: Kernel, text: Variable, token: Value) -> None:
        """To the text of a token, from one before it or the same."""
        begins, number = k.memory("begins"), k.convert(token, I64)
        with k.loop_while("text", lambda: begins[text.value + 1] <= number):
            text.value = text.value + 1

    def _slot(self, k: Kernel, text: Value, token: Value) -> Value:
        position = k.memory("positions")[token]
        number = k.convert(position // self.page, k.positions)
        page = k.memory("pages")[text * k.size("table") + number]
        return page * self.page + position % self.page
