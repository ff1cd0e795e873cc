"""Numbers from one element type to another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tract_llvm.isa import Isa
from tract_llvm.language.narrow import HALF, NARROW, BrainFloat, Form
from tract_llvm.language.types import F16, F32, F64, I32, U32, ElementType, bits_of, ir_type, numpy_type
from tract_llvm.language.values import Value, mangled


def converted(value: Value, type_: ElementType) -> Value:
    """The number in another type.

    Floats are rounded to the nearest, halves to even. Integers wrap around. Booleans become 0 and 1, and of numbers
    those that are not 0 become true. A float that does not fit an integer type stops at its ends, those of an i32
    where it is narrower than a byte, of which it keeps the lowest bits; not-a-number becomes 0.
    """
    source = value.type
    if source == type_:
        return value
    if value.narrow is not None and value.narrow.type == type_:
        return value.narrow
    if type_.kind == "b":
        return value.differs(0)
    before, after = (_form(one, value.function.isa) for one in (source, type_))
    if before is not None:
        return converted(before.widened(converted(_retyped(value, _raw(source)), U32)), type_)
    if after is not None:
        return _retyped(converted(_narrowed(value, type_, after), _raw(type_)), type_)
    if source.bits == 64 and type_.name == "f16":
        narrow = _to_odd(value) if source.kind == "f" else converted(value, F32)
        return _cast(narrow, "fptrunc", type_)
    if source.kind == "f" and type_.kind == "f":
        return _cast(value, "fpext" if source.bits < type_.bits else "fptrunc", type_)
    if source.kind == "f":
        return converted(_to_integer(value, I32), type_) if type_.is_carried else _to_integer(value, type_)
    if type_.kind == "f":
        return _cast(value, "sitofp" if source.kind == "i" else "uitofp", type_)
    if source.bits == type_.bits:
        return _retyped(value, type_)
    if source.bits > type_.bits:
        return _cast(value, "trunc", type_)
    return _cast(value, "sext" if source.kind == "i" else "zext", type_)


def shortened(value: Value, type_: ElementType) -> Value:
    """What was computed of elements of a narrow type, with no more digits than these hold.

    It stays in the type in which such elements are computed.
    """
    if value.digits == type_:
        return value
    form, known = _form(type_, value.function.isa), value.number
    if known is not None and value.type == type_.computed and _holds(type_, known):
        found = value  # as it is, it is seen to be known
    elif isinstance(form, BrainFloat) and value.type == F32:
        found = form.shortened(value)
    else:
        narrow = converted(value, type_)
        found = replace(converted(narrow, type_.computed), narrow=narrow)
    return replace(found, digits=type_)


def _holds(type_: ElementType, number: float) -> bool:
    """Whether a number is one of a type."""
    with np.errstate(over="ignore"):
        return float(np.float64(number).astype(numpy_type(type_))) == number


def _narrowed(value: Value, type_: ElementType, form: Form) -> Value:
    """The bits, as u32, of a number in a type that no instruction converts."""
    if isinstance(form, BrainFloat) and value.digits == type_:
        return value.bits(U32) >> form.bits
    is_wide = value.type.kind == "f" and value.type.bits == F64.bits
    return form.narrowed(converted(_to_odd(value) if is_wide else value, F32))


def _form(element: ElementType, isa: Isa) -> Form | None:
    """The form of a type that no instruction converts: a value of that type is its bits."""
    return HALF if element is F16 and not isa.half else NARROW.get(element.name)


def _cast(value: Value, instruction: str, type_: ElementType) -> Value:
    found: Any = getattr(value.function.builder, instruction)(value.ir, ir_type(type_, value.lanes))
    return Value(value.function, found, type_, value.lanes)


def from_memory(stored: Value, element: ElementType) -> Value:
    """An element, in the type in which it is computed with, from the number that stands for it in memory."""
    if element.kind == "b":
        return stored.differs(0)
    found = stored if stored.type == element else _retyped(converted(stored, _raw(element)), element)
    wide = converted(found, element.computed)
    return wide if wide.type == element else replace(wide, digits=element)


def to_memory(value: Value, element: ElementType) -> Value:
    """The number that stands for an element in memory."""
    found, stored = converted(value, element), stored_type(element, value.function.isa)
    return found if stored == element else converted(_retyped(found, _raw(element)), stored)


def stored_type(element: ElementType, isa: Isa) -> ElementType:
    """The type of what stands for an element in memory: an integer where no instruction knows the type."""
    return bits_of(element) if element.bits < 8 or _form(element, isa) is not None else element


def _raw(element: ElementType) -> ElementType:
    """The bits of an element, and no others."""
    return ElementType(f"u{element.bits}", "u", element.bits)


def _retyped(value: Value, type_: ElementType) -> Value:
    """The same number of LLVM's, taken for another type."""
    return Value(value.function, value.ir, type_, value.lanes)


def _to_odd(value: Value) -> Value:
    """An f64 as an f32 that can be rounded again: cut off towards zero, its last bit set where anything was cut."""
    narrow = _cast(value, "fptrunc", F32)
    back = _cast(narrow, "fpext", F64)
    too_far = value.function.intrinsic("fabs", back) > value.function.intrinsic("fabs", value)
    bits = narrow.bits(U32)
    towards_zero = value.function.select(too_far, bits - 1, bits)
    inexact = back.differs(value) & ~value.differs(value)
    return value.function.select(inexact, towards_zero | 1, bits).bits(F32)


def cut_off(value: Value, type_: ElementType) -> Value:
    """A float whose whole part surely fits an integer type, without its fraction."""
    wide = I32 if type_.bits < I32.bits else type_
    return converted(_cast(value, "fptosi" if wide.kind == "i" else "fptoui", wide), type_)


def _to_integer(value: Value, type_: ElementType) -> Value:
    """Cut off at the point; the ends of the type for what is beyond them, and 0 for not-a-number."""
    if value.lanes and (type_.bits < I32.bits or type_ == I32):
        return _all_to_integer(value, type_)
    function, whole = value.function, Value(value.function, value.ir, type_, value.lanes)
    name = f"llvm.fpto{'si' if type_.kind == 'i' else 'ui'}.sat.{mangled(whole)}.{mangled(value)}"
    callee = function.declared(name, ir_type(type_, value.lanes), [ir_type(value.type, value.lanes)])
    return Value(function, function.builder.call(callee, [value.ir]), type_, value.lanes)


def _all_to_integer(value: Value, type_: ElementType) -> Value:
    """As vectors: of LLVM's saturating conversion, processors get code that goes lane by lane."""
    select, signed = value.function.select, type_.kind == "i"
    low, high = (-(2 ** (type_.bits - 1)), 2 ** (type_.bits - 1) - 1) if signed else (0, 2**type_.bits - 1)
    if type_ == I32 and value.type == F32:  # which does not hold the high end
        found = select(value < low, _constant(value, low, I32), _cast(value, "fptosi", I32))
        found = select(value >= float(high + 1), _constant(value, high, I32), found)
        return select(value.differs(value), _constant(value, 0, I32), found)
    bounded = select(value < low, value.like(low), value)
    bounded = select(bounded > high, value.like(high), bounded)
    return cut_off(select(value.differs(value), value.like(0), bounded), type_)


def _constant(like: Value, number: int, type_: ElementType) -> Value:
    return like.function.constant(number, type_, like.lanes)
