"""Memory as kernels see it: elements of one type, read and written by their positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tract_llvm.language.convert import from_memory, stored_type, to_memory
from tract_llvm.language.halves import are_picked, narrowed, widened
from tract_llvm.language.types import BF16, F32, INDEX, U16, ElementType, ir_type
from tract_llvm.language.values import Emitter, Value, mangled
from tract_llvm.llvm import ir


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Elements of one type, from an address on. Elements are read in the type that they are computed in.

    ``function``: the code that reads and writes them. ``ir``: the address, as LLVM has it.
    """

    function: Emitter
    ir: Any
    element: ElementType

    def __getitem__(self, place: Value | int) -> Value:
        """The element there."""
        return self.vector(place, 0)

    def __setitem__(self, place: Value | int, value: Value) -> None:
        self.put(place, value)

    def vector(self, place: Value | int, lanes: int, mask: Value | None = None) -> Value:
        """``lanes`` elements from a place on. What ``mask`` leaves out is not touched, and read as 0."""
        builder, stored = self.function.builder, self._stored
        address, kind = self.address(place), ir_type(stored, lanes)
        if mask is None:
            if are_picked(self.function, self.element, lanes):
                return self._picked(place, lanes)
            found = builder.load(address, align=self.element.alignment, typ=kind)
        else:
            nothing = Value(self.function, ir.Constant(kind, None), stored, lanes)
            found = self._masked("load", mangled(nothing), kind, [address, self._alignment, mask.ir, nothing.ir])
        return from_memory(Value(self.function, found, stored, lanes), self.element)

    def _picked(self, place: Value | int, lanes: int) -> Value:
        """Whole registers of bf16, each of which is read by itself."""
        each, codes = self.function.isa.lanes(F32.bits), self.of(U16)
        start = self.function.index(place)
        found = self.function.joined([widened(codes.vector(start + one, each)) for one in range(0, lanes, each)])
        return replace(found, digits=self.element)

    def together(self, place: Value | int, type_: ElementType, lanes: int = 0) -> Value:
        """Elements from a place on, as many as an integer of a type has room for, as that integer; or as a vector."""
        kind = ir_type(type_, lanes)
        found = self.function.builder.load(self.address(place), align=self.element.alignment, typ=kind)
        return Value(self.function, found, type_, lanes)

    def splat(self, place: Value | int, lanes: int) -> Value:
        """The element there in every lane of a vector."""
        if self.element is not BF16 or self.function.isa.masks_bits > BF16.bits:
            return self[place].splat(lanes)
        bits = self.of(U16)[place].splat(2 * lanes)  # the upper halves of f32, zeros below: one instruction
        halves = self.function.shuffled(bits.like(0), bits, [n + n % 2 * 2 * lanes for n in range(2 * lanes)])
        return Value(self.function, self.function.builder.bitcast(halves.ir, ir_type(F32, lanes)), F32, lanes)

    def gather(self, places: Value, mask: Value | None = None) -> Value:
        """The elements at a vector of places; at one place, the element there. As in `vector` with ``mask``."""
        lanes = places.lanes
        if not lanes:
            return self[places]
        stored = self._stored
        kind, every = ir_type(stored, lanes), ir.Constant(ir.VectorType(ir.IntType(1), lanes), [1] * lanes)
        nothing = Value(self.function, ir.Constant(kind, None), stored, lanes)
        addresses = self.function.builder.gep(self.ir, [places.ir], source_etype=ir_type(stored))
        addresses.type = ir.VectorType(ir.PointerType(), lanes)  # llvmlite takes it for a single one
        name = f"llvm.masked.gather.{mangled(nothing)}.v{lanes}p0"
        arguments = [addresses, self._alignment, every if mask is None else mask.ir, nothing.ir]
        callee = self.function.declared(name, kind, [one.type for one in arguments])
        return from_memory(
            Value(self.function, self.function.builder.call(callee, arguments), stored, lanes), self.element
        )

    def put(self, place: Value | int, value: Value, mask: Value | None = None) -> None:
        """Write a number, or the lanes of a vector that ``mask`` does not leave out, from a place on."""
        is_picked = value.digits == self.element and are_picked(self.function, self.element, value.lanes)
        stored = narrowed(value) if is_picked else to_memory(value, self.element)
        address = self.address(place)
        if mask is None:
            self.function.builder.store(stored.ir, address, align=self.element.alignment)
        else:
            arguments = [stored.ir, address, self._alignment, mask.ir]
            self._masked("store", mangled(stored), ir.VoidType(), arguments)

    def prefetch(self, place: Value | int) -> None:
        """Have the line of the cache brought near in which an element is, or would be."""
        numbers = [ir.Constant(ir.IntType(32), number) for number in (0, 3, 1)]  # to read, in the nearest cache, data
        types = [ir.PointerType(), *(one.type for one in numbers)]
        callee = self.function.declared("llvm.prefetch.p0", ir.VoidType(), types)
        self.function.builder.call(callee, [self.address(place), *numbers])

    def read_shared(self) -> Value:
        """The first element, which other threads write: what they wrote before it is seen too."""
        found = self.function.builder.load_atomic(self.ir, "acquire", self.element.bytes, typ=ir_type(self.element))
        return Value(self.function, found, self.element)

    def write_shared(self, value: Value) -> None:
        """Write the first element, for other threads to read: they see what was written before it too."""
        builder, kind = self.function.builder, ir_type(self.element)
        place = builder.inttoptr(builder.ptrtoint(self.ir, ir_type(INDEX)), kind.as_pointer())
        builder.store_atomic(value.ir, place, "release", self.element.bytes)  # llvmlite wants a typed pointer

    def exchange_shared(self, value: Value) -> Value:
        """Write the first element, which other threads exchange too. Returns what it was before."""
        found = self.function.builder.atomic_rmw("xchg", self.ir, value.ir, "acq_rel")
        return Value(self.function, found, self.element)

    def add_shared(self, value: Value) -> Value:
        """Add to the first element, to which other threads add too. Returns what it was before."""
        found = self.function.builder.atomic_rmw("add", self.ir, value.ir, "acq_rel")
        return Value(self.function, found, self.element)

    def at(self, place: Value | int) -> Buffer:
        """The elements from a place on."""
        return Buffer(self.function, self.address(place), self.element)

    def of(self, element: ElementType) -> Buffer:
        """The same memory, taken for elements of another type."""
        return Buffer(self.function, self.ir, element)

    def address(self, place: Value | int) -> Any:
        """Where an element is."""
        index = self.function.index(place)
        return self.function.builder.gep(self.ir, [index.ir], source_etype=ir_type(self._stored))

    @property
    def _stored(self) -> ElementType:
        return stored_type(self.element, self.function.isa)

    @property
    def _alignment(self) -> Any:
        return ir.Constant(ir.IntType(32), self.element.alignment)

    def _masked(self, what: str, vector: str, result: Any, arguments: list[Any]) -> Any:
        callee = self.function.declared(f"llvm.masked.{what}.{vector}.p0", result, [one.type for one in arguments])
        return self.function.builder.call(callee, arguments)


def table(function: Emitter, numbers: Sequence[float], element: ElementType) -> Buffer:
    """Numbers that are known now, in memory that is part of the code."""
    content = ir.Constant(ir.ArrayType(ir_type(element), len(numbers)), list(numbers))
    name = function.module.get_unique_name(f"{function.name}.table")
    held: Any = ir.GlobalVariable(function.module, content.type, name)
    held.global_constant, held.linkage, held.initializer = True, "internal", content
    return Buffer(function, held, element)
