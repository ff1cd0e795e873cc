"""Numbers and vectors of numbers in a kernel, with the operators of Python.

Where a single number meets a vector, it stands for a vector of that number; a number of Python is taken in the type of
the other operand. Integers wrap around. Of floats, nothing is contracted or reordered: what is written is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tract_llvm.language.types import BOOL, ElementType, ir_type
from tract_llvm.llvm import ir

if TYPE_CHECKING:
    from tract_llvm.language.function import Function

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

    ``narrow``: the same number in a narrower type, of which it has no more digits; ``None`` where that is not known.
    """

    function: Function
    ir: Any
    type: ElementType
    lanes: int = 0
    narrow: Value | None = None

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
        times, plus = matched(self, factor)[1], matched(self, term)[1]
        fused = self.type.kind == "f" and self.function.isa.fma
        return self.function.fma(self, times, plus) if fused else self * times + plus

    def __neg__(self) -> Value:
        if self.type.kind == "f":
            return self._made(self.function.builder.fneg(self.ir))
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
            found.append(Value(self.function, part, self.type, half))
        return found[0], found[1]

    def every_other(self, following: Value) -> Value:
        """Of a vector and the one behind it, every other lane from the first on."""
        order = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), list(range(0, 2 * self.lanes, 2)))
        return self._made(self.function.builder.shuffle_vector(self.ir, following.ir, order))

    def bits(self, type_: ElementType) -> Value:
        """The same bits, taken for another type of the same width."""
        return self._made(self.function.builder.bitcast(self.ir, ir_type(type_, self.lanes)), type_)

    def _combined(self, kind: str, other: Value | float) -> Value:
        a, b = matched(self, other)
        instruction = _INSTRUCTIONS[kind][a.type.kind]
        return a._made(getattr(a.function.builder, instruction)(a.ir, b.ir))

    def _made(self, found: Any, type_: ElementType | None = None) -> Value:
        return Value(self.function, found, type_ or self.type, self.lanes)


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
