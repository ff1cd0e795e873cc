"""Arithmetic of integers and of floats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.floats import (
    ALL,
    arithmetic,
    each,
    finished,
    flushed,
    narrowed,
    wide_of,
    widened,
)
from tract_cuda.testing.emulator.instructions.approximate import quotient
from tract_cuda.testing.emulator.types import BITS, FLOATS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer

_ROUNDED: Final = "rn rz rm rp ftz sat relu"


def _both(w: Writer, op: Operation) -> tuple[str, str]:
    """The first two operands, as integers."""
    x, y = (w.bits(one, op.kind) for one in op.operands[1:3])
    return x, y


def _signed(kind: str) -> bool:
    return kind[0] == "s"


def _two(w: Writer, op: Operation) -> None:
    kind, name = op.kind, op.statement.opcode
    if kind in ALL:
        each(w, op, kind, [*op.operands[1:3]], lambda one, values: arithmetic(w, op, one, name, values))
    elif kind in ("s16x2", "u16x2"):
        _in_lanes(w, op, name)
    elif op.has("sat"):
        _saturated(w, op, name)
    else:
        x, y = _both(w, op)
        w.put(op.operands[0], w.two(name, BITS[kind], x, y), kind)


def _in_lanes(w: Writer, op: Operation, name: str) -> None:
    """Both halves of words, apart."""
    vectors = [w.ir(f"bitcast i32 {w.bits(one, 'b32')} to <2 x i16>") for one in op.operands[1:3]]
    if name in ("min", "max"):
        signed = "s" if _signed(op.kind) else "u"
        typed = (f"<2 x i16> {one}" for one in vectors)
        found = w.ir(f"call <2 x i16> @llvm.{signed}{name}.v2i16({', '.join(typed)})")
        w.declare(f"llvm.{signed}{name}.v2i16", "<2 x i16>", ["<2 x i16>"] * 2)
    else:
        found = w.ir(f"{name} <2 x i16> {vectors[0]}, {vectors[1]}")
    w.put(op.operands[0], w.ir(f"bitcast <2 x i16> {found} to i32"), "b32")


def _saturated(w: Writer, op: Operation, name: str) -> None:
    bits = BITS[op.kind]
    x, y = (f"i{bits} {w.bits(one, op.kind)}" for one in op.operands[1:3])
    w.put(op.operands[0], w.intrinsic(f"llvm.s{name}.sat.i{bits}", f"i{bits}", x, y), op.kind)


def _carried(w: Writer, op: Operation) -> None:
    """Sums with a carry, which a register of the thread's own keeps: ``%carry``."""
    kind, bits = op.kind, BITS[op.kind]
    w.registers_of_own("%carry", "pred")
    name = "add" if op.statement.opcode.startswith("add") else "sub"
    x, y = (w.ir(f"zext i{bits} {w.bits(one, kind)} to i128") for one in op.operands[1:3])
    found = w.two(name, 128, x, y)
    if op.statement.opcode in ("addc", "subc"):
        found = w.two(name, 128, found, w.ir(f"zext i1 {w.bits('%carry', 'pred')} to i128"))
    if op.has("cc"):
        w.put("%carry", w.ir(f"trunc i128 {w.two('lshr', 128, found, str(bits))} to i1"), "pred")
    w.put(op.operands[0], w.ir(f"trunc i128 {found} to i{bits}"), kind)


def _sum(w: Writer, op: Operation) -> None:
    if op.has("cc") or op.statement.opcode in ("addc", "subc"):
        _carried(w, op)
    else:
        _two(w, op)


def _quotient(w: Writer, op: Operation) -> None:
    if op.has("approx", "full"):
        quotient(w, op)
    else:
        _two(w, op)


def _bitwise(w: Writer, op: Operation) -> None:
    kind = op.kind
    x, y = _both(w, op)
    w.put(op.operands[0], w.two(op.statement.opcode, BITS[kind], x, y), kind)


def _divided(w: Writer, op: Operation) -> None:
    """By zero, a device gives all ones, and the dividend as the rest."""
    kind, bits, name = op.kind, BITS[op.kind], op.statement.opcode
    x, y = _both(w, op)
    zero = w.ir(f"icmp eq i{bits} {y}, 0")
    by = w.ir(f"select i1 {zero}, i{bits} 1, i{bits} {y}")
    found = _divided_signed(w, name, bits, x, by) if _signed(kind) else w.two(f"u{name}", bits, x, by)
    without = "-1" if name == "div" else x
    w.put(op.operands[0], w.ir(f"select i1 {zero}, i{bits} {without}, i{bits} {found}"), kind)


