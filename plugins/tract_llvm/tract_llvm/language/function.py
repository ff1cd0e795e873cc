"""Native functions, written in Python so that they read like the loops that they become.

    with k.loop("i", rows) as i:
        total = k.variable(k.constant(0.0, F32))
        with k.loop("j", columns) as j:
            total.value = total.value + x[i * columns + j]
        sums[i] = total.value

Blocks, phis and addresses of LLVM appear in this package only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from tract_llvm.isa import Dot, Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.convert import converted
from tract_llvm.language.types import BOOL, I32, INDEX, ElementType, element_named, ir_constant, ir_neighbours, ir_type
from tract_llvm.language.values import Value, mangled, matched
from tract_llvm.llvm import AS_WRITTEN, ir

POINTER: Final = ir.PointerType()


class Function:
    """One function of a module, while it is written.

    ``isa``: the instruction set that it is written for. ``arguments``: one per parameter, each a type of numbers, or
    `POINTER` for an address. It returns nothing, or a number of type ``returns``.
    """

    def __init__(
        self, module: Any, name: str, isa: Isa, arguments: Sequence[Any], returns: ElementType | None = None
    ) -> None:
        types = [one if one is POINTER else ir_type(one) for one in arguments]
        kind = ir.FunctionType(ir_type(returns) if returns else ir.VoidType(), types)
        self.function: Any = ir.Function(module, kind, name)
        self.function.attributes.add("nounwind")
        self.function.attributes.alignstack = isa.vector_bytes  # vectors without a register lie in one line each
        self.name = name
        self.isa = isa
        self.module = module
        self.builder: Any = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._variables = self.builder.append_basic_block("body")
        self.builder.position_at_end(self._variables)
        self._arguments = list(zip(self.function.args, arguments, strict=True))
        self._loops = 0

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

    # ---- numbers

    def at(self, address: Value) -> Buffer:
        """The integers at an address."""
        return Buffer(self, self.builder.inttoptr(address.ir, POINTER), INDEX)

    def constant(self, number: float, type_: ElementType, lanes: int = 0) -> Value:
        """A number that is known now."""
        return Value(self, ir_constant(number, type_, lanes), type_, lanes)

    def index(self, number: int | Value) -> Value:
        """A size or a position."""
        return number if isinstance(number, Value) else self.constant(number, INDEX)

    def table(self, numbers: Sequence[float], element: ElementType) -> Buffer:
        """Numbers that are known now, in memory that is part of the code."""
        content = ir.Constant(ir.ArrayType(ir_type(element), len(numbers)), list(numbers))
        name = self.module.get_unique_name(f"{self.name}.table")
        held: Any = ir.GlobalVariable(self.module, content.type, name)
        held.global_constant, held.linkage, held.initializer = True, "internal", content
        return Buffer(self, held, element)

    def lanes(self, count: int, type_: ElementType = INDEX) -> Value:
        """The vector 0, 1, 2, ..."""
        return Value(self, ir.Constant(ir_type(type_, count), list(range(count))), type_, count)

    def mask(self, count: Value, lanes: int) -> Value:
        """Which of so many lanes come before ``count``."""
        return self.lanes(lanes) < count

    def select(self, condition: Value, then: Value, otherwise: Value | float) -> Value:
        """One of two numbers, or lane by lane."""
        then, other = matched(then, otherwise)
        lanes = then.lanes or condition.lanes
        then, other, condition = then.splat(lanes), other.splat(lanes), condition.splat(lanes)
        return Value(self, self.builder.select(condition.ir, then.ir, other.ir), then.type, lanes)

    def shuffled(self, a: Value, b: Value, places: Sequence[int]) -> Value:
        """The lanes of two vectors at these places, those of ``b`` counted on behind those of ``a``."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
        return Value(self, self.builder.shuffle_vector(a.ir, b.ir, mask), a.type, len(places))

    def joined(self, parts: Sequence[Value]) -> Value:
        """Vectors of one length, a power of two of them, one behind the other."""
        found = list(parts)
        while len(found) > 1:
            places = range(2 * found[0].lanes)
            found = [self.shuffled(a, b, places) for a, b in zip(found[::2], found[1::2], strict=True)]
        return found[0]

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """The product of two numbers plus a third, rounded once."""
        a, b = matched(a, b)
        a, c = matched(a, c)
        return self.intrinsic("fma", a, b.splat(a.lanes), c)

    def smaller(self, a: Value, b: Value | float) -> Value:
        """The smaller one of two integers, or of two floats of which ``b`` is a number."""
        a, other = matched(a, b)
        return self.select(a < other, a, other)

    def any(self, mask: Value) -> Value:
        """Whether any lane is true."""
        callee = self.declared(f"llvm.vector.reduce.or.{mangled(mask)}", ir_type(BOOL), [mask.ir.type])
        return Value(self, self.builder.call(callee, [mask.ir]), BOOL)

    def largest(self, value: Value) -> Value:
        """The largest lane of a vector of signed integers; a single number as it is."""
        if not value.lanes:
            return value
        name = f"llvm.vector.reduce.smax.{mangled(value)}"
        callee = self.declared(name, ir_type(value.type), [ir_type(value.type, value.lanes)])
        return Value(self, self.builder.call(callee, [value.ir]), value.type)

    def convert(self, value: Value, type_: ElementType) -> Value:
        """The number in another type: floats are rounded to the nearest, integers wrap around."""
        return converted(value, type_)

    def intrinsic(self, name: str, *values: Value) -> Value:
        """What an intrinsic of LLVM on numbers of one type gives, as ``sqrt``."""
        first = values[0]
        kind = ir_type(first.type, first.lanes)
        callee = self.declared(f"llvm.{name}.{mangled(first)}", kind, [kind] * len(values))
        return Value(self, self.builder.call(callee, [value.ir for value in values]), first.type, first.lanes)

    def scaled(self, value: Value, power: Value) -> Value | None:
        """A vector times 2**power, rounded once: one instruction; ``None`` where the instruction set has none.

        ``power``: a vector of whole numbers of the same type.
        """
        if not self.isa.scales or value.lanes != self.isa.lanes(value.type.bits):
            return None
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
        count = left.lanes * dot.group
        kinds = [ir_neighbours(one, count) for one in map(element_named, (dot.left, dot.right))]
        factors = [self.builder.bitcast(one.ir, kind) for one, kind in zip((left, right), kinds, strict=True)]
        if dot.turned:
            factors, kinds = factors[::-1], kinds[::-1]
        if dot.adds:
            factors, kinds = [sums.ir, *factors], [sums.ir.type, *kinds]
        callee = self.declared(f"llvm.{dot.name}", sums.ir.type, kinds)
        found = Value(self, self.builder.call(callee, factors), sums.type, sums.lanes)
        return found if dot.adds else found + sums

    def picked(self, first: Value, second: Value, places: Value) -> Value:
        """The lanes of two registers at such places, those of ``second`` counted on; only the lowest bits count."""
        if self.isa.written_out:
            return _written_out().picked(first, second, places)
        arguments = [first.ir, places.ir, second.ir]
        callee = self.declared(f"llvm.{self.isa.picks}", first.ir.type, [one.type for one in arguments])
        return Value(self, self.builder.call(callee, arguments), first.type, first.lanes)

    def declared(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        """An intrinsic of LLVM, by its whole name, with the types of its result and of its arguments."""
        found = self.module.globals.get(name)
        return found or ir.Function(self.module, ir.FunctionType(result, arguments), name)

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

    # ---- control

    @contextmanager
    def loop(self, name: str, stop: int | Value, start: int | Value = 0, step: int | Value = 1) -> Generator[Value]:
        """Goes round for every position from ``start``, in steps, as long as it is below ``stop``."""
        builder, begin, end = self.builder, self.index(start), self.index(stop)
        before = builder.block
        head, body, done = (builder.append_basic_block(f"{name}.{part}") for part in ("head", "body", "exit"))
        builder.branch(head)
        builder.position_at_end(head)
        counter = builder.phi(ir_type(INDEX), name)
        counter.add_incoming(begin.ir, before)
        builder.cbranch(builder.icmp_signed("<", counter, end.ir), body, done)
        builder.position_at_end(body)
        self._loops, inside = self._loops + 1, self._loops + 1
        yield Value(self, counter, INDEX)
        counter.add_incoming(builder.add(counter, self.index(step).ir), builder.block)
        if self._loops > inside and isinstance(stop, Value):
            self.end_round(head, done)
        else:
            builder.branch(head)
        builder.position_at_end(done)

    @contextmanager
    def loop_while(self, name: str, condition: Callable[[], Value]) -> Generator[None]:
        """Goes round as long as a condition holds, which is computed before every round."""
        builder = self.builder
        head, body, done = (builder.append_basic_block(f"{name}.{part}") for part in ("head", "body", "exit"))
        builder.branch(head)
        builder.position_at_end(head)
        builder.cbranch(condition().ir, body, done)
        builder.position_at_end(body)
        yield
        builder.branch(head)
        builder.position_at_end(done)

    def end_round(self, head: Any, done: Any) -> None:
        """The end of a round of a loop that has others inside: at ``head`` the next one begins, ``done`` is behind."""
        self.builder.branch(head)

    @contextmanager
    def when(self, condition: Value) -> Generator[None]:
        """What follows is done where a condition holds."""
        with self.builder.if_then(condition.ir):
            yield

    @contextmanager
    def either(self, condition: Value) -> Generator[tuple[Any, Any]]:
        """Two context managers: for what is done where a condition holds, and for what is done where it does not."""
        with self.builder.if_else(condition.ir) as branches:
            yield branches

    def variable(self, start: Value) -> Variable:
        """A number that changes, as loops go round."""
        return Variable(self, start)

    def place(self, type_: Any) -> Any:
        """Memory of the function's own, for one value."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(type_)

    def own(self, element: ElementType, count: int) -> Buffer:
        """Memory of the function's own, for so many numbers of the type in which elements are computed."""
        place = self.place(ir.ArrayType(ir_type(element), count))
        place.align, place.type = self.isa.vector_bytes, POINTER
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


class Variable:
    """A number that changes: read and set ``value``."""

    def __init__(self, function: Function, start: Value) -> None:
        self._function = function
        self._type, self._lanes = start.type, start.lanes
        self._place = function.place(ir_type(start.type, start.lanes))
        self.value = start

    @property
    def value(self) -> Value:
        """The number now."""
        builder = self._function.builder
        found = builder.load(self._place, typ=ir_type(self._type, self._lanes))
        return Value(self._function, found, self._type, self._lanes)

    @value.setter
    def value(self, value: Value) -> None:
        if value.type != self._type or value.lanes != self._lanes:
            raise TypeError(f"a {self._type.name} x {self._lanes} is set to a {value.type.name} x {value.lanes}")
        self._function.builder.store(value.ir, self._place)


def _written_out() -> ModuleType:
    """Imported where it is wanted, which is in no usual run."""
    from tract_llvm.language import written_out

    return written_out


def where(condition: Value, then: Value, otherwise: Value | float) -> Value:
    """`Function.select`, of the function in which the values are."""
    return condition.function.select(condition, then, otherwise)
