"""Functions of the machine, in the language of `tract_llvm`: records, and calls of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.types import I64, POINTER, ElementType, ir_type
from tract_llvm.language.values import Value
from tract_llvm.llvm import ir

from tract_cuda.testing.emulator.machine.layout import LAUNCH, PROBLEMS, THREAD, Layout

HOST: Final = Isa(
    "host", "", "", "", (), vector_bytes=16, registers=16, masks_bits=1 << 10, fma=False, half=False, rounds=False,
    scales=(), dots=(), pause=(),
)  # fmt: skip
"""What the language knows of the processor: nothing is asked of it."""


class Native(Function):
    """A function of 64-bit numbers."""

    def __init__(self, module: Any, name: str, count: int, *, returns: bool = False) -> None:
        super().__init__(module, name, HOST, [I64] * count, I64 if returns else None)

    def arguments(self) -> list[Value]:
        """All that it was called with."""
        return [self.argument(place) for place in range(len(self.function.args))]

    def number(self, value: int) -> Value:
        """A number that is known now."""
        return self.constant(value, I64)

    def memory(self, address: Value, element: ElementType = I64) -> Buffer:
        """What lies at an address."""
        return Buffer(self, self.builder.inttoptr(address.ir, ir_type(POINTER)), element)

    def record(self, layout: Layout, address: Value) -> Record:
        """The record at an address."""
        return Record(self, layout, address)

    def call(self, name: str, *arguments: Value) -> Value:
        """Call a function of the same module that returns a number."""
        return Value(self, self._call(name, arguments, ir_type(I64)), I64)

    def do(self, name: str, *arguments: Value) -> None:
        """Call a function of the same module that returns nothing."""
        self._call(name, arguments, ir.VoidType())

    def _call(self, name: str, arguments: Sequence[Value], returns: Any) -> Any:
        callee = self.declared(name, returns, [one.ir.type for one in arguments])
        return self.builder.call(callee, [one.ir for one in arguments])

    def copy(self, target: Value, source: Value, count: Value) -> None:
        """Copy bytes."""
        with self.loop("copy", count) as place:
            self.memory(target, BYTE)[place] = self.memory(source, BYTE)[place]

    def fill(self, target: Value, byte: int, count: Value) -> None:
        """Set bytes."""
        with self.loop("fill", count) as place:
            self.memory(target, BYTE)[place] = self.constant(byte, BYTE)

    def complain(self, thread: Record, what: str, line: Value, **details: Value) -> None:
        """Keep what went wrong, unless something did before."""
        launch = self.record(LAUNCH, thread["launch"])
        with self.when(launch["error"].equals(0)):
            launch["error"] = self.number(PROBLEMS.index(what))
            launch["line"], launch["thread"] = line, thread.address
            for name, value in details.items():
                launch[name] = value


BYTE: Final = ElementType("u8", "u", 8)


class Record:
    """A record in memory: its fields are read and set by their names."""

    def __init__(self, function: Native, layout: Layout, address: Value) -> None:
        self._function, self._layout, self.address = function, layout, address

    def __getitem__(self, name: str) -> Value:
        return self._at(name)[0]

    def __setitem__(self, name: str, value: Value) -> None:
        self._at(name)[0] = value

    def place(self, name: str) -> Value:
        """The address of a field, or of what stands behind all fields: ``"extra"``."""
        return self.address + self._layout.offset(name)

    def _at(self, name: str) -> Buffer:
        return self._function.memory(self.place(name))


def thread_of(k: Native, address: Value) -> Record:
    """The thread at an address."""
    return k.record(THREAD, address)
