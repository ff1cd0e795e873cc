"""What instructions are written with: registers, operands, and the text of LLVM that they become."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.errors import UnknownPtx
from tract_cuda.testing.emulator.helpers import HELPERS
from tract_cuda.testing.emulator.machine.layout import LAUNCH, THREAD, TOGETHER, TURN
from tract_cuda.testing.emulator.parse import Statement, split
from tract_cuda.testing.emulator.types import BITS, FLOATS

_SPECIAL: Final = {
    **{f"%{name}.{axis}": f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"},
    "%laneid": "lane",
    "%warpid": "warp",
}
_LANES: Final = {
    "%lanemask_eq": ("shl i32 1, {0}",),
    "%lanemask_lt": ("shl i32 -1, {0}", "xor i32 {1}, -1"),
    "%lanemask_ge": ("shl i32 -1, {0}",),
    "%lanemask_gt": ("shl i32 -2, {0}",),
    "%lanemask_le": ("shl i32 -2, {0}", "xor i32 {1}, -1"),
}
_CONSTANTS: Final = {"WARP_SZ": 32, "%nwarpid": 32, "%smid": 0, "%nsmid": 1, "%gridid": 1}
_NUMBER: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_FLOAT: Final = re.compile(r"(-?)0[fFdD]([0-9a-fA-F]{8}|[0-9a-fA-F]{16})$")
_ADDRESS: Final = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\s*\w+))?\s*\]$|\[\s*([%\w$.]+)\s*(-\s*\w+)\s*\]$")

_SPACES: Final = ("global", "shared", "local", "param", "const")


@frozen
class Operation:
    """An instruction with what its modifiers say. ``kind``: the last type among them."""

    statement: Statement

    @property
    def words(self) -> tuple[str, ...]:
        """The modifiers."""
        return self.statement.modifiers

    @property
    def operands(self) -> tuple[str, ...]:
        """As they are written."""
        return self.statement.operands

    @property
    def kind(self) -> str:
        """The last type among the modifiers."""
        found = [one for one in self.words if one in BITS]
        if not found:
            raise self.unknown("it has no type")
        return found[-1]

    @property
    def kinds(self) -> list[str]:
        """All types among the modifiers."""
        return [one for one in self.words if one in BITS]

    def has(self, *words: str) -> bool:
        """Whether one of these is among the modifiers."""
        return any(one in self.words for one in words)

    def one_of(self, words: Sequence[str], otherwise: str = "") -> str:
        """The first of these that is among the modifiers."""
        return next((one for one in words if one in self.words), otherwise)

    def unknown(self, why: str) -> UnknownPtx:
        """The error for an instruction that is not known."""
        return UnknownPtx(
            f"the instruction '{self.statement.text}' is not known: {why}", where=f"line {self.statement.line}"
        )


@frozen
class Row:
    """How an instruction is written. ``words``: the modifiers that it may have besides types."""

    write: Callable[[Writer, Operation], None]
    words: str = ""


class Writer:
    """One kernel, while it becomes LLVM.

    ``registers``: their types. ``symbols``: addresses of what is declared, and their spaces. ``parameters``: offsets.
    """

    def __init__(
        self, registers: Mapping[str, str], symbols: Mapping[str, tuple[str, int]], parameters: Mapping[str, int]
    ) -> None:
        self.registers, self.symbols, self.parameters = registers, symbols, parameters
        self.lines: list[str] = []
        self.functions: dict[str, str] = {}
        self.declarations: set[str] = set()
        self.used: dict[str, None] = {}
        self.more: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.line = 0
        self._count = 0

    # ---- text

    def ir(self, text: str) -> str:
        """An instruction of LLVM that gives a value, and its name."""
        self._count += 1
        self.lines.append(f"  %t{self._count} = {text}")
        return f"%t{self._count}"

    def two(self, name: str, bits: int, one: str | int, other: str | int) -> str:
        """An instruction of LLVM on two integers of so many bits, and the name of what it gives."""
        return self.ir(f"{name} i{bits} {one}, {other}")

    def do(self, text: str) -> None:
        """An instruction of LLVM that gives none."""
        self.lines.append(f"  {text}")

    def fresh(self, name: str) -> str:
        """A label of LLVM that nothing else has."""
        self._count += 1
        return f"{name}{self._count}"

    def label(self, name: str) -> None:
        """Here is a label."""
        self.lines.append(f'"{name}":')

    def helper(self, name: str, *arguments: str) -> str:
        """What a function of `HELPERS` gives; each argument with its type."""
        self._need(name)
        return self.ir(f"call {HELPERS[name].result} @{name}({', '.join(arguments)})")

    def _need(self, name: str) -> None:
        if name not in self.used:
            for other in HELPERS[name].needs:
                self._need(other)
            self.used[name] = None

    def intrinsic(self, name: str, result: str, *arguments: str) -> str:
        """What a function gives that is declared; each argument with its type."""
        self.declare(name, result, [one.split(" ")[0] for one in arguments])
        return self.ir(f"call {result} @{name}({', '.join(arguments)})")

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        """A function of elsewhere."""
        self.declarations.add(f"declare {result} @{name}({', '.join(arguments)})")

    def machine(self, name: str, *arguments: str) -> str:
        """Call a function of the machine with the thread and 64-bit numbers, for the number it gives."""
        self.declare(f"tract.{name}", "i64", ["i64"] * (len(arguments) + 1))
        return self.ir(f"call i64 @tract.{name}({', '.join(f'i64 {one}' for one in ('%thread', *arguments))})")

    def machine_do(self, name: str, *arguments: str) -> None:
        """The same for one that gives nothing."""
        self.declare(f"tract.{name}", "void", ["i64"] * (len(arguments) + 1))
        self.do(f"call void @tract.{name}({', '.join(f'i64 {one}' for one in ('%thread', *arguments))})")

    # ---- the thread's record

    def _field(self, name: str, place: int = 0) -> str:
        return self.ir(f"getelementptr i8, ptr %T, i64 {THREAD.offset(name) + place}")

    def field(self, name: str) -> str:
        """A field of the thread, as i64."""
        return self.ir(f"load i64, ptr {self._field(name)}")

    def set_field(self, name: str, value: str | int) -> None:
        """Set one, to an i64."""
        self.do(f"store i64 {value}, ptr {self._field(name)}")

    def seed(self) -> str:
        """That of approximations, as i64."""
        launch = self.ir(f"inttoptr i64 {self.field('launch')} to ptr")
        place = self.ir(f"getelementptr i8, ptr {launch}, i64 {LAUNCH.offset('seed')}")
        return self.ir(f"load i64, ptr {place}")

    def double(self, value: float) -> str:
        """A number as LLVM writes it."""
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

    def inner(self) -> Writer:
        """For the body of another function of the module."""
        found = Writer({}, {}, {})
        found.declarations, found.used, found.functions = self.declarations, self.used, self.functions
        found.line = self.line
        return found

    def function(self, name: str, arguments: str, body: Callable[[Writer], None]) -> str:
        """A function of the module that returns nothing, written once; its name."""
        if name not in self.functions:
            self.functions[name] = ""
            inner = self.inner()
            body(inner)
            places = "\n".join(f"  {place} = alloca {kind}" for place, kind in inner.places.items())
            code = "\n".join(inner.lines)
            self.functions[name] = (
                f"define internal void @{name}({arguments}) {{\nentry:\n{places}\n{code}\n  ret void\n}}\n"
            )
        return name

    def place(self, kind: str) -> str:
        """Memory of the function that is written, for a value of a type of LLVM."""
        self._count += 1
        self.places[f"%p{self._count}"] = kind
        return f"%p{self._count}"

    @contextmanager
    def loop(self, count: int) -> Generator[str]:
        """Goes round so many times, with the number of the round, an i64."""
        place = self.place("i64")
        head, done = self.fresh("head"), self.fresh("done")
        self.do(f"store i64 0, ptr {place}")
        self.do(f"br label %{head}")
        self.label(head)
        index = self.ir(f"load i64, ptr {place}")
        yield index
        following = self.two("add", 64, index, "1")
        self.do(f"store i64 {following}, ptr {place}")
        more = self.ir(f"icmp ult i64 {following}, {count}")
        self.do(f"br i1 {more}, label %{head}, label %{done}")
        self.label(done)

    def element(self, base: str, kind: str, place: str) -> str:
        """The address of an element of an array."""
        return self.ir(f"getelementptr {kind}, ptr {base}, i64 {place}")

    def registers_of_own(self, name: str, kind: str) -> None:
        """A register that the kernel does not declare."""
        self.more.setdefault(name, kind)

    def kind_of(self, register: str) -> str | None:
        """The type of a register, if it is one."""
        return self.registers.get(register) or self.more.get(register)

    def slot(self, number: int) -> str:
        """The 32 bits of a slot."""
        return self.ir(f"load i32, ptr {self._field('extra', 4 * number)}")

    def set_slot(self, number: int, value: str) -> None:
        """Set a slot, to an i32."""
        self.do(f"store i32 {value}, ptr {self._field('extra', 4 * number)}")

    # ---- control

    def suspend(self, wait: int | None = None) -> None:
        """Others go on, until what the thread waits for is there. Without ``wait``, it was said already."""
        if wait is not None:
            self.set_field("wait", wait)
            self.set_field("line", self.line)
        resumed = self.fresh("resume")
        self.declare("llvm.coro.suspend", "i8", ["token", "i1"])
        found = self.ir("call i8 @llvm.coro.suspend(token none, i1 false)")
        self.do(f"switch i8 {found}, label %suspend [i8 0, label %{resumed} i8 1, label %cleanup]")
        self.label(resumed)

    def turn(self) -> None:
        """Others may go on in between."""
        self.suspend(TURN)

    def wait_together(self, function: str, mask: str, wait: int = TOGETHER) -> None:
        """Wait until the lanes of a mask are here, and the function has done what they do together."""
        self.set_field("mask", mask)
        self.set_field("flags", 0)
        self.set_field("function", self.ir(f"ptrtoint ptr @{function} to i64"))
        self.suspend(wait)

    def spend(self) -> None:
        """A jump back: after some of them, others get their turn."""
        fuel = self.ir(f"sub i64 {self.field('fuel')}, 1")
        self.set_field("fuel", fuel)
        empty, on = self.fresh("empty"), self.fresh("on")
        over = self.ir(f"icmp sle i64 {fuel}, 0")
        self.do(f"br i1 {over}, label %{empty}, label %{on}")
        self.label(empty)
        self.turn()
        self.do(f"br label %{on}")
        self.label(on)

    # ---- operands

    def get(self, operand: str, kind: str) -> str:
        """An operand as the type of LLVM for a type of PTX: integers, or floats that LLVM computes in."""
        if kind not in FLOATS:
            return self.bits(operand, kind)
        found = self.bits(operand, kind)
        return self.ir(f"bitcast i{BITS[kind]} {found} to {FLOATS[kind]}")

    def bits(self, operand: str, kind: str) -> str:
        """An operand as an integer of so many bits."""
        bits = BITS[kind]
        if operand.startswith("!"):
            return self.ir(f"xor i1 {self.bits(operand[1:], kind)}, true")
        held = self.kind_of(operand)
        if held is not None:
            return self.sized(self.ir(f'load i{BITS[held]}, ptr %"{operand}.r"'), BITS[held], bits)
        if operand in _SPECIAL:
            return self.sized(self.field(_SPECIAL[operand]), 64, bits)
        if operand in self.symbols:
            return str(self.symbols[operand][1])
        return self._other(operand, kind)

    def _other(self, operand: str, kind: str) -> str:
        bits = BITS[kind]
        if operand in _LANES:
            found = [self.ir(f"trunc i64 {self.field('lane')} to i32")]
            for step in _LANES[operand]:
                found.append(self.ir(step.format(*found)))
            return self.sized(found[-1], 32, bits)
        if operand in ("%clock", "%clock64", "%globaltimer"):
            return self.sized(self.field("fuel"), 64, bits)
        if operand == "%dynamic_smem_size":
            return "0"
        constant = _CONSTANTS.get(operand, None)
        found_number = constant if constant is not None else number(operand, kind)
        if found_number is None:
            raise UnknownPtx(f"the operand '{operand}' is not known", where=f"line {self.line}")
        return str(found_number)

    def sized(self, value: str, have: int, want: int, *, signed: bool = False) -> str:
        """An integer cut, or extended."""
        if have == want:
            return value
        how = "trunc" if have > want else "sext" if signed else "zext"
        return self.ir(f"{how} i{have} {value} to i{want}")

    def put(self, operand: str, value: str, kind: str) -> None:
        """Set a register; a wider one is extended by the sign of the type."""
        if operand == "_":
            return
        held = self.kind_of(operand)
        if held is None:
            raise UnknownPtx(f"the register '{operand}' is not declared", where=f"line {self.line}")
        bits, wide = BITS[kind], BITS[held]
        if kind in FLOATS:
            value = self.ir(f"bitcast {FLOATS[kind]} {value} to i{bits}")
        value = self.sized(value, bits, wide, signed=kind[0] == "s")
        self.do(f'store i{wide} {value}, ptr %"{operand}.r"')

    def address(self, operand: str) -> str:
        """The address that an operand in brackets says, as i64."""
        found = _ADDRESS.match(operand)
        if found is None:
            raise UnknownPtx(f"the address '{operand}' is not known", where=f"line {self.line}")
        base = found.group(1) or found.group(3)
        offset = int((found.group(2) or found.group(4) or "0").replace(" ", ""), 0)
        if base in self.symbols and self.symbols[base][0] != "local":
            return str(self.symbols[base][1] + offset)
        if _NUMBER.match(base):
            return str(int(base, 0) + offset)
        value = self._base(base)
        return self.ir(f"add i64 {value}, {offset}") if offset else value

    def _base(self, base: str) -> str:
        if base in self.symbols:
            return self.ir(f"add i64 {self.field('local')}, {self.symbols[base][1]}")
        return self.sized(self.bits(base, self.registers.get(base, "b64")), BITS[self.registers.get(base, "b64")], 64)

    def parameter(self, operand: str) -> str:
        """The place of a parameter, as a pointer."""
        found = _ADDRESS.match(operand)
        if found is None or found.group(1) not in self.parameters:
            raise UnknownPtx(f"the parameter '{operand}' is not known", where=f"line {self.line}")
        offset = self.parameters[found.group(1)] + int((found.group(2) or "0").replace(" ", ""), 0)
        base = self.ir(f"inttoptr i64 {self.field('parameters')} to ptr")
        return self.ir(f"getelementptr i8, ptr {base}, i64 {offset}")

    def space_of(self, base: str) -> str:
        """The space of a symbol."""
        return self.symbols[base][0] if base in self.symbols else ""


def listed(operand: str) -> list[str]:
    """The registers of a list in braces; one alone is a list of one."""
    return split(operand[1:-1]) if operand.startswith("{") else [operand]


def number(text: str, kind: str) -> int | None:
    """The bits of a number that is written out, if it is one."""
    bits = BITS[kind]
    exact = _FLOAT.match(text)
    if exact:
        held = int(exact.group(2), 16)
        width = 4 * len(exact.group(2))
        held ^= (1 << width - 1) if exact.group(1) else 0
        return held if width <= bits else _narrowed(held, width, bits)
    if _NUMBER.match(text) and kind not in FLOATS:
        return int(text.rstrip("U"), 0) & ((1 << bits) - 1) if bits > 1 else int(bool(int(text.rstrip("U"), 0)))
    try:
        value = float(text)
    except ValueError:
        return None
    return int.from_bytes(struct.pack({"f16": "<e", "f64": "<d"}.get(kind, "<f"), value), "little")


def _narrowed(held: int, width: int, bits: int) -> int:
    value = struct.unpack("<d" if width == 64 else "<f", held.to_bytes(width // 8, "little"))[0]
    return int.from_bytes(struct.pack({32: "<f", 16: "<e"}[bits], value), "little")
