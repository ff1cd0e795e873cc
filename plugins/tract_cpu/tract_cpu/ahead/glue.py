"""The functions of an object file: what calls the kernels of a model, one after the other, without anything around.

``NAME_start(memory)`` makes a piece of memory ready: tables of addresses are filled, and what stays from run to run is
set to its beginning. ``NAME_run(memory, inputs ..., outputs ...)`` runs the model; it gives 0, or 1 where a kernel
could not do its work, as an index is beyond its axis. Where constants lie apart from the code, whoever starts says
where: ``NAME_start(memory, constants)``; and starts again after a run that gave 1. Open sizes are arguments of runs,
and have functions of their own (`tract_cpu.ahead.open_glue`).

Loops and branches are steps that say which one is next; behind them, a jump goes through a list of all steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.types import I32, INDEX, POINTER, ElementType, ir_type
from tract_llvm.language.values import Value
from tract_llvm.llvm import ir

from tract_cpu.ahead.layout import Laid
from tract_cpu.ahead.open_sizes import WORD
from tract_cpu.ahead.sharing import (
    ARGUMENTS,
    COURSE,
    KERNEL,
    PARTS,
    SCRATCH,
    SCRATCH_BYTES,
    TASKS,
    write_alone,
    write_call,
    write_part,
)
from tract_cpu.ahead.stack import write_touch
from tract_cpu.kernels.control import CONTROL
from tract_cpu.native.executor import FUEL, FULL, NEXT

CONSTANTS: Final = "constants"
"""The global with all constants of a model."""


class Glue:
    """The functions while they are written. ``name``: with which those that are called from outside begin.

    ``kernels``: the name of the function of each step. ``touched``: bytes of the stack that a run touches before all
    else, where kernels do not do that themselves. ``apart``: whether constants lie apart from the code. ``shared``:
    whether threads of the caller may help (`tract_cpu.ahead.sharing`).
    """

    def __init__(
        self,
        module: Any,
        name: str,
        isa: Isa,
        laid: Laid,
        kernels: Sequence[str],
        *,
        touched: int = 0,
        apart: bool = False,
        shared: bool = False,
    ) -> None:
        self.module, self.name, self.isa = module, name, isa
        self.laid, self.kernels, self.touched, self.apart, self.shared = laid, kernels, touched, apart, shared
        self.part: Any = None
        self.touch: Any = None

    def write(self, arrays: int) -> None:
        """Write all of them. ``arrays``: how many inputs and outputs there are."""
        if self.touched:
            self.touch = write_touch(self.module, f"{self.name}_touch", self.isa, self.touched)
        if not self.apart:
            size = max(self.laid.offsets[-1], 1)
            constants: Any = ir.GlobalVariable(self.module, ir.ArrayType(ir.IntType(8), size), CONSTANTS)
            constants.linkage = "external"
        lay = self.write_lay()
        self._start(lay)
        self._run(lay, arrays)

    def write_lay(self) -> Any:
        """``NAME_lay(memory)`` fills the arguments of kernels, but for what a run passes."""
        f = Function(self.module, f"{self.name}_lay", self.isa, self.given())
        f.function.linkage = "internal"
        tables, memory = self.laid.tables, self.laid.memory
        begin = address_of(f, 0)
        arguments = f.at(begin + memory.arguments)
        if tables.template:
            template = f.table(tables.template, INDEX)
            with f.loop("argument", len(tables.template)) as number:
                arguments[number] = template[number]
        added = (
            (tables.in_constants, self.constants(f)),
            (tables.in_arena, begin + memory.arena),
            (tables.in_arguments, begin + memory.arguments),
            (tables.in_passed, begin + memory.passed),
        )
        for places, base in added:
            if places:
                held = f.table(places, INDEX)
                with f.loop("place", len(places)) as number:
                    place = held[number]
                    arguments[place] = arguments[place] + base
        f.finish()
        return f.function

    def given(self) -> Sequence[ElementType]:
        """What whoever starts a run gives: memory, and where constants lie that lie apart."""
        return [POINTER, POINTER] if self.apart else [POINTER]

    def constants(self, f: Function) -> Value:
        """The address of the first one."""
        if self.apart:
            return address_of(f, 1)
        return Value(f, f.builder.ptrtoint(self.module.globals[CONSTANTS], ir_type(INDEX)), INDEX)

    def _start(self, lay: Any) -> None:
        f = Function(self.module, f"{self.name}_start", self.isa, self.given())
        memory, begin = self.laid.memory, address_of(f, 0)
        kept = f.at(begin + memory.kept)
        if memory.passed > memory.kept:
            with f.loop("word", (memory.passed - memory.kept) // WORD) as number:
                kept[number] = f.index(0)
        passed = f.at(begin + memory.passed)
        for number, place in self.laid.tables.starts:
            passed[number] = begin + (memory.kept + place)
        self.end_start(f, lay)
        f.finish()

    def end_start(self, f: Function, lay: Any) -> None:
        """What has to be done at the end of a start. ``lay``: the function that fills arguments."""
        f.builder.call(lay, f.function.args)

    def _run(self, lay: Any, arrays: int) -> None:
        if self.shared:
            self.part = write_part(self.module, f"{self.name}_part", self.isa, self.touch)
        first = 3 if self.shared else 1  # behind memory, and what shares
        name = f"{self.name}_run{'_shared' if self.shared else ''}"
        sizes = self.sizes()
        f = Function(self.module, name, self.isa, [POINTER] * first + sizes + [POINTER] * arrays, I32)
        memory, begin = self.laid.memory, address_of(f, 0)
        passed, status, course, arguments = (
            f.at(begin + place) for place in (memory.passed, memory.status, memory.course, memory.arguments)
        )
        self.touch_pages(f)
        for number in range(arrays):
            passed[number] = address_of(f, first + len(sizes) + number)
        passed[self.laid.layout.passed_count - 1] = begin + memory.status
        course[FUEL] = f.index(FULL)
        status[0] = self.begin_run(f, lay, first)
        self.write_passed(f, passed, arguments)
        _Steps(self, f, status, course, begin).write()
        self.end_run(f, lay, status)
        f.finish(f.convert(status[0], I32))
        if self.shared:
            write_alone(self.module, self.name, self.isa, [*sizes, *[POINTER] * arrays])
        assert len(self.laid.tables.tasks) == len(self.kernels), "each step has a kernel"

    def touch_pages(self, f: Function) -> None:
        """Touch the pages of the stack that a function needs, where a system wants that."""
        if self.touch is not None:
            f.builder.call(self.touch, [])

    def sizes(self) -> list[ElementType]:
        """What a run is given of sizes, before inputs and outputs."""
        return []

    def count(self, f: Function, of: Literal["tasks", "parts"], step: int) -> Value:
        """How many tasks or parts a step has, which only sizes tell."""
        raise NotImplementedError("sizes are known")

    def scratch_bytes(self, f: Function) -> Value:
        """How many bytes of scratch each thread has."""
        return f.index(self.laid.memory.each)

    def begin_run(self, f: Function, lay: Any, first: int) -> Value:
        """What has to be done before the first step; 0, or what the run gives without running one.

        ``first``: the place of the first size among the arguments.
        """
        return f.index(0)

    def end_run(self, f: Function, lay: Any, status: Buffer) -> None:
        """What has to be done behind the last step: a loop that was left in the middle has moved addresses."""
        if not self.apart:
            with f.when(status[0].differs(0)):
                f.builder.call(lay, [f.function.args[0]])

    def write_passed(self, f: Function, passed: Buffer, arguments: Buffer) -> None:
        """Put addresses of this run among the arguments."""
        rows = self.laid.tables.passed
        if rows:
            table = f.table([number for row in rows for number in row], INDEX)
            with f.loop("passed", len(rows)) as row:
                place, number, offset = (table[row * 3 + column] for column in range(3))
                arguments[place] = passed[number] + offset


class _Steps:
    """The steps of a run, while they are written: a block for each, where some of them say which one is next."""

    def __init__(self, glue: Glue, f: Function, status: Buffer, course: Buffer, begin: Value) -> None:
        self.glue, self.f, self.status, self.course, self.begin = glue, f, status, course, begin
        memory = glue.laid.memory
        self.arguments, self.scratch, self.course_at = (
            begin + place for place in (memory.arguments, memory.scratch, memory.course)
        )

    def write(self) -> None:
        """All steps, in order. Behind one that refuses, none is done."""
        f, tasks = self.f, self.glue.laid.tables.tasks
        blocks = [f.builder.append_basic_block(f"step{number}") for number in range(len(tasks))]
        end = f.builder.append_basic_block("behind")
        follow = [*blocks[1:], end]
        choose = f.builder.append_basic_block("choose")
        first = blocks[0] if blocks else end
        if self.glue.laid.open is None:
            f.builder.branch(first)
        else:
            self._go_on(first, end)
        for number, (block, behind) in enumerate(zip(blocks, follow, strict=True)):
            f.builder.position_at_end(block)
            count = tasks[number]
            if count == CONTROL:
                self._call(number, f.index(number), f.index(0), self.course_at)
                f.builder.branch(choose)
                continue
            if count is None:
                with f.when((found := self.glue.count(f, "tasks", number)) > 0):
                    self._do(number, found)
            elif count > 0:
                self._do(number, f.index(count))
            if count != 0 and self.glue.laid.layout.may_refuse[number]:
                self._go_on(behind, end)
            else:
                f.builder.branch(behind)
        f.builder.position_at_end(choose)
        self._jump(blocks if CONTROL in tasks else [], end)
        f.builder.position_at_end(end)

    def _go_on(self, behind: Any, end: Any) -> None:
        """Go on with the next step, or where something was refused, with none."""
        self.f.builder.cbranch(self.status[0].equals(0).ir, behind, end)

    def _do(self, number: int, tasks: Value) -> None:
        """Do the tasks of a step; by several threads where it is cut into parts."""
        f, parts = self.f, self.glue.laid.tables.parts[number]
        if parts is not None:
            self._share(number, tasks, f.index(parts)) if parts > 1 else self._do_alone(number, tasks)
            return
        found = self.glue.count(f, "parts", number)
        with f.either(found > 1) as (several, alone):
            with several:
                self._share(number, tasks, found)
            with alone:
                self._do_alone(number, tasks)

    def _do_alone(self, number: int, tasks: Value) -> None:
        self._call(number, self.f.index(0), tasks, self.scratch)

    def _jump(self, blocks: Sequence[Any], end: Any) -> None:
        """Go on with the step that the last one says; where that refused, with none."""
        f = self.f
        nowhere = f.index(len(blocks))
        target = f.select(self.status[0].equals(0), self.course[NEXT], nowhere)
        jump = f.builder.switch(target.ir, end)
        for number, block in enumerate(blocks):
            jump.add_case(ir.Constant(ir_type(INDEX), number), block)

    def _call(self, number: int, begin: Value, end: Value, scratch: Value) -> None:
        f, pointer = self.f, ir_type(POINTER)
        memory = [f.builder.inttoptr(one.ir, pointer) for one in (self._first(number), scratch, self.course_at)]
        f.builder.call(self._kernel(number), [memory[0], begin.ir, end.ir, *memory[1:]])

    def _share(self, number: int, tasks: Value, parts: Value) -> None:
        """Have a step done by several threads."""
        f, memory = self.f, self.glue.laid.memory
        place = self.begin + memory.work
        work = f.at(place)
        work[KERNEL] = Value(f, f.builder.ptrtoint(self._kernel(number), ir_type(INDEX)), INDEX)
        work[ARGUMENTS], work[SCRATCH], work[COURSE] = self._first(number), self.scratch, self.course_at
        work[TASKS], work[PARTS], work[SCRATCH_BYTES] = tasks, parts, self.glue.scratch_bytes(f)
        write_call(f, self.glue.part, place, parts)

    def _kernel(self, number: int) -> Any:
        pointer, index = ir_type(POINTER), ir_type(INDEX)
        kinds = [pointer, index, index, pointer, pointer]
        return self.f.declared(self.glue.kernels[number], ir.VoidType(), kinds)

    def _first(self, number: int) -> Value:
        """The address of the arguments of a step."""
        return self.arguments + WORD * self.glue.laid.tables.begins[number]


def address_of(f: Function, place: int) -> Value:
    """An argument that is an address, as a number."""
    return Value(f, f.builder.ptrtoint(f.function.args[place], ir_type(INDEX)), INDEX)


def function_names(name: str, *, shared: bool = False, is_open: bool = False) -> Mapping[str, str]:
    """The functions that are called from outside, by what they do. ``shared``: as in `Glue`; for open sizes or not."""
    more = [*(["run_shared"] if shared else []), *(["memory", "shapes"] if is_open else [])]
    return {one: f"{name}_{one}" for one in ("start", "run", *more)}
