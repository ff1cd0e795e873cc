"""The text of PTX as data: modules, their kernels, and what they declare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.errors import UnknownPtx
from tract_cuda.testing.emulator.types import BITS


@frozen
class PtxParameter:
    """What a kernel is called with. ``offset``, ``bytes``: where it lies among all parameters.

    ``name``: as the text has it.
    """

    name: str
    offset: int
    bytes: int


@frozen
class Variable:
    """Memory that is declared. ``space``: as in PTX. ``bytes``: ``None`` for that whose size a launch says.

    ``content``: what is in it at first, if that is said.
    ``name``: as the text has it; ``align``: bytes at multiples of which it begins.
    """

    name: str
    space: str
    align: int
    bytes: int | None
    content: bytes | None = None


@frozen
class Statement:
    """One instruction. ``guard``: the predicate that it depends on, with ``!`` in front where it must be false.

    ``opcode``: up to the first point; ``modifiers``: what stands behind, from point to point. ``line``: in the text,
    from 1 on.
    ``operands``: what stands between commas.
    """

    text: str
    line: int
    guard: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]


@frozen
class Label:
    """A place in the code that branches go to. ``targets``: where it is a table of labels, those.

    ``name``: without its colon.
    """

    name: str
    targets: tuple[str, ...] = ()


@frozen
class Entry:
    """A kernel. ``registers``: their types. ``threads``: of a block, as it demands or bounds; 0 where it does not.

    ``name``: of the kernel; ``body``: its code; ``exact_threads``, ``most_threads``: of a block.
    """

    name: str
    parameters: Sequence[PtxParameter]
    registers: Mapping[str, str]
    variables: Sequence[Variable]
    body: Sequence[Statement | Label]
    exact_threads: int
    most_threads: int


@frozen
class Module:
    """What a text of PTX has. ``target``: the architecture that it is for.

    ``entries``: the kernels by name; ``lines``: of the text.
    """

    target: str
    variables: Sequence[Variable]
    entries: Mapping[str, Entry]
    lines: Sequence[str]


_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY: Final = re.compile(r"(?:\.visible|\.weak)?\s*\.entry\s+([\w$%.]+)\s*(?:\(([^)]*)\))?([^{;]*)\{", re.DOTALL)
_TARGET: Final = re.compile(r"\.target\s+(\w+)")
_VARIABLE: Final = re.compile(
    r"(?:\.(?:extern|visible|weak|common)\s+)*\.(shared|global|const|local)\s+(?:\.align\s+(\d+)\s+)?"
    r"(?:\.v(\d)\s+)?\.(\w+)\s+([\w$%.]+)((?:\s*\[\d*\])*)\s*(?:=\s*(.*))?$",
    re.DOTALL,
)
_PARAMETER: Final = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+)*?(?:\.align\s+\d+\s+)?)?([\w$%.]+)(?:\[(\d+)\])?$"
)
_THREADS: Final = re.compile(r"\.(reqntid|maxntid)\s+(\d+(?:\s*,\s*\d+)*)")
_REGISTERS: Final = re.compile(r"\.reg\s*\.(\w+)\s+(.*)", re.DOTALL)
_MANY: Final = re.compile(r"([\w$%]+)<(\d+)>$")
_GUARDED: Final = re.compile(r"@\s*(!?)\s*([\w$%]+)\s+(.*)", re.DOTALL)
_INSTRUCTION: Final = re.compile(r"([a-z]\w*)((?:\.[\w:]+)*)\s*(.*)", re.DOTALL)
_LABEL: Final = re.compile(r"\s*[\w$%]+\s*$")


def parsed(text: str) -> Module:
    """What a text of PTX says. Raises UnknownPtx."""
    plain = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    found = list(_ENTRY.finditer(plain))
    entries: dict[str, Entry] = {}
    outside, at = "", 0
    for head in found:
        if head.start() < at:
            continue
        outside += plain[at : head.start()]
        at = _closing(plain, head.end() - 1)
        entries[head.group(1)] = _entry(plain, head, at - 1)
    outside += plain[at:]
    target = _TARGET.search(outside)
    declared = [_variable(one) for one in _declarations(outside)]
    return Module(target.group(1) if target else "", declared, entries, text.split("\n"))


def _closing(text: str, begin: int) -> int:
    """The place behind the brace that closes the one at ``begin``."""
    depth = 0
    for found in re.finditer(r"[{}]", text[begin:]):
        depth += 1 if found.group() == "{" else -1
        if not depth:
            return begin + found.end()
    raise UnknownPtx("a brace is not closed", where=f"line {_line(text, begin)}")


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _declarations(outside: str) -> Iterator[str]:
    """What declares variables, outside of functions."""
    for part in re.sub(r"\.section\s+[\w.]+\s*\{.*?\}", "", outside, flags=re.DOTALL).split(";"):
        found = re.search(r"\.(?:shared|global|const)\b.*", part, re.DOTALL)
        if found:
            yield found.group().strip()


def _variable(text: str) -> Variable:
    found = _VARIABLE.match(text)
    if found is None:
        raise UnknownPtx(f"this declaration is not known: {' '.join(text.split())}")
    space, align, lanes, kind, name, sizes, content = found.groups()
    one = BITS[kind] // 8 * int(lanes or 1)
    counts = re.findall(r"\[(\d*)\]", sizes)
    size = None if "" in counts else one
    for count in counts:
        size = size and size * int(count)
    held = None if content is None else _content(content, BITS[kind] // 8, size or 0)
    return Variable(name, space, int(align or one), size, held)


def _content(text: str, element: int, size: int) -> bytes:
    """The bytes of a list of numbers."""
    mask = (1 << 8 * element) - 1
    numbers = re.findall(r"0[fFdD][0-9a-fA-F]+|[-+]?0x[0-9a-fA-F]+|[-+]?\d+", text)
    values = [int(one[2:], 16) if one[:2].lower() in ("0f", "0d") else int(one, 0) for one in numbers]
    return b"".join((one & mask).to_bytes(element, "little") for one in values).ljust(size, b"\0")


def _entry(text: str, head: re.Match[str], end: int) -> Entry:
    body = _Body(text, head.end(), end)
    threads = {kind: _product(sizes) for kind, sizes in _THREADS.findall(head.group(3))}
    exact, most = threads.get("reqntid", 0), threads.get("maxntid", 0)
    return Entry(
        head.group(1), _parameters(head.group(2) or ""), body.registers, body.variables, body.code, exact, most
    )


def _product(sizes: str) -> int:
    found = 1
    for one in sizes.split(","):
        found *= int(one)
    return found


def _parameters(text: str) -> list[PtxParameter]:
    found, at = list[PtxParameter](), 0
    for one in split(text):
        match = _PARAMETER.match(" ".join(one.split()))
        if match is None:
            raise UnknownPtx(f"this parameter is not known: {one}")
        align, kind, name, count = match.groups()
        size = BITS[kind] // 8 * int(count or 1)
        step = int(align or BITS[kind] // 8)
        at = -(-at // step) * step
        found.append(PtxParameter(name, at, size))
        at += size
    return found


def split(text: str, separator: str = ",") -> list[str]:
    """The parts between separators that stand in no brackets."""
    found, depth, begin = list[str](), 0, 0
    for place, one in enumerate(text):
        if one in "{[(":
            depth += 1
        elif one in "}])":
            depth -= 1
        elif one == separator and not depth:
            found.append(text[begin:place].strip())
            begin = place + 1
    rest = text[begin:].strip()
    return [*found, rest] if rest else found


def _words(modifiers: str) -> tuple[str, ...]:
    """Blocks are alone: their shared memory is that of their cluster."""
    found = modifiers.split(".")[1:]
    return tuple("shared" if one in ("shared::cta", "shared::cluster") else one for one in found)


class _Body:
    """The statements of one kernel. Names declared in inner braces are told apart."""

    def __init__(self, text: str, begin: int, end: int) -> None:
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.code: list[Statement | Label] = []
        self._scopes: list[dict[str, str]] = [{}]
        self._count = 0
        self._text = text
        self._read(begin, end)

    def _read(self, begin: int, end: int) -> None:
        text = self._text
        start, line = begin, _line(text, begin)
        depth = 0
        for found in re.finditer(r"[{};:\n]", text[begin:end]):
            sign, place = found.group(), begin + found.start()
            held = text[start:place]
            if sign == "\n":
                line += 1
                if not held.strip() or held.lstrip().startswith((".loc", ".file")):
                    start = place + 1
            elif sign in "{}":
                depth = self._brace(sign, held, depth, place)
                start = start if held.strip() or depth else place + 1
            elif sign == ";":
                self._statement(held, line - held.lstrip().count("\n"))
                start, depth = place + 1, 0
            elif _LABEL.match(held) and not text.startswith("::", place) and text[place - 1] != ":":
                self.code.append(Label(self._own(held.strip())))
                start = place + 1

    def _brace(self, sign: str, held: str, depth: int, place: int) -> int:
        """Open or close a scope, unless it is a list of operands."""
        if held.strip():
            return depth + (1 if sign == "{" else -1)
        if sign == "{":
            self._scopes.append(self._labels_ahead(place))
        else:
            self._scopes.pop()
        return 0

    def _labels_ahead(self, place: int) -> dict[str, str]:
        """What a scope begins with: its ending for names, under the empty name, and its labels."""
        self._count += 1
        own = f"${self._count}"
        inside = self._text[place : _closing(self._text, place)]
        return {"": own, **{name: name + own for name in re.findall(r"(?<![\w$%])([\w$]+):(?!:)", inside)}}

    def _statement(self, held: str, line: int) -> None:
        text = " ".join(held.split())
        if text.startswith("."):
            self._directive(text, line)
        elif text:
            self.code.append(self._instruction(text, line))

    def _directive(self, text: str, line: int) -> None:
        registers = _REGISTERS.match(text)
        if registers:
            for one in split(registers.group(2)):
                self._register(one, registers.group(1))
        elif re.match(r"\.(?:shared|local|global|const)\b", text):
            self.variables.append(_variable(text))
        elif text.startswith(".branchtargets"):
            last = self.code.pop()
            assert isinstance(last, Label)
            self.code.append(Label(last.name, tuple(split(text.removeprefix(".branchtargets")))))
        elif not text.startswith((".pragma", ".loc", ".file")):
            raise UnknownPtx(f"this directive is not known: {text}", where=f"line {line}")

    def _register(self, text: str, kind: str) -> None:
        many = _MANY.match(text)
        names = [f"{many.group(1)}{number}" for number in range(int(many.group(2)))] if many else [text]
        own = self._scopes[-1].get("", "")
        for name in names:
            self.registers[name + own] = kind
            if own:
                self._scopes[-1][name] = name + own

    def _instruction(self, text: str, line: int) -> Statement:
        guarded = _GUARDED.match(text)
        guard, rest = (guarded.group(1) + self._own(guarded.group(2)), guarded.group(3)) if guarded else ("", text)
        found = _INSTRUCTION.match(rest)
        if found is None:
            raise UnknownPtx(f"this is no instruction: {text}", where=f"line {line}")
        opcode, modifiers, operands = found.groups()
        names = tuple(self._own_names(one) for one in split(operands))
        return Statement(text, line, guard, opcode, _words(modifiers), names)

    def _own(self, name: str) -> str:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return name

    def _own_names(self, operand: str) -> str:
        if len(self._scopes) == 1:
            return operand
        return re.sub(r"[\w$%.]+", lambda found: self._own(found.group()), operand)
