"""Modules of WebAssembly out of object files: what is called is exported, memory and stack are there.

An object of LLVM already has the numbers that a linker would give it where it is alone: functions are counted from 0
on, and data lie one behind the other from address 0 on. So nothing in its code is changed: what it imports is defined,
with the stack behind the data. The format: https://webassembly.github.io/spec/core/binary and, of objects,
https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_cpu.aligned import ALIGNMENT

STACK: Final = 1 << 20
"""Bytes of the stack, which grows down to the data."""

PAGE: Final = 1 << 16
HEAP: Final = "__heap_base"
"""The global that says where memory begins that nothing of the module lies in."""

_BEGIN: Final = b"\0asm\1\0\0\0"
_CUSTOM, _TYPE, _IMPORT, _FUNCTION, _MEMORY, _GLOBAL, _EXPORT = 0, 1, 2, 3, 5, 6, 7
_CODE, _DATA, _DATA_COUNT = 10, 11, 12
_IS_FUNCTION, _IS_TABLE, _IS_MEMORY, _IS_GLOBAL = range(4)
_SYMBOL_TABLE: Final = 8
_NAMES_OF_FUNCTIONS: Final = 1
_UNDEFINED, _EXPLICIT_NAME = 0x10, 0x40
_I32, _CONST, _END = 0x7F, 0x41, 0x0B


class _Reader:
    """Bytes, from a place on."""

    def __init__(self, content: bytes, place: int = 0) -> None:
        self.content, self.place = content, place

    @property
    def has_more(self) -> bool:
        """Whether any are left."""
        return self.place < len(self.content)

    def number(self) -> int:
        """An unsigned integer of seven bits a byte."""
        found, shift = 0, 0
        while True:
            byte = self.byte()
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    def byte(self) -> int:
        """The next one."""
        self.place += 1
        return self.content[self.place - 1]

    def bytes(self) -> bytes:
        """So many as the number in front says."""
        size = self.number()
        self.place += size
        return self.content[self.place - size : self.place]

    def name(self) -> str:
        """The same as a text."""
        return self.bytes().decode()


@frozen
class _Object:
    """``sections``: by their numbers; ``functions``: the number of each that has a name; ``data``: where these end."""

    sections: dict[int, bytes]
    functions: dict[str, int]
    data: int


def module_of(code: bytes | bytearray, exports: Sequence[str]) -> bytes:
    """The module of an object, with these functions exported. Raises Unsupported, by name, for what it lacks."""
    found = _read(bytes(code))
    stack = -(-found.data // ALIGNMENT) * ALIGNMENT + STACK
    pages = -(-stack // PAGE)
    sections = dict(found.sections)
    sections[_MEMORY] = _vector([b"\0" + _number(pages)])
    sections[_GLOBAL] = _vector([_global(stack, moves=True), _global(stack, moves=False)])
    said = [_named(name) + bytes([_IS_FUNCTION]) + _number(found.functions[name]) for name in exports]
    memory, heap = _named("memory") + bytes([_IS_MEMORY, 0]), _named(HEAP) + bytes([_IS_GLOBAL, 1])
    sections[_EXPORT] = _vector([memory, heap, *said])
    sections[_CUSTOM] = _named("name") + bytes([_NAMES_OF_FUNCTIONS]) + _sized(_names(found.functions))
    order = (_TYPE, _FUNCTION, _MEMORY, _GLOBAL, _EXPORT, _DATA_COUNT, _CODE, _DATA, _CUSTOM)
    return _BEGIN + b"".join(bytes([one]) + _sized(sections[one]) for one in order if one in sections)


def _names(functions: Mapping[str, int]) -> bytes:
    """What profilers call functions."""
    return _vector([_number(number) + _named(name) for name, number in sorted(functions.items(), key=itemgetter(1))])


def _read(code: bytes) -> _Object:
    sections, functions, reader = dict[int, bytes](), dict[str, int](), _Reader(code, len(_BEGIN))
    while reader.has_more:
        kind, content = reader.byte(), reader.bytes()
        if kind == _CUSTOM:
            inner = _Reader(content)
            if inner.name() == "linking":
                functions = dict(_symbols(inner))
        elif kind == _IMPORT:
            _check_imports(content)
        else:
            sections[kind] = content
    return _Object(sections, functions, _end_of_data(sections.get(_DATA, b"\0")))


def _symbols(reader: _Reader) -> Iterator[tuple[str, int]]:
    """The functions that have names, with their numbers."""
    reader.number()  # the version
    while reader.has_more:
        kind, inner = reader.byte(), _Reader(reader.bytes())
        for _ in range(inner.number() if kind == _SYMBOL_TABLE else 0):
            what, flags = inner.byte(), inner.number()
            is_named = not flags & _UNDEFINED or bool(flags & _EXPLICIT_NAME)
            if what == 1:  # data
                inner.name()
                for _ in range(0 if flags & _UNDEFINED else 3):
                    inner.number()
                continue
            number = inner.number()
            name = inner.name() if is_named and what != 3 else ""  # a section has none
            if what == _IS_FUNCTION and name:
                yield name, number


def _check_imports(content: bytes) -> None:
    """Memory, the pointer of the stack and a table are defined here; functions are not."""
    reader = _Reader(content)
    for _ in range(reader.number()):
        module, name, kind = reader.name(), reader.name(), reader.byte()
        if kind == _IS_FUNCTION:
            raise Unsupported(
                f"the object wants a function {module}.{name}", hint="write FILE.o, and link it with that"
            )
        if kind == _IS_TABLE:
            reader.byte()
        if kind == _IS_GLOBAL:
            reader.place += 2
            continue
        for _ in range(1 + (reader.byte() & 1)):
            reader.number()


def _end_of_data(content: bytes) -> int:
    reader, end = _Reader(content), 0
    for _ in range(reader.number()):
        reader.number()
        assert reader.byte() == _CONST, "objects of LLVM say numbers"
        begin = reader.number()
        assert reader.byte() == _END, "and nothing else"
        end = max(end, begin + len(reader.bytes()))
    return end


def _global(value: int, *, moves: bool) -> bytes:
    return bytes([_I32, moves, _CONST]) + _signed(value) + bytes([_END])


def _named(name: str) -> bytes:
    return _sized(name.encode())


def _vector(items: Sequence[bytes]) -> bytes:
    return _number(len(items)) + b"".join(items)


def _sized(content: bytes) -> bytes:
    return _number(len(content)) + content


def _number(value: int, bound: int = 0x80) -> bytes:
    """An integer from 0 on, seven bits a byte. ``bound``: what is below it is the last byte."""
    found = bytearray()
    while value >= bound:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _signed(value: int) -> bytes:
    """The same where the last byte has a sign."""
    return _number(value, 0x40)
