"""Writes the native function that does a turn again: see `repeat`."""

from __future__ import annotations

from typing import Any

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function, Variable
from tract_llvm.language.types import I32, INDEX
from tract_llvm.language.values import Value
from tract_llvm.objects.library import Code
from tract_llvm.objects.origins import key_of_code

from tract_cpu.native.executor import FIRST_HELPER, HELPS, LINE_WORDS
from tract_cpu.native.objects import (
    DATA,
    DTYPE,
    FLAGS,
    HEAD,
    NAMES,
    RANK,
    SIZES,
    TYPE,
    WHOLE,
    WRITABLE,
)
from tract_cpu.native.repeat import ARRAY, ROW, TABLE
from tract_cpu.native.sharing import LEFT, SHARES


def write_repeat(module: Any, name: str, isa: Isa) -> None:
    """``name(table, arguments, count)`` gives a list of arrays, or ``None``: all objects of Python.

    The arguments are the inputs, and the arrays to fill, if there are any: ``None``, or none, where it makes new ones.
    Without any, it gives an empty list where no turn is under way, and none begins any more; ``None`` where one is.
    """
    f = Function(module, name, isa, [INDEX, INDEX, INDEX], INDEX)
    turn = _Turn(f, f.at(f.at(f.argument(0) + DATA)[0]))
    arguments, count = f.at(f.argument(1)), f.argument(2)
    found, inputs, filled = (f.variable(turn.names["None"]) for _ in range(3))
    with f.when(count.equals(1) | count.equals(2)):
        inputs.value = arguments[0]
    with f.when(count.equals(2)):
        filled.value = arguments[1]
    with f.when(count.equals(0)):
        turn.take(found)
    with f.when(turn.fits(inputs.value, filled.value)):
        turn.begin()
        made = turn.outputs(filled.value)
        with f.when(made.differs(0)):
            found.value = turn.run(made)
        turn.end()
    with f.when(found.value.equals(turn.names["None"])):
        turn.call("Py_IncRef", found.value)
    f.finish(found.value)