def _divided_signed(w: Writer, name: str, bits: int, x: str, by: str) -> str:
    """The most negative number by -1 is itself."""
    one = w.ir(f"icmp eq i{bits} {by}, -1")
    by = w.ir(f"select i1 {one}, i{bits} 1, i{bits} {by}")
    found = w.two(f"s{name}", bits, x, by)
    negated = w.two("sub", bits, "0", x) if name == "div" else "0"
    return w.ir(f"select i1 {one}, i{bits} {negated}, i{bits} {found}")


def _wide(w: Writer, op: Operation) -> tuple[str, str]:
    """The whole product, and its type."""
    kind = op.kind
    bits = BITS[kind]
    x, y = (w.sized(w.bits(one, kind), bits, 2 * bits, signed=_signed(kind)) for one in op.operands[1:3])
    return w.two("mul", 2 * bits, x, y), f"{kind[0]}{2 * bits}"


def _product(w: Writer, op: Operation) -> tuple[str, str]:
    """The product that the instruction says: whole, its upper or its lower half."""
    kind, bits = op.kind, BITS[op.kind]
    if op.has("wide"):
        return _wide(w, op)
    if op.has("hi"):
        value, _ = _wide(w, op)
        return w.ir(f"trunc i{2 * bits} {w.two('lshr', 2 * bits, value, str(bits))} to i{bits}"), kind
    x, y = _both(w, op)
    return w.two("mul", bits, x, y), kind


def _mul(w: Writer, op: Operation) -> None:
    if op.kind in ALL:
        _two(w, op)
    else:
        value, kind = _product(w, op)
        w.put(op.operands[0], value, kind)


def _mad(w: Writer, op: Operation) -> None:
    if op.kind in ALL:
        _fma(w, op)
        return
    value, kind = _product(w, op)
    bits, addend = BITS[kind], w.bits(op.operands[3], kind)
    if op.has("sat"):
        found = w.intrinsic(f"llvm.sadd.sat.i{bits}", f"i{bits}", f"i{bits} {value}", f"i{bits} {addend}")
    else:
        found = w.two("add", bits, value, addend)
    w.put(op.operands[0], found, kind)


def _mul24(w: Writer, op: Operation) -> None:
    kind = op.kind
    rest = "8"
    both = list[str]()
    for one in op.operands[1:3]:
        top = w.two("shl", 32, w.bits(one, kind), rest)
        both.append(w.sized(w.two("ashr" if _signed(kind) else "lshr", 32, top, rest), 32, 64, signed=_signed(kind)))
    found = w.two("mul", 64, *both)
    if op.has("hi"):
        found = w.two("lshr", 64, found, "16")
    value = w.sized(found, 64, 32)
    if op.statement.opcode == "mad24":
        value = w.two("add", 32, value, w.bits(op.operands[3], kind))
    w.put(op.operands[0], value, kind)


def _fma(w: Writer, op: Operation) -> None:
    each(w, op, op.kind, [*op.operands[1:4]], lambda one, values: arithmetic(w, op, one, "fma", values))


def _neg(w: Writer, op: Operation) -> None:
    """The sign of floats, of those that are no numbers too."""
    kind = op.kind
    if kind in ALL:
        _by_mask(w, op, "xor", {16: 1 << 15, 32: 1 << 31, 64: 1 << 63})
    else:
        w.put(op.operands[0], w.two("sub", BITS[kind], "0", w.bits(op.operands[1], kind)), kind)


def _abs(w: Writer, op: Operation) -> None:
    kind = op.kind
    bits = BITS[kind]
    if kind in ALL:
        _by_mask(w, op, "and", {16: (1 << 15) - 1, 32: (1 << 31) - 1, 64: (1 << 63) - 1})
    else:
        value = w.bits(op.operands[1], kind)
        w.put(op.operands[0], w.intrinsic(f"llvm.abs.i{bits}", f"i{bits}", f"i{bits} {value}", "i1 false"), kind)


def _by_mask(w: Writer, op: Operation, word: str, masks: dict[int, int]) -> None:
    kind, bits = op.kind, BITS[op.kind]
    mask = masks[16] << 16 | masks[16] if kind.endswith("x2") else masks[bits]
    value = w.bits(op.operands[1], kind)
    if op.has("ftz") and kind in FLOATS:
        held = flushed(w, op, w.ir(f"bitcast i{bits} {value} to {FLOATS[kind]}"), FLOATS[kind])
        value = w.ir(f"bitcast {FLOATS[kind]} {held} to i{bits}")
    w.put(op.operands[0], w.two(word, bits, value, str(mask)), f"b{bits}")


def _copysign(w: Writer, op: Operation) -> None:
    """The magnitude of the second with the sign of the first."""
    bits = BITS[op.kind]
    sign, size = _both(w, op)
    sign = w.two("and", bits, sign, str(1 << bits - 1))
    size = w.two("and", bits, size, str((1 << bits - 1) - 1))
    w.put(op.operands[0], w.two("or", bits, sign, size), f"b{bits}")


