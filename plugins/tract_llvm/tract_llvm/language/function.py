"""Native functions, written in Python so that they read like the loops that they become.

    with k.loop("i", rows) as i:
        total = k.variable(k.constant(0.0, F32))
        with k.loop("j", columns) as j:
            total.value = total.value + x[i * columns + j]
        sums[i] = total.value

Blocks, phis and addresses of LLVM appear in this package only.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from tract_llvm.isa import Dot, Isa
from tract_llvm.language.buffers import Buffer, table
from tract_llvm.language.convert import converted
from tract_llvm.language.types import I32, INDEX, POINTER, ElementType, element_named, ir_neighbours, ir_type
from tract_llvm.language.values import Emitter, Value, Variable
from tract_llvm.llvm import AS_WRITTEN, ir

__all__ = ["Function", "Variable", "where"]


class Function(Emitter):
    """One function of a module, while it is written.

    ``isa``: the instruction set that it is written for. ``arguments``: one per parameter, each a type of numbers, or
    `POINTER` for an address. It returns nothing, or a number of type ``returns``.
    """

    def __init__(
        self, module: Any, name: str, isa: Isa, arguments: Sequence[ElementType], returns: ElementType | None = None
    ) -> None:
        types = [ir_type(one) for one in arguments]
        kind = ir.FunctionType(ir_type(returns) if returns else ir.VoidType(), types)
        self.function: Any = ir.Function(module, kind, name)
        self.function.attributes.add("nounwind")
        self.function.attributes.alignstack = isa.vector_bytes  # vectors without a register lie in one line each
        if isa.vscale:
            from tract_llvm.language.scalable import of_length

            of_length(self.function, isa.vscale)
        super().__init__(module, name, isa, ir.IRBuilder(self.function.append_basic_block("entry")))
        self._variables = self.builder.append_basic_block("body")
        self.builder.position_at_end(self._variables)
        self._arguments = list(zip(self.function.args, arguments, strict=True))

    def keep_addresses(self) -> None:
        """Have the addresses in loops computed as they are written.

        To look for cheaper ways takes LLVM as long as all the rest where loops read many places; a kernel that found
        them itself says so.
        """
        self.module.name = AS_WRITTEN

    def argument(self, place: int) -> Value:
        """The number that was passed there."""
        argument, kind = self._arguments[place]
        return Value(self, argument, kind)

    def buffer(self, place: int, element: ElementType) -> Buffer:
        """The memory whose address was passed there, taken for elements of a type."""
        return Buffer(self, self._arguments[place][0], element)

    def at(self, address: Value) -> Buffer:
        """The integers at an address."""
        return Buffer(self, self.builder.inttoptr(address.ir, ir_type(POINTER)), INDEX)

    def table(self, numbers: Sequence[float], element: ElementType) -> Buffer:
        """Numbers that are known now, in memory that is part of the code."""
        return table(self, numbers, element)

    def convert(self, value: Value, type_: ElementType) -> Value:
        """The number in another type: floats are rounded to the nearest, integers wrap around."""
        return converted(value, type_)

    def scaled(self, value: Value, power: Value) -> Value | None:
        """A vector times 2**power, rounded once: one instruction for each of the registers that it fills.

        ``None`` where the instruction set has none, or a register is not full. ``power``: a vector of whole numbers of
        the same type.
        """
        each = self.isa.lanes(value.type.bits)
        if not self.isa.scales or not value.lanes or value.lanes % each:
            return None
        if value.lanes > each:
            pairs = zip(value.parts(2), power.parts(2), strict=True)
            found = [part for one in pairs if (part := self.scaled(*one)) is not None]
            return self.joined(found)
        if self.isa.written_out:
            return _written_out().scaled(value, power)
        name = self.isa.scales[value.type.bits == 64]
        every = ir.Constant(ir.IntType(value.lanes), -1)
        nearest = ir.Constant(ir.IntType(32), 4)  # rounding as it is set
        arguments = [value.ir, power.ir, value.ir, every, nearest]
        callee = self.declared(f"llvm.{name}", value.ir.type, [one.type for one in arguments])
        return Value(self, self.builder.call(callee, arguments), value.type, value.lanes)

    def dots(self, dot: Dot, left: Value, right: Value, sums: Value) -> Value:
        """Sums plus those of products of neighbours: each number of ``left`` and ``right`` holds so many of them."""
        if self.isa.written_out:
            return _written_out().dots(dot, left, right, sums)
        if dot.pairs:
            return self._summed_by_pairs(dot, left, right) + sums
        found = self._summed(dot, dot.name, left, right, sums)
        return found if dot.adds else found + sums

    def squares(self, dot: Dot, left: Value, right: Value, sums: Value) -> Value:
        """As `dots` for all pairs of two rows and two columns, with a `Dot.square`: two groups of each, in four lanes.

        Each four lanes are on their own. ``sums``: row by row, where the dot is turned column by column.
        """
        if self.isa.written_out:
            return _written_out().squares(dot, left, right, sums)
        return self._summed(dot, dot.square, left, right, sums)

    def _summed(self, dot: Dot, name: str, left: Value, right: Value, sums: Value) -> Value:
        count = left.lanes * dot.group
        kinds = [ir_neighbours(one, count) for one in map(element_named, (dot.left, dot.right))]
        factors = [self.builder.bitcast(one.ir, kind) for one, kind in zip((left, right), kinds, strict=True)]
        if dot.turned:
            factors, kinds = factors[::-1], kinds[::-1]
        if dot.adds:
            factors, kinds = [sums.ir, *factors], [sums.ir.type, *kinds]
        if self.isa.vscale:
            from tract_llvm.language.scalable import called

            return Value(self, called(self, name, sums.ir.type, factors), sums.type, sums.lanes)
        callee = self.declared(f"llvm.{name}", sums.ir.type, kinds)
        return Value(self, self.builder.call(callee, factors), sums.type, sums.lanes)

    def _summed_by_pairs(self, dot: Dot, left: Value, right: Value) -> Value:
        """The sums of products of four bytes, those of two in 16 bits first."""
        if dot.turned:
            left, right = right, left
        count = left.lanes * dot.group
        bytes_, words = (ir.VectorType(ir.IntType(bits), count * 8 // bits) for bits in (8, 16))
        a, b = (self.builder.bitcast(one.ir, bytes_) for one in (left, right))
        if dot.left == dot.right:
            a, b = self._without_signs(dot, a, b)
        pairs = self.builder.call(self.declared(f"llvm.{dot.name}", words, [bytes_, bytes_]), [a, b])
        summed = self.declared(f"llvm.{dot.pairs}", right.ir.type, [words, words])
        ones = ir.Constant(words, [1] * (count // 2))
        return Value(self, self.builder.call(summed, [pairs, ones]), right.type, right.lanes)

    def _without_signs(self, dot: Dot, a: Any, b: Any) -> tuple[Any, Any]:
        """Factors with the same products, the first ones without signs. No second one may be the least of its type."""
        kind = a.type
        if dot.signs:
            b = self.builder.call(self.declared(f"llvm.{dot.signs}", kind, [kind, kind]), [b, a])
        else:
            zero = ir.Constant(kind, [0] * kind.count)
            is_negative = self.builder.icmp_signed("<", a, zero)
            b = self.builder.select(is_negative, self.builder.sub(zero, b), b)
        name, one_bit = f"llvm.abs.v{kind.count}i8", ir.IntType(1)
        return self.builder.call(self.declared(name, kind, [kind, one_bit]), [a, ir.Constant(one_bit, 0)]), b

    def picked(self, first: Value, second: Value, places: Value) -> Value:
        """The lanes of two registers at such places, those of ``second`` counted on; only the lowest bits count."""
        if self.isa.written_out:
            held = self.own(first.type, 2 * first.lanes)
            return _written_out().picked(held, first, second, places)
        arguments = [first.ir, places.ir, second.ir]
        callee = self.declared(f"llvm.{self.isa.picks}", first.ir.type, [one.type for one in arguments])
        return Value(self, self.builder.call(callee, arguments), first.type, first.lanes)

    def call_at(self, address: Value, arguments: Sequence[Value]) -> None:
        """Call the function at an address, which takes numbers, for what it does."""
        self._called(address, arguments, ir.VoidType())

    def result_at(self, address: Value, arguments: Sequence[Value]) -> Value:
        """The integer or the address that the function at an address returns, which takes numbers."""
        return Value(self, self._called(address, arguments, ir_type(INDEX)), INDEX)

    def _called(self, address: Value, arguments: Sequence[Value], returns: Any) -> Any:
        kind = ir.FunctionType(returns, [one.ir.type for one in arguments])
        callee = self.builder.inttoptr(address.ir, kind.as_pointer())
        return self.builder.call(callee, [one.ir for one in arguments])

    def call_library(self, name: str, *arguments: Value) -> Value:
        """Call a function of the C library that takes integers or addresses. Returns the ``int`` that it gives."""
        callee = self.declared(name, ir.IntType(32), [one.ir.type for one in arguments])
        return Value(self, self.builder.call(callee, [one.ir for one in arguments]), I32)

    def pause(self, name: str, *numbers: int) -> None:
        """The instruction that tells the processor that this thread waits for another: an intrinsic of LLVM."""
        values = [ir.Constant(ir.IntType(32), number) for number in numbers]
        self.builder.call(self.declared(f"llvm.{name}", ir.VoidType(), [one.type for one in values]), values)

    def own(self, element: ElementType, count: int) -> Buffer:
        """Memory of the function's own, for so many numbers of the type in which elements are computed."""
        place = self.place(ir.ArrayType(ir_type(element), count))
        place.align, place.type = self.isa.vector_bytes, ir_type(POINTER)
        return Buffer(self, place, element)

    def finish(self, result: Value | None = None) -> None:
        """The end of the function."""
        if result is None:
            self.builder.ret_void()
        else:
            self.builder.ret(result.ir)
        entry = self.function.blocks[0]
        if not entry.is_terminated:
            self.builder.position_at_end(entry)
            self.builder.branch(self._variables)


def _written_out() -> ModuleType:
    """Imported where it is wanted, which is in no usual run."""
    from tract_llvm.language import written_out

    return written_out


def where(condition: Value, then: Value, otherwise: Value | float) -> Value:
    """`Emitter.select`, of the function in which the values are."""
    return condition.function.select(condition, then, otherwise)
