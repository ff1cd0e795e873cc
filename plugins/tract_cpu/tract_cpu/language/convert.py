"""Numbers from one element type to another."""

from __future__ import annotations

from typing import Any, Final

from tract_cpu.language.types import BF16, F32, F64, U16, U32, ElementType, ir_type
from tract_cpu.language.values import Value, mangled

_BF16_TAIL: Final = 16
"""A bf16 is the upper half of an f32."""


def converted(value: Value, type_: ElementType) -> Value:
    """The number in another type.

    Floats are rounded to the nearest, halves to even. Integers wrap around. Booleans become 0 and 1, and of numbers
    those that are not 0 become true. A float that does not fit an integer type stops at its ends; not-a-number becomes
    0.
    """
    source = value.type
    if source == type_:
        return value
    if type_.kind == "b":
        return value.differs(0)
    if source.name == "bf16" or type_.name == "bf16":
        return _by_f32(value, type_)
    if source.bits == 64 and type_.name == "f16":
        narrow = _to_odd(value) if source.kind == "f" else converted(value, F32)
        return _cast(narrow, "fptrunc", type_)
    if source.kind == "f" and type_.kind == "f":
        return _cast(value, "fpext" if source.bits < type_.bits else "fptrunc", type_)
    if source.kind == "f":
        return _to_integer(value, type_)
    if type_.kind == "f":
        return _cast(value, "sitofp" if source.kind == "i" else "uitofp", type_)
    if source.bits == type_.bits:
        return Value(value.function, value.ir, type_, value.lanes)
    if source.bits > type_.bits:
        return _cast(value, "trunc", type_)
    return _cast(value, "sext" if source.kind == "i" else "zext", type_)


def _cast(value: Value, instruction: str, type_: ElementType) -> Value:
    found: Any = getattr(value.function.builder, instruction)(value.ir, ir_type(type_, value.lanes))
    return Value(value.function, found, type_, value.lanes)


def _by_f32(value: Value, type_: ElementType) -> Value:
    if value.type.name == "bf16":
        wide = converted(Value(value.function, value.ir, U16, value.lanes), U32) << _BF16_TAIL
        return converted(wide.bits(F32), type_)
    narrow = converted(value if value.type.kind != "f" or value.type.bits < 64 else _to_odd(value), F32)
    rounded = converted(_rounded_to_bf16(narrow), U16)
    return Value(value.function, rounded.ir, BF16, value.lanes)


def _rounded_to_bf16(value: Value) -> Value:
    """The upper halves of f32 numbers, to the nearest, halves to even; not-a-number stays one."""
    bits = value.bits(U32)
    last = (bits >> _BF16_TAIL) & 1
    nearest = (bits + (last + 0x7FFF)) >> _BF16_TAIL
    quiet = (bits >> _BF16_TAIL) | 0x40
    return value.function.select(value.differs(value), quiet, nearest)


def _to_odd(value: Value) -> Value:
    """An f64 as an f32 that can be rounded again: cut off towards zero, its last bit set where anything was cut."""
    narrow = _cast(value, "fptrunc", F32)
    back = _cast(narrow, "fpext", F64)
    too_far = value.function.intrinsic("fabs", back) > value.function.intrinsic("fabs", value)
    bits = narrow.bits(U32)
    towards_zero = value.function.select(too_far, bits - 1, bits)
    inexact = back.differs(value) & ~value.differs(value)
    return value.function.select(inexact, towards_zero | 1, bits).bits(F32)


def _to_integer(value: Value, type_: ElementType) -> Value:
    """Cut off at the point. LLVM's saturating conversion gives the ends of the type, and 0 for not-a-number."""
    function, whole = value.function, Value(value.function, value.ir, type_, value.lanes)
    name = f"llvm.fpto{'si' if type_.kind == 'i' else 'ui'}.sat.{mangled(whole)}.{mangled(value)}"
    callee = function.declared(name, ir_type(type_, value.lanes), [ir_type(value.type, value.lanes)])
    return Value(function, function.builder.call(callee, [value.ir]), type_, value.lanes)