def _extreme(w: Writer, op: Operation) -> None:
    kind = op.kind
    if kind in ALL:
        each(w, op, kind, [*op.operands[1:]], lambda one, values: _extreme_of(w, op, one, values))
    elif kind in ("s16x2", "u16x2"):
        _in_lanes(w, op, op.statement.opcode)
    else:
        bits, (x, y) = BITS[kind], _both(w, op)
        found = _of_integers(w, op.statement.opcode, kind, x, y)
        if op.has("relu"):
            found = w.intrinsic(f"llvm.smax.i{bits}", f"i{bits}", f"i{bits} {found}", f"i{bits} 0")
        w.put(op.operands[0], found, kind)


def _of_integers(w: Writer, name: str, kind: str, x: str, y: str) -> str:
    """The smaller or the larger of two."""
    bits, sign = BITS[kind], "s" if _signed(kind) else "u"
    return w.intrinsic(f"llvm.{sign}{name}.i{bits}", f"i{bits}", f"i{bits} {x}", f"i{bits} {y}")


def _extreme_of(w: Writer, op: Operation, kind: str, values: list[str]) -> str:
    """Of two or three floats."""
    if op.has("xorsign"):
        raise op.unknown("signs are not combined")
    wide = wide_of(kind)
    given = [flushed(w, op, one, FLOATS[kind]) if kind in FLOATS else one for one in values]
    numbers = [widened(w, one, kind) for one in given]
    name = f"{op.statement.opcode}_{'nan_' if op.has('NaN') else ''}{wide}"
    found = numbers[0]
    for one in numbers[1:]:
        found = w.helper(name, f"{wide} {found}", f"{wide} {one}")
    return narrowed(w, finished(w, op, found, wide), kind)


def _sad(w: Writer, op: Operation) -> None:
    kind, bits = op.kind, BITS[op.kind]
    x, y = _both(w, op)
    larger, smaller = (_of_integers(w, name, kind, x, y) for name in ("max", "min"))
    apart = w.two("sub", bits, larger, smaller)
    w.put(op.operands[0], w.two("add", bits, apart, w.bits(op.operands[3], kind)), kind)


def _dot(w: Writer, op: Operation) -> None:
    """Four bytes of two words, multiplied and added; or two halves of the first with two bytes."""
    first, second = op.kinds[0], op.kinds[1]
    four = op.statement.opcode == "dp4a"
    total = w.bits(op.operands[3], "b32")
    a, b = (w.bits(one, "b32") for one in op.operands[1:3])
    begin = 2 if op.has("hi") else 0
    for place in range(4 if four else 2):
        x = _piece(w, a, 8 if four else 16, place, signed=_signed(first))
        y = _piece(w, b, 8, place + (0 if four else begin), signed=_signed(second))
        total = w.two("add", 32, total, w.two("mul", 32, x, y))
    w.put(op.operands[0], total, "b32")


def _piece(w: Writer, word: str, bits: int, place: int, *, signed: bool) -> str:
    cut = w.ir(f"trunc i32 {w.two('lshr', 32, word, str(bits * place))} to i{bits}")
    return w.sized(cut, bits, 32, signed=signed)


def _float_or(integers: Row, floats: Row) -> Row:
    """A row for an instruction that is another one for floats."""

    def write(w: Writer, op: Operation) -> None:
        (floats if op.kind in ALL else integers).write(w, op)

    return Row(write, f"{integers.words} {floats.words}")


TABLE: Final[Mapping[str, Row]] = {
    **{name: Row(_sum, f"{_ROUNDED} cc") for name in ("add", "sub", "addc", "subc")},
    **{name: Row(_bitwise) for name in ("and", "or", "xor")},
    "rem": Row(_divided),
    "div": _float_or(Row(_divided), Row(_quotient, f"{_ROUNDED} approx full")),
    "mul": Row(_mul, f"{_ROUNDED} lo hi wide"),
    "mad": Row(_mad, f"{_ROUNDED} lo hi wide"),
    "mul24": Row(_mul24, "lo hi"),
    "mad24": Row(_mul24, "lo hi"),
    "fma": Row(_fma, _ROUNDED),
    "neg": Row(_neg, "ftz"),
    "abs": Row(_abs, "ftz"),
    "copysign": Row(_copysign),
    "min": Row(_extreme, "ftz NaN relu xorsign abs"),
    "max": Row(_extreme, "ftz NaN relu xorsign abs"),
    "sad": Row(_sad),
    "dp4a": Row(_dot),
    "dp2a": Row(_dot, "lo hi"),
}
