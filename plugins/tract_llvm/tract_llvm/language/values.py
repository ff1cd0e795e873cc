"""Numbers and vectors of numbers in a kernel, with the operators of Python, and the loops that they go through.

Where a single number meets a vector, it stands for a vector of that number; a number of Python is taken in the type of
the other operand. Integers wrap around. Of floats, nothing is contracted or reordered: what is written is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from tract_llvm.isa import Isa
from tract_llvm.language.types import BOOL, INDEX, ElementType, ir_constant, ir_type
from tract_llvm.llvm import ir

_INSTRUCTIONS: Final[dict[str, dict[str, str]]] = {
    "add": {"f": "fadd", "i": "add", "u": "add"},
    "sub": {"f": "fsub", "i": "sub", "u": "sub"},
    "mul": {"f": "fmul", "i": "mul", "u": "mul"},
    "div": {"f": "fdiv", "i": "sdiv", "u": "udiv"},
    "rem": {"f": "frem", "i": "srem", "u": "urem"},
    "and": {"i": "and_", "u": "and_", "b": "and_"},
    "or": {"i": "or_", "u": "or_", "b": "or_"},
    "xor": {"i": "xor", "u": "xor", "b": "xor"},
    "shl": {"i": "shl", "u": "shl"},
    "shr": {"i": "ashr", "u": "lshr"},
}
_COMPARISONS: Final = {"f": "fcmp_ordered", "i": "icmp_signed", "u": "icmp_unsigned", "b": "icmp_unsigned"}


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A number of type ``type``, or with ``lanes`` a vector of so many.

    ``narrow``: the same number in a narrower type, of which it has no more digits; ``None`` where it was not computed.
    ``digits``: a narrower type that has all its digits, if one is known. ``function``: the code that it is in. ``ir``:
    what LLVM has for it.
    """

    function: Emitter
    ir: Any
    type: ElementType
    lanes: int = 0
    narrow: Value | None = None
    digits: ElementType | None = None

    def __add__(self, other: Value | float) -> Value:
        return self._combined("add", other)

    def __radd__(self, other: float) -> Value:
        return self._combined("add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._combined("sub", other)

    def __rsub__(self, other: float) -> Value:
        return self.like(other) - self

    def __mul__(self, other: Value | float) -> Value:
        return self._combined("mul", other)

    def __rmul__(self, other: float) -> Value:
        return self._combined("mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self._combined("div", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.like(other) / self

    def __floordiv__(self, other: Value | float) -> Value:
        """Of integers, towards zero; the divisor is not zero."""
        return self._combined("div", other)

    def __mod__(self, other: Value | float) -> Value:
        """The remainder of ``//``, with the sign of the first."""
        return self._combined("rem", other)

    def __and__(self, other: Value | int) -> Value:
        return self._combined("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._combined("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._combined("xor", other)

    def __lshift__(self, other: Value | int) -> Value:
        return self._combined("shl", other)

    def __rshift__(self, other: Value | int) -> Value:
        """With copies of the sign coming in, for signed integers."""
        return self._combined("shr", other)

    def times_plus(self, factor: Value | float, term: Value | float) -> Value:
        """The product with a number plus another, rounded once where the instruction set does both at once."""
        times, plus, isa = matched(self, factor)[1], matched(self, term)[1], self.function.isa
        if self.type.kind == "f" and (isa.fma or isa.may_fuse):
            return self.function.fma(self, times, plus, once=isa.fma)
        return self * times + plus

    def __neg__(self) -> Value:
        if self.type.kind == "f":
            return self._made(self.function.builder.fneg(self.ir)).with_digits_of(self)
        return self.like(0) - self

    def __invert__(self) -> Value:
        return self._made(self.function.builder.not_(self.ir))

    def __lt__(self, other: Value | float) -> Value:
        return self.compared("<", other)

    def __le__(self, other: Value | float) -> Value:
        return self.compared("<=", other)

    def __gt__(self, other: Value | float) -> Value:
        return self.compared(">", other)

    def __ge__(self, other: Value | float) -> Value:
        return self.compared(">=", other)

    def equals(self, other: Value | float) -> Value:
        """Whether both are the same number; not-a-number is none."""
        return self.compared("==", other)

    def differs(self, other: Value | float) -> Value:
        """Whether they are not the same number: true for not-a-number, of itself too."""
        a, b = matched(self, other)
        compare = "fcmp_unordered" if a.type.kind == "f" else _COMPARISONS[a.type.kind]
        return a._made(getattr(a.function.builder, compare)("!=", a.ir, b.ir), BOOL)

    def compared(self, sign: str, other: Value | float) -> Value:
        """Booleans; of floats, false where one is not a number."""
        a, b = matched(self, other)
        return a._made(getattr(a.function.builder, _COMPARISONS[a.type.kind])(sign, a.ir, b.ir), BOOL)

    def like(self, number: float) -> Value:
        """A number of Python, in the type and with the lanes of this value."""
        return self.function.constant(number, self.type, self.lanes)

    @property
    def number(self) -> float | None:
        """The number that it is in every lane, where that is known now."""
        if not isinstance(self.ir, ir.Constant):
            return None
        content: Any = self.ir.constant
        found: Any = content.constant if isinstance(content, ir.Constant) else content
        return found if isinstance(found, int | float) else None

    def splat(self, lanes: int) -> Value:
        """A vector with this number in every lane; a vector as it is."""
        if self.lanes or not lanes:
            return self
        builder, type_ = self.function.builder, ir_type(self.type, lanes)
        single = builder.insert_element(ir.Constant(type_, ir.Undefined), self.ir, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
        spread = builder.shuffle_vector(single, ir.Constant(type_, ir.Undefined), zeros)
        return Value(self.function, spread, self.type, lanes)

    def with_digits_of(self, *others: Value) -> Value:
        """The same, which is one of these numbers, or one with the other sign."""
        found = {one.digits for one in others}
        return replace(self, digits=found.pop()) if len(found) == 1 else self

    def lane(self, number: int) -> Value:
        """One number of a vector."""
        found = self.function.builder.extract_element(self.ir, ir.Constant(ir.IntType(32), number))
        return Value(self.function, found, self.type)

    def halves(self) -> tuple[Value, Value]:
        """The first and the last half of the lanes of a vector with an even number of them, at least 2."""
        half, kind = self.lanes // 2, ir_type(self.type, self.lanes)
        if half == 1:
            return self.lane(0), self.lane(1)
        found: list[Value] = []
        for first in (0, half):
            order = ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(first, first + half)))
            part = self.function.builder.shuffle_vector(self.ir, ir.Constant(kind, ir.Undefined), order)
            found.append(Value(self.function, part, self.type, half, digits=self.digits))
        return found[0], found[1]

    def parts(self, count: int) -> list[Value]:
        """So many equal parts of the lanes, a power of two of them; a single number as it is."""
        return [self] if count == 1 else [part for half in self.halves() for part in half.parts(count // 2)]

    def every_other(self, following: Value) -> Value:
        """Of a vector and the one behind it, every other lane from the first on."""
        order = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), list(range(0, 2 * self.lanes, 2)))
        return self._made(self.function.builder.shuffle_vector(self.ir, following.ir, order))

    def bits(self, type_: ElementType) -> Value:
        """The same bits, taken for another type: of the same width, or else a vector with more or fewer lanes."""
        lanes = self.lanes * self.type.bits // type_.bits
        return Value(self.function, self.function.builder.bitcast(self.ir, ir_type(type_, lanes)), type_, lanes)

    def _combined(self, kind: str, other: Value | float) -> Value:
        a, b = matched(self, other)
        instruction = _INSTRUCTIONS[kind][a.type.kind]
        return a._made(getattr(a.function.builder, instruction)(a.ir, b.ir))

    def _made(self, found: Any, type_: ElementType | None = None) -> Value:
        return Value(self.function, found, type_ or self.type, self.lanes)


class Emitter(ABC):
    """What a `Value` leads to: the code of one function while it is written, as numbers, loops and branches.

    ``name``: of the function. ``isa``: the instruction set that it is written for. ``module``, ``builder``: LLVM's.
    `Function` adds memory, and what is computed by way of other types or in memory.
    """

    positions: ElementType = INDEX
    """The type of positions and sizes, which loops count in."""

    def __init__(self, module: Any, name: str, isa: Isa, builder: Any) -> None:
        self.module = module
        self.name = name
        self.isa = isa
        self.builder = builder
        self._loops = 0

    @abstractmethod
    def convert(self, value: Value, type_: ElementType) -> Value:
        """The number in another type."""

    @abstractmethod
    def scaled(self, value: Value, power: Value) -> Value | None:
        """A vector times 2**power, rounded once; ``None`` where the instruction set has no instruction for it."""

    @abstractmethod
    def picked(self, first: Value, second: Value, places: Value) -> Value:
        """The lanes of two registers at such places, those of ``second`` counted on; only the lowest bits count."""

    def constant(self, number: float, type_: ElementType, lanes: int = 0) -> Value:
        """A number that is known now."""
        return Value(self, ir_constant(number, type_, lanes), type_, lanes)

    def index(self, number: int | Value) -> Value:
        """A size or a position."""
        return number if isinstance(number, Value) else self.constant(number, self.positions)

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
        ours, theirs, which = then.splat(lanes), other.splat(lanes), condition.splat(lanes)
        found = Value(self, self.builder.select(which.ir, ours.ir, theirs.ir), then.type, lanes)
        return found.with_digits_of(then, other)

    def shuffled(self, a: Value, b: Value, places: Sequence[int]) -> Value:
        """The lanes of two vectors at these places, those of ``b`` counted on behind those of ``a``."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
        found = Value(self, self.builder.shuffle_vector(a.ir, b.ir, mask), a.type, len(places))
        return found.with_digits_of(a, b)

    def joined(self, parts: Sequence[Value]) -> Value:
        """Vectors of one length, a power of two of them, one behind the other."""
        found = list(parts)
        while len(found) > 1:
            places = range(2 * found[0].lanes)
            found = [self.shuffled(a, b, places) for a, b in zip(found[::2], found[1::2], strict=True)]
        return found[0]

    def fma(self, a: Value, b: Value, c: Value, *, once: bool = True) -> Value:
        """The product of two numbers plus a third, rounded once; or not ``once``, but as whoever runs it likes."""
        a, b = matched(a, b)
        a, c = matched(a, c)
        return self.intrinsic("fma" if once else "fmuladd", a, b.splat(a.lanes), c)

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

    def total(self, value: Value) -> Value:
        """The sum of the lanes of a vector of integers, which wraps around; a single number as it is."""
        if not value.lanes:
            return value
        name = f"llvm.vector.reduce.add.{mangled(value)}"
        callee = self.declared(name, ir_type(value.type), [ir_type(value.type, value.lanes)])
        return Value(self, self.builder.call(callee, [value.ir]), value.type)

    def intrinsic(self, name: str, *values: Value) -> Value:
        """What an intrinsic of LLVM on numbers of one type gives, as ``sqrt``."""
        first = values[0]
        kind = ir_type(first.type, first.lanes)
        callee = self.declared(f"llvm.{name}.{mangled(first)}", kind, [kind] * len(values))
        return Value(self, self.builder.call(callee, [value.ir for value in values]), first.type, first.lanes)

    def declared(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        """An intrinsic of LLVM, by its whole name, with the types of its result and of its arguments."""
        found = self.module.globals.get(name)
        return found or ir.Function(self.module, ir.FunctionType(result, arguments), name)

    # ---- control

    @contextmanager
    def loop(self, name: str, stop: int | Value, start: int | Value = 0, step: int | Value = 1) -> Generator[Value]:
        """Goes round for every position from ``start``, in steps, as long as it is below ``stop``, in its type."""
        builder, end = self.builder, self.index(stop)
        kind = end.type
        begin, by = (one if isinstance(one, Value) else self.constant(one, kind) for one in (start, step))
        before = builder.block
        head, body, done = (builder.append_basic_block(f"{name}.{part}") for part in ("head", "body", "exit"))
        builder.branch(head)
        builder.position_at_end(head)
        counter = builder.phi(ir_type(kind), name)
        counter.add_incoming(begin.ir, before)
        builder.cbranch(builder.icmp_signed("<", counter, end.ir), body, done)
        builder.position_at_end(body)
        self._loops, inside = self._loops + 1, self._loops + 1
        yield Value(self, counter, kind)
        counter.add_incoming(builder.add(counter, by.ir), builder.block)
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


class Variable:
    """A number that changes: read and set ``value``."""

    def __init__(self, function: Emitter, start: Value) -> None:
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


def matched(a: Value, b: Value | float) -> tuple[Value, Value]:
    """Both with the same number of lanes, and in the type of ``a``. Raises TypeError where the types differ."""
    if not isinstance(b, Value):
        return a, a.like(b)
    if a.type != b.type:
        raise TypeError(f"a {a.type.name} meets a {b.type.name}: convert one of them")
    lanes = a.lanes or b.lanes
    return a.splat(lanes), b.splat(lanes)


def mangled(value: Value) -> str:
    """The type of a value as names of intrinsics say it, as ``v16f32``."""
    return f"{f'v{value.lanes}' if value.lanes else ''}{'f' if value.type.kind == 'f' else 'i'}{value.type.bits}"
