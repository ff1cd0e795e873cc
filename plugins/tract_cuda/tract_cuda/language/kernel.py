"""The native function of one kernel, as one thread of a block does it.

    i = k.block() * k.threads + k.thread()
    with k.when(i < k.size("n")):
        y[i] = x[i] + 1.0

Numbers, memory and loops are those of `tract_llvm.language`. Positions are i32, so that dividing them is cheap; a
kernel for tensors of more bytes than these reach is written once more, ``wide``, with i64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.convert import from_memory, stored_type, to_memory
from tract_llvm.language.function import Function
from tract_llvm.language.types import I32, I64, POINTER, U32, ElementType, ir_type
from tract_llvm.language.values import Value
from tract_llvm.llvm import ir

from tract_core.frozen import frozen
from tract_cuda.language.arch import LAYOUT, PTX, TRIPLE, WARP, Arch

SHARED_ALIGNMENT: Final = 128
"""Bytes at multiples of which each piece of shared memory begins."""

_ALL_LANES: Final = -1


@frozen
class Parameter:
    """What a kernel is called with, by ``name``.

    ``element``: of the memory whose address it is; ``None`` for a position or size.
    """

    name: str
    element: ElementType | None = None


def sizes(prefix: str, count: int) -> tuple[Parameter, ...]:
    """So many sizes, which `Kernel.sizes` gives."""
    return tuple(Parameter(f"{prefix}{number}") for number in range(count))


class Kernel(Function):
    """One kernel, while it is written.

    ``arch``: what for. ``threads``: of a block. ``shared_bytes``: of the shared memory that it asked for so far.
    ``least_blocks``: for how many blocks on a multiprocessor registers have to do; 0 where the driver chooses.
    """

    def __init__(
        self, module: Any, name: str, arch: Arch, threads: int, parameters: Sequence[Parameter], *, wide: bool = False
    ) -> None:
        """``wide``: whether positions are i64."""
        module.triple, module.data_layout = TRIPLE, LAYOUT
        self.positions = I64 if wide else I32
        kinds = [POINTER if one.element is not None else self.positions for one in parameters]
        super().__init__(module, name, PTX, kinds)
        self.function.calling_convention = "ptx_kernel"
        self.function.attributes.alignstack = 0
        self.arch, self.threads, self.shared_bytes, self.least_blocks = arch, threads, 0, 0
        self._places = {one.name: place for place, one in enumerate(parameters)}
        self._elements = {one.name: one.element for one in parameters}
        self._shared: Any = None

    # ---- what it was called with

    def memory(self, name: str) -> Buffer:
        """The memory of a parameter."""
        element = self._elements[name]
        assert element is not None, f"{name} is a size"
        return self.buffer(self._places[name], element)

    def size(self, name: str) -> Value:
        """The position or size of a parameter."""
        return self.argument(self._places[name])

    def sizes(self, prefix: str, count: int) -> list[Value]:
        """Those that `sizes` made parameters of."""
        return [self.size(f"{prefix}{number}") for number in range(count)]

    # ---- who this thread is

    def thread(self) -> Value:
        """The number of the thread in its block."""
        return self._position(self._special("tid.x"))

    def lane(self) -> Value:
        """The number of the thread in its warp."""
        return self.thread() & (WARP - 1)

    def warp(self) -> Value:
        """The number of the warp in its block."""
        return self.thread() >> 5

    def block(self, axis: str = "x") -> Value:
        """The number of the block along an axis of the grid."""
        return self._position(self._special(f"ctaid.{axis}"))

    def blocks(self, axis: str = "x") -> Value:
        """How many blocks there are along an axis of the grid."""
        return self._position(self._special(f"nctaid.{axis}"))

    def _special(self, register: str) -> Value:
        callee = self.declared(f"llvm.nvvm.read.ptx.sreg.{register}", ir_type(I32), [])
        return Value(self, self.builder.call(callee, []), I32)

    def _position(self, value: Value) -> Value:
        return self.convert(value, self.positions)

    # ---- numbers

    def divided(self, number: Value, by: Value) -> tuple[Value, Value]:
        """Quotient and remainder of positions, none of which is negative: as unsigned ones, which is cheaper."""
        kind = _unsigned(number.type)
        quotient = (number.bits(kind) // by.bits(kind)).bits(number.type)
        return quotient, number - quotient * by

    def spot(self, number: Value, sizes: Sequence[Value]) -> list[Value]:
        """The position along each of some axes, the last one innermost, of a number that counts over all of them."""
        found: list[Value] = []
        for size in reversed(sizes[1:]):
            number, here = self.divided(number, size)
            found.append(here)
        return [number, *reversed(found)] if sizes else []

    def vector_of(self, values: Sequence[Value]) -> Value:
        """A vector of single numbers."""
        first, count = values[0], len(values)
        found: Any = ir.Constant(ir_type(first.type, count), ir.Undefined)
        for lane, one in enumerate(values):
            found = self.builder.insert_element(found, one.ir, ir.Constant(ir.IntType(32), lane))
        return Value(self, found, first.type, count)

    # ---- what threads do together

    def barrier(self) -> None:
        """Wait until all threads of the block are here: what they wrote before is seen by all of them."""
        self.called("llvm.nvvm.barrier0", ir.VoidType())

    def shuffled_xor(self, value: Value, distance: int) -> Value:
        """The value that the thread has whose lane differs by these bits. All threads of the warp are here."""
        return self._shuffled("bfly", value, distance)

    def from_lane(self, value: Value, lane: Value | int) -> Value:
        """The value that the thread of a lane has. All threads of the warp are here."""
        return self._shuffled("idx", value, lane)

    def _shuffled(self, how: str, value: Value, lane: Value | int) -> Value:
        """Of any type: in pieces of 32 bits."""
        if value.type.bits > U32.bits:
            halves = [value.bits(_unsigned(value.type)) >> shift for shift in (0, 32)]
            low, high = (
                self.convert(self._shuffled(how, self.convert(half, U32), lane), _unsigned(value.type))
                for half in halves
            )
            return (low | high << 32).bits(value.type)
        held = value if value.type.kind == "b" or value.type.bits < U32.bits else value.bits(U32)
        held = held if held.type is U32 else self.convert(self._as_bits(held), U32)
        where = lane if isinstance(lane, Value) else self.constant(lane, I32)
        numbers = [self.constant(_ALL_LANES, I32), held, self.convert(where, I32), self.constant(WARP - 1, I32)]
        found = self.called(f"llvm.nvvm.shfl.sync.{how}.i32", ir_type(I32), numbers)
        return self._from_bits(Value(self, found, U32), value.type)

    def _as_bits(self, value: Value) -> Value:
        return value if value.type.kind in "biu" else value.bits(_unsigned(value.type))

    def _from_bits(self, bits: Value, type_: ElementType) -> Value:
        if type_.kind == "b":
            return bits.differs(0)
        if type_.bits == U32.bits:
            return bits.bits(type_)
        return self.convert(bits, _unsigned(type_)).bits(type_)

    # ---- memory

    def shared(self, element: ElementType, count: int) -> Buffer:
        """Memory that the threads of a block share, for so many elements. It holds anything before it is written."""
        begin = -(-self.shared_bytes // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
        self.shared_bytes = begin + count * element.bytes
        return Buffer(self, self._shared_at(begin), element)

    def _shared_at(self, byte: int) -> Any:
        if self._shared is None:
            kind = ir.ArrayType(ir.IntType(8), 0)
            self._shared = ir.GlobalVariable(self.module, kind, "shared", addrspace=3)
            self._shared.linkage, self._shared.align = "external", SHARED_ALIGNMENT
        begin = self._shared.gep([ir.Constant(ir.IntType(32), 0), ir.Constant(ir.IntType(32), byte)])
        with self.builder.goto_entry_block():  # whoever asks for it first, in a branch, say
            return self.builder.addrspacecast(begin, ir_type(POINTER))

    def read(self, memory: Buffer, place: Value | int, lanes: int) -> Value:
        """``lanes`` elements from a place on, at once: the place is a multiple of ``lanes``, as the memory's."""
        stored = stored_type(memory.element, self.isa)
        align = max(lanes, 1) * memory.element.bytes
        found = self.builder.load(memory.address(place), align=align, typ=ir_type(stored, lanes))
        return from_memory(Value(self, found, stored, lanes), memory.element)

    def write(self, memory: Buffer, place: Value | int, value: Value) -> None:
        """Write all lanes of a vector from a place on, at once, as `read` reads them."""
        stored = to_memory(value, memory.element)
        self.builder.store(stored.ir, memory.address(place), align=max(value.lanes, 1) * memory.element.bytes)

    def exchanged(self, memory: Buffer, place: Value, value: Value) -> Value:
        """Write an integer to a place that other threads exchange too. Returns what was there before."""
        found = self.builder.atomic_rmw("xchg", memory.address(place), value.ir, "monotonic")
        return Value(self, found, value.type)

    # ---- intrinsics

    def called(self, name: str, result: Any, numbers: Sequence[Value] = ()) -> Any:
        """What an intrinsic of LLVM gives, by its whole name, as LLVM has it."""
        callee = self.declared(name, result, [one.ir.type for one in numbers])
        return self.builder.call(callee, [one.ir for one in numbers])


def _unsigned(type_: ElementType) -> ElementType:
    return ElementType(f"u{type_.bits}", "u", type_.bits)
