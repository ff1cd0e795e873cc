"""The functions of an object file whose sizes are open: the values of symbols are arguments of what they depend on.

``NAME_memory(sizes ...)`` gives how many bytes a run works in, 0 where there can be none. ``NAME_shapes(sizes ...,
shapes)`` writes the sizes of all inputs and outputs, and gives 0, or 2 where these cannot be. ``NAME_run(memory, sizes
..., inputs ..., outputs ...)`` fills the arguments of kernels anew where sizes are not those of the run before, and
gives 2 where they cannot be. What needs more room with larger sizes lies behind all else, so that memory serves
whatever sizes it is large enough for.

What is computed of sizes is what `Section.bind` and `Bound.parts` compute (`tract_cpu.binding`).
"""

from __future__ import annotations

from functools import reduce
from itertools import chain
from typing import Any, Final, Literal

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.types import F64, I32, INDEX, POINTER, ElementType
from tract_llvm.language.values import Value, Variable

from tract_core.dims import symbols_of
from tract_cpu.ahead.glue import Glue, address_of
from tract_cpu.ahead.open_sizes import WORD, OpenSizes
from tract_cpu.ahead.sizes import SizeWriter, numbers_passed
from tract_cpu.aligned import ALIGNMENT
from tract_cpu.binding import WORK_FOR_THREADS, WORK_TO_SHARE
from tract_cpu.program.eventual import Eventual

UNFIT: Final = 2
"""What a run gives whose sizes cannot be."""

MOST_MEMORY: Final = 1 << 47
"""Bytes that processes have addresses for, on machines of 64 bits."""


