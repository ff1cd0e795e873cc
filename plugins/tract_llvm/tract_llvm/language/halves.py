"""Registers of bf16 as f32 and back, where an instruction picks bytes: an operation less than to widen and to move.

It picks within each 128 bits. To read both halves of a register from the same 128 bits takes no operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tract_llvm.language.types import BF16, F32, U8, U16, U64, ElementType, ir_type
from tract_llvm.language.values import Emitter, Value
from tract_llvm.llvm import ir

_WORDS: Final = 4
"""How many f32 lie in 128 bits."""
_NOTHING: Final = 0x80
"""The place of a byte that is 0."""


def are_picked(function: Emitter, element: ElementType, lanes: int) -> bool:
    """Whether vectors of so many elements are read and written here."""
    isa = function.isa
    whole = lanes > 0 and lanes % isa.lanes(F32.bits) == 0
    return element is BF16 and whole and bool(isa.picks_bytes) and not isa.written_out


def widened(halves: Value) -> Value:
    """A register of f32, of as many bf16, given as their bits."""
    twice = halves.function.shuffled(halves, halves, [*range(halves.lanes)] * 2)
    return _picked(twice, ((_NOTHING, _NOTHING, 2 * one, 2 * one + 1) for one in range(halves.lanes))).bits(F32)


def narrowed(value: Value) -> Value:
    """The bits of bf16, of registers of f32 that have no more digits."""
    function, parts = value.function, value.lanes // _WORDS
    if value.lanes > function.isa.lanes(F32.bits):
        return function.joined([narrowed(one) for one in value.halves()])
    upper = [(4 * one + 2, 4 * one + 3) for one in range(_WORDS)]
    found = _picked(value, [*upper, *[(_NOTHING, _NOTHING)] * _WORDS] * parts).bits(U64)
    return function.shuffled(found, found, range(0, 2 * parts, 2)).bits(U16)


def _picked(value: Value, places: Iterable[Iterable[int]]) -> Value:
    function, bytes_ = value.function, value.bits(U8)
    kind: Any = ir_type(U8, bytes_.lanes)
    flat = [place for some in places for place in some]
    callee = function.declared(f"llvm.{function.isa.picks_bytes}", kind, [kind, kind])
    found = function.builder.call(callee, [bytes_.ir, ir.Constant(kind, flat)])
    return Value(function, found, U8, bytes_.lanes)
