"""Object files become functions in memory without LLVM, which takes as long to load, and as much memory, as a model.

Kernels call each other by addresses that they are told, so little is left to do: code has to find its constants, and
functions of the C library. What is read is the format ELF, as LLVM writes it for code that may lie anywhere, for the
processors of `tract_llvm.objects.relocations`. Where anything else is in a file, or it has another format, `CannotLink`
says so, and it is left to LLVM.

Source: System V ABI, chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import Any, Final

from tract_core.frozen import frozen
from tract_core.machine import architecture
from tract_llvm.objects.c_library import function_of_system
from tract_llvm.objects.executable import executable
from tract_llvm.objects.relocations import MACHINES, CannotLink, ElfMachine

ALIGNMENT: Final = 64
"""Each section begins where a line of the cache does, at least."""

_HEAD: Final = b"\x7fELF\x02\x01\x01"
"""Addresses of 64 bits, the lowest byte first."""
_OBJECT: Final = 1
"""The type of the file."""
_CONTENT, _SYMBOLS, _RELOCATIONS = 1, 2, 4
"""Types of sections."""
_WRITTEN, _LOADED, _OF_THREADS = 1, 2, 0x400
"""Flags of sections."""
_FILE: Final = Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = Struct("<IIQQQQIIQQ")
_SYMBOL: Final = Struct("<IBBHQQ")
_RELOCATION: Final = Struct("<QIIq")
_WORD: Final = Struct("<I")
_JUMP: Final = Struct("<8sQ")


@frozen
class Linked:
    """A function. ``address``, ``size``: of its code. ``memory``: where it lies, as long as somebody holds it."""

    address: int
    size: int
    memory: Any


def linked(objects: Sequence[tuple[str, bytes]]) -> list[Linked]:
    """The functions of these names, each out of its object file, in one piece of memory. Raises CannotLink.

    A file that several of them are in lies there once.
    """
    machine = MACHINES.get(architecture())
    if machine is None:
        raise CannotLink(f"the processor is of type {architecture()}")
    try:
        files = {id(code): _Object(code, machine) for _, code in objects}
        end = 0
        for file in files.values():
            end = file.place(end)
        code = bytearray(end)
        for file in files.values():
            file.write(code)
        found = [files[id(file)].function(name) for name, file in objects]
        whole = executable(code, sees_writes=machine.sees_writes)
    except (error, OSError, UnicodeDecodeError, ValueError) as damage:  # as the file ends where more is expected
        raise CannotLink(f"{damage}") from damage
    return [Linked(whole.address + place, size, whole.memory) for place, size in found]


class _Section:
    """A row of the table of sections."""

    __slots__ = ("alignment", "flags", "info", "link", "offset", "size", "type")

    def __init__(self, row: tuple[int, ...]) -> None:
        _, self.type, self.flags, _, self.offset, self.size, self.link, self.info, self.alignment, _ = row


class _Symbol:
    """``value``: where it is in its section."""

    __slots__ = ("name", "section", "size", "value")

    def __init__(self, name: str, section: int, value: int, size: int) -> None:
        self.name, self.section, self.value, self.size = name, section, value, size


class _Relocation:
    """A place that is told where a symbol is."""

    __slots__ = ("addend", "kind", "offset", "symbol")

    def __init__(self, offset: int, kind: int, symbol: int, addend: int) -> None:
        self.offset, self.kind, self.symbol, self.addend = offset, kind, symbol, addend


class _Object:
    """One object file, and where its parts lie, by places in the memory of all of them."""

    def __init__(self, code: bytes, machine: ElfMachine) -> None:
        self._code, self._machine = code, machine
        _, type_, number, _, _, _, sections, _, _, _, _, _, count, _ = _FILE.unpack_from(code)
        if not code.startswith(_HEAD) or (type_, number) != (_OBJECT, machine.number):
            raise CannotLink("it is no object file for this processor")
        self._sections = [_Section(row) for row in _SECTION.iter_unpack(self._part(sections, count * _SECTION.size))]
        (table,) = [one for one in self._sections if one.type == _SYMBOLS]
        names = self._content(self._sections[table.link])
        self._symbols = [
            _Symbol(names[name : names.index(b"\0", name)].decode(), section, value, size)
            for name, _, _, section, value, size in _SYMBOL.iter_unpack(self._content(table))
        ]
        self._relocations = [
            (section.info, _Relocation(*row))
            for section in self._sections
            if section.type == _RELOCATIONS and self._sections[section.info].flags & _LOADED
            for row in _RELOCATION.iter_unpack(self._content(section))
        ]
        self._places: dict[int, int] = {}
        """Of the sections that are loaded, by their numbers."""
        self._jumps: dict[int, int] = {}
        """Of the jumps to functions of libraries, by the numbers of their symbols."""

    def _part(self, begin: int, size: int) -> bytes:
        if begin + size > len(self._code):
            raise CannotLink("the file ends too early")
        return self._code[begin : begin + size]

    def _content(self, section: _Section) -> bytes:
        return self._part(section.offset, section.size)

    def place(self, end: int) -> int:
        """Settle where everything lies, from ``end`` on. Returns where it ends."""
        for number, section in enumerate(self._sections):
            if section.flags & _LOADED:
                if section.type != _CONTENT or section.flags & (_WRITTEN | _OF_THREADS):
                    raise CannotLink(f"it has a section of type {section.type} with flags {section.flags:#x}")
                alignment = max(section.alignment, ALIGNMENT)
                self._places[number] = -(-end // alignment) * alignment
                end = self._places[number] + section.size
        for _, relocation in self._relocations:
            number = relocation.symbol
            calls = relocation.kind in self._machine.calls and not self._symbols[number].section
            if calls and number not in self._jumps:
                self._jumps[number] = -(-end // _JUMP.size) * _JUMP.size
                end = self._jumps[number] + _JUMP.size
        return end

    def write(self, memory: bytearray) -> None:
        """Write everything to its place."""
        for number, place in self._places.items():
            content = self._content(self._sections[number])
            memory[place : place + len(content)] = content
        for number, place in self._jumps.items():
            _JUMP.pack_into(memory, place, self._machine.jump, _function_of_library(self._symbols[number].name))
        for section, relocation in self._relocations:
            fit = self._machine.fits.get(relocation.kind)
            if fit is None:
                raise CannotLink(f"it has a relocation of kind {relocation.kind}")
            place, target = self._places[section] + relocation.offset, self._target(relocation.symbol)
            (word,) = _WORD.unpack_from(memory, place)
            _WORD.pack_into(memory, place, fit(word, place, target + relocation.addend))

    def _target(self, number: int) -> int:
        symbol = self._symbols[number]
        if number in self._jumps:
            return self._jumps[number]
        if symbol.section not in self._places:
            raise CannotLink(f"symbol {symbol.name!r} is not in what is loaded")
        return self._places[symbol.section] + symbol.value

    def function(self, name: str) -> tuple[int, int]:
        """Where a function begins, and its size in bytes."""
        for number, symbol in enumerate(self._symbols):
            if symbol.name == name:
                return self._target(number), symbol.size
        raise CannotLink(f"it has no function {name!r}")


def _function_of_library(name: str) -> int:
    found = function_of_system(name)
    if found is None:
        raise CannotLink(f"there is no function {name!r}")
    return found