class OpenGlue(Glue):
    """The functions while they are written. ``threads``: how many may do a run; ``limit``: bytes of memory at most."""

    def __init__(self, *given: Any, threads: int, limit: int, **options: Any) -> None:
        super().__init__(*given, **options)
        self.threads, self.limit = threads, min(limit, MOST_MEMORY)
        assert self.laid.open is not None, "who knows all sizes needs no others"
        self.open: OpenSizes = self.laid.open

    def write(self, arrays: int) -> None:
        """Write all of them. ``arrays``: how many inputs and outputs there are."""
        super().write(arrays)
        self._memory()
        self._shapes()

    def sizes(self) -> list[ElementType]:
        """What a run is given of sizes, before inputs and outputs."""
        return [INDEX] * len(self.open.symbols)

    def count(self, f: Function, of: Literal["tasks", "parts"], step: int) -> Value:
        """How many tasks or parts a step has in this run."""
        return self._words(f)[getattr(self.open, of) + step]

    def scratch_bytes(self, f: Function) -> Value:
        """How many bytes of scratch each thread has."""
        return self._words(f)[self.open.each]

    def begin_run(self, f: Function, lay: Any, first: int) -> Value:
        """Fill the arguments where sizes are not those for which they are filled; 0, or what refuses the run."""
        words = self._words(f)
        given = [Value(f, f.function.args[first + n], INDEX) for n in range(len(self.open.symbols))]
        same = words[self.open.held].equals(1)
        for place, value in enumerate(given, self.open.held + 1):
            same = same & words[place].equals(value)
        found = f.variable(f.index(0))
        with f.when(~same):
            called = f.builder.call(lay, [f.function.args[0], *(one.ir for one in given)])
            found.value = Value(f, called, INDEX)
        return found.value

    def end_run(self, f: Function, lay: Any, status: Buffer) -> None:
        """A loop that was left in the middle has moved addresses."""
        with f.when(status[0].differs(0)):
            self._words(f)[self.open.held] = f.index(0)

    def end_start(self, f: Function, lay: Any) -> None:
        """Say that no arguments are filled."""
        self._words(f)[self.open.held] = f.index(0)

    def write_passed(self, f: Function, passed: Buffer, arguments: Buffer) -> None:
        """Put addresses of this run among the arguments."""
        rows = self.laid.tables.passed
        if rows:
            words, table = self._words(f), f.table([number for row in rows for number in row], INDEX)
            with f.loop("passed", len(rows)) as row:
                place, number, offset = (table[row * 3 + column] for column in range(3))
                arguments[place] = passed[number] + words[offset + self.open.values]

    def write_lay(self) -> Any:
        """``NAME_lay(memory, sizes ...)`` fills the arguments of kernels; it gives 0, or what refuses the run."""
        f = Function(self.module, f"{self.name}_lay", self.isa, [POINTER, *self.sizes()], INDEX)
        f.function.linkage = "internal"
        words, section = self._words(f), self.open.section
        values = [dim if known else 0 for dim, known in zip(section.sizes, section.known, strict=True)]
        table = f.table([one if isinstance(one, int) else 0 for one in values], INDEX)
        with f.loop("size", len(values)) as number:
            words[number + self.open.values] = table[number]
        sizes = self._writer(f, 1)
        for number, value in enumerate(values):
            if not isinstance(value, int):
                words[number + self.open.values] = sizes.of(value)
        fit = f.variable(sizes.fit)
        self._scratch(f, words, fit)
        self._slots(f, words, fit)
        self._arguments(f, words)
        self._counts(f, words)
        words[self.open.held] = f.convert(fit.value, INDEX)
        for place in range(len(self.open.symbols)):
            words[self.open.held + 1 + place] = Value(f, f.function.args[1 + place], INDEX)
        f.finish(f.select(fit.value, f.index(0), UNFIT))
        return f.function

    def _writer(self, f: Function, first: int) -> SizeWriter:
        """What writes sizes, with all that is wanted of them. ``first``: the place of the first one given to ``f``."""
        sizes = SizeWriter(f, numbers_passed(f, self.open.symbols, first), self.open.definitions)
        known = self.open.definitions.with_known(frozenset(self.open.symbols))
        conditions = [one for one in self.open.conditions if symbols_of(one) <= known]
        dims = [dim for dim in self.open.section.sizes if not isinstance(dim, Eventual)]
        sizes.define([*dims, *self.open.shapes, *conditions])
        for size in self.open.shapes:
            sizes.require(sizes.of(size) >= 0)
        for condition in conditions:
            sizes.require(sizes.of(condition).equals(1))
        return sizes

    def _scratch(self, f: Function, words: Buffer, fit: Variable) -> None:
        """Find how much scratch a thread has."""
        numbers = sorted({int(number) for number in self.open.section.of_steps[3]})
        most = f.variable(f.index(0))
        if numbers:
            table = f.table(numbers, INDEX)
            with f.loop("scratch", len(numbers)) as place:
                most.value = _larger(f, most.value, words[table[place] + self.open.values])
        words[self.open.each] = _up(most.value)
        fit.value = fit.value & (most.value <= self.limit)

    def _slots(self, f: Function, words: Buffer, fit: Variable) -> None:
        """Find where the slots of the arena begin, which lies behind the scratch of all threads."""
        section, first = self.open.section, self.open.slots
        with f.loop("slot", len(section.slots)) as slot:
            words[slot + first] = f.index(0)
        pairs = [(slot, number) for slot, numbers in enumerate(section.of_slots) for number in numbers]
        if pairs:
            table = f.table([*chain(*pairs)], INDEX)
            with f.loop("size", len(pairs)) as pair:
                slot, number = table[pair * 2] + first, table[pair * 2 + 1] + self.open.values
                words[slot] = _larger(f, words[slot], words[number])
        end = f.variable(words[self.open.each] * self.threads + self.laid.memory.scratch)
        with f.loop("slot", len(section.slots)) as slot:
            size = words[slot + first]
            words[slot + first] = end.value + address_of(f, 0)
            end.value = end.value + _up(size)
            fit.value = fit.value & (size <= self.limit) & (end.value <= self.limit)

    def _arguments(self, f: Function, words: Buffer) -> None:
        section, memory, begin = self.open.section, self.laid.memory, address_of(f, 0)
        arguments = f.at(begin + memory.arguments)
        if len(section.which):
            which = f.table(section.which.tolist(), INDEX)
            with f.loop("argument", len(section.which)) as place:
                arguments[place] = words[which[place] + self.open.values]
        constants = list(zip(section.in_constants[0].tolist(), self.open.constants, strict=True))
        for places, base in (
            (constants, self.constants(f)),
            (_moved(section.in_arguments, WORD), begin + memory.arguments),
            (_moved(section.in_passed, WORD), begin + memory.passed),
        ):
            if places:
                table = f.table([*chain(*places)], INDEX)
                with f.loop("place", len(places)) as row:
                    place = table[row * 2]
                    arguments[place] = arguments[place] + table[row * 2 + 1] + base
        slots = _moved(section.in_arena, 1)
        if slots:
            table = f.table([*chain(*slots)], INDEX)
            with f.loop("slot", len(slots)) as row:
                place = table[row * 2]
                arguments[place] = arguments[place] + words[table[row * 2 + 1] + self.open.slots]

    def _counts(self, f: Function, words: Buffer) -> None:
        """How many tasks each step has, and in how many parts it is done."""
        section, steps = self.open.section, self.open.section.last
        if not steps:
            return
        rows = zip(*(one.tolist() for one in (*section.of_steps[:3], section.needs_work)), strict=True)
        table, gained = f.table([int(one) for row in rows for one in row], INDEX), f.variable(f.constant(0.0, F64))
        with f.loop("step", steps) as step:
            tasks, work, times = (words[table[step * 4 + column] + self.open.values] for column in range(3))
            work, times = (_larger(f, one, f.index(0)) for one in (work, times))
            idle = table[step * 4 + 3].differs(0) & work.equals(0)
            tasks = f.select(idle, f.smaller(tasks, 0), tasks)
            gain = work - work // self.threads - WORK_TO_SHARE
            shared = (gain >= 0) & (tasks > 1)
            worth = f.convert(gain, F64) * f.convert(times, F64)
            gained.value = gained.value + f.select(shared, worth, 0.0)
            words[step + self.open.tasks] = tasks
            words[step + self.open.parts] = f.select(shared, f.smaller(tasks, self.threads), 1)
        with f.when(gained.value < float(WORK_FOR_THREADS)), f.loop("step", steps) as step:
            words[step + self.open.parts] = f.index(1)

    def _memory(self) -> None:
        """``NAME_memory(sizes ...)``."""
        f = Function(self.module, f"{self.name}_memory", self.isa, self.sizes(), INDEX)
        self.touch_pages(f)
        section, zero = self.open.section, f.index(0)
        sizes = self._writer(f, 0)
        values = [sizes.of(dim) if known else zero for dim, known in zip(section.sizes, section.known, strict=True)]
        each = reduce(lambda a, b: _larger(f, a, b), [values[int(n)] for n in {*section.of_steps[3].tolist()}], zero)
        total = f.index(self.laid.memory.scratch) + _up(each) * self.threads
        fit = sizes.fit & (each <= self.limit)
        for slot in section.of_slots:
            size = reduce(lambda a, b: _larger(f, a, b), [values[number] for number in slot], zero)
            total = total + _up(size)
            fit = fit & (size <= self.limit) & (total <= self.limit)
        f.finish(f.select(fit, total, 0))

    def _shapes(self) -> None:
        """``NAME_shapes(sizes ..., shapes)``."""
        f = Function(self.module, f"{self.name}_shapes", self.isa, [*self.sizes(), POINTER], I32)
        self.touch_pages(f)
        sizes, shapes = self._writer(f, 0), f.buffer(len(self.open.symbols), INDEX)
        for place, size in enumerate(self.open.shapes):
            shapes[place] = sizes.of(size)
        f.finish(f.convert(f.select(sizes.fit, f.index(0), UNFIT), I32))

    def _words(self, f: Function) -> Buffer:
        return f.at(address_of(f, 0) + self.laid.memory.sizes)


def _larger(f: Function, a: Value, b: Value) -> Value:
    return f.select(a > b, a, b)


def _up(size: Value) -> Value:
    """Bytes, up to a multiple of the alignment."""
    return (size + (ALIGNMENT - 1)) & -ALIGNMENT


def _moved(places: Any, by: int) -> list[tuple[int, int]]:
    """Places of arguments, and numbers of what they are about, as so many bytes or words each."""
    return [(int(place), int(number) * by) for place, number in zip(*places, strict=True)]