class _Turn:
    """One turn, while the function is written. ``names``: functions and objects of Python."""

    def __init__(self, f: Function, table: Buffer) -> None:
        self._f, self._table = f, table
        own = dict(zip(TABLE, (table[place] for place in range(len(TABLE))), strict=True))
        self._own = own
        names = f.at(own["names"])
        self.names = {name: names[place] for place, name in enumerate(NAMES)}
        self._rows, self._passed, self._sharing = (f.at(own[name]) for name in ("rows", "passed", "sharing"))

    def call(self, name: str, *values: Value) -> Value:
        """What a function of Python gives."""
        return self._f.result_at(self.names[name], values)

    def take(self, found: Variable) -> None:
        """Have ``found`` be an empty list, and no turn begin, if none is under way."""
        with self._f.when(self._own["busy"].equals(0)):
            made = self.call("PyList_New", self._f.index(0))
            found.value = made
            self._table[TABLE.index("busy")] = self._f.convert(made.differs(0), INDEX)

    def fits(self, inputs: Value, filled: Value) -> Value:
        """Whether no other turn is under way, and arrays are as they were; those to fill share no memory."""
        f, own, fits = self._f, self._own, self._f.variable(self._f.index(0))
        with f.when(own["busy"].equals(0)):
            fits.value = self._are_like(inputs, f.index(0), own["inputs"], WHOLE)
        with f.when(fits.value.differs(0)):
            left = self._sharing[LEFT]
            self._sharing[LEFT] = left - 1
            fits.value = f.convert(left > 1, INDEX)  # else both ways are tried where the turn is looked at closer
        helped = fits.value.differs(0) & self._shares()
        with f.loop("helper", f.select(helped, own["helpers"], f.index(0))) as number:
            awake = f.at(own["team"]).at(FIRST_HELPER + number * LINE_WORDS)
            # Who sleeps is woken where the turn is looked at closer.
            fits.value = fits.value & f.convert(awake.read_shared().equals(HELPS), INDEX)
        with f.when(fits.value.differs(0) & filled.differs(self.names["None"])):
            fits.value = self._are_like(filled, own["inputs"], own["outputs"], WHOLE | WRITABLE)
            with f.loop("filled", f.select(fits.value.differs(0), own["outputs"], f.index(0))) as number:
                place = own["inputs"] + number
                with f.loop("other", place) as other:
                    fits.value = fits.value & f.convert(self._are_apart(self._row(place), self._row(other)), INDEX)
        return fits.value.differs(0)

    def _shares(self) -> Value:
        """Whether others help."""
        return self._sharing[SHARES].differs(0)

    def _row(self, place: Value) -> Buffer:
        return self._rows.at(place * ROW)

    def _are_like(self, given: Value, first: Value, count: Value, flags: int) -> Value:
        """1 where a list or a tuple has so many arrays as the rows from ``first`` on say, with these flags; else 0."""
        f, names = self._f, self.names
        kind, fits = f.at(given + TYPE)[0], f.variable(f.index(0))
        listed = kind.equals(names["list"])
        with f.when(listed | kind.equals(names["tuple"])):
            size, item = (
                f.select(listed, names[f"PyList_{what}"], names[f"PyTuple_{what}"]) for what in ("Size", "GetItem")
            )
            fits.value = f.convert(f.result_at(size, [given]).equals(count), INDEX)
            counted = f.select(fits.value.differs(0), count, f.index(0))
            with f.loop("array", counted) as number, f.when(fits.value.differs(0)):
                array = f.result_at(item, [given, number])
                fits.value = f.index(0)
                with f.when(f.at(array + TYPE)[0].equals(names["ndarray"])):
                    fits.value = self._is_like(array, self._row(first + number), flags)
        return fits.value

    def _is_like(self, array: Value, row: Buffer, wanted: int) -> Value:
        """1 where an array has the flags that are wanted, and the type and the sizes of its row; else 0."""
        f, own = self._f, row[0]
        rank, flags = (f.convert(f.at(array + at).of(I32)[0], INDEX) for at in (RANK, FLAGS))
        like = f.variable(f.convert(rank.equals(row[1]) & (flags & wanted).equals(wanted), INDEX))
        found, sizes = f.at(f.at(array + SIZES)[0]), f.at(row[2])
        with f.loop("axis", f.select(like.value.differs(0), rank, f.index(0))) as axis:
            like.value = like.value & f.convert(found[axis].equals(sizes[axis]), INDEX)
        type_ = f.at(array + DTYPE)[0]
        with f.when(like.value.differs(0) & type_.differs(own)):
            like.value = self.call("PyArray_EquivTypes", type_, own) & 1
        row[ARRAY] = array
        return like.value

    def _are_apart(self, one: Buffer, other: Buffer) -> Value:
        """Whether two arrays share no memory."""
        begin, begin_of_other = (self._f.at(row[ARRAY] + DATA)[0] for row in (one, other))
        return (begin + one[3] <= begin_of_other) | (begin_of_other + other[3] <= begin)

    def begin(self) -> None:
        """The turn is under way: nobody else begins one, and the inputs stay, whatever becomes of the list."""
        self._table[TABLE.index("busy")] = self._f.index(1)
        with self._f.loop("begin", self._own["inputs"]) as number:
            array = self._row(number)[ARRAY]
            self.call("Py_IncRef", array)
            self._passed[number] = self._f.at(array + DATA)[0]

    def end(self) -> None:
        """The turn is over."""
        with self._f.loop("end", self._own["inputs"]) as number:
            self.call("Py_DecRef", self._row(number)[ARRAY])
        self._table[TABLE.index("busy")] = self._f.index(0)

    def outputs(self, filled: Value) -> Value:
        """A list of the arrays that are filled, or of new ones; 0 where there is no memory for them."""
        f, inputs, count = self._f, self._own["inputs"], self._own["outputs"]
        made, array = f.variable(self.call("PyList_New", count)), f.variable(f.index(0))
        with f.loop("output", count) as number, f.when(made.value.differs(0)):
            row = self._row(inputs + number)
            with f.either(filled.equals(self.names["None"])) as (new, given):
                with new:
                    self.call("Py_IncRef", row[0])  # which the call below takes away
                    array.value = self.call("PyArray_Empty", row[1], row[2], row[0], f.index(0))
                with given:
                    array.value = row[ARRAY]
                    self.call("Py_IncRef", array.value)  # which the list takes away
            with f.either(array.value.differs(0)) as (then, otherwise):
                with then:
                    self._passed[inputs + number] = f.at(array.value + DATA)[0]
                    self.call("PyList_SetItem", made.value, number, array.value)
                with otherwise:
                    self.call("Py_DecRef", made.value)
                    made.value = f.index(0)
        with f.when(made.value.equals(0)):
            self.call("PyErr_Clear")  # it is raised where the turn is done again
        return made.value

    def run(self, made: Value) -> Value:
        """Run all steps. Gives the outputs, or ``None`` where a kernel refused."""
        f, own = self._f, self._own
        lets_go, status = own["lets_go"].differs(0), f.at(own["status"])
        thread, found = f.variable(f.index(0)), f.variable(made)
        with f.when(lets_go):
            thread.value = self.call("PyEval_SaveThread")
        team = f.select(self._shares(), own["team"], f.index(0))
        f.call_at(own["run"], [own["frame"], f.index(0), own["steps"], team])
        with f.when(lets_go):
            self.call("PyEval_RestoreThread", thread.value)
        with f.when(status[0].differs(0)):
            status[0] = f.index(0)
            self.call("Py_DecRef", made)
            found.value = self.names["None"]
        return found.value


def code_of_repeat(isa: Isa) -> Code:
    """The one native function that all of them are."""
    key = key_of_code(write_repeat, f"{HEAD}", isa)
    return Code(key, "repeat", lambda module: write_repeat(module, "repeat", isa))
