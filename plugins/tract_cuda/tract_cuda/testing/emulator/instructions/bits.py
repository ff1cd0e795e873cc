"""Shifts, fields of bits, bytes picked from words, and what counts bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tract_cuda.testing.emulator.types import BITS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer


def _not(w: Writer, op: Operation) -> None:
    kind = op.kind
    w.put(op.operands[0], w.ir(f"xor i{BITS[kind]} {w.bits(op.operands[1], kind)}, -1"), kind)


def _cnot(w: Writer, op: Operation) -> None:
    kind = op.kind
    zero = w.ir(f"icmp eq i{BITS[kind]} {w.bits(op.operands[1], kind)}, 0")
    w.put(op.operands[0], w.ir(f"zext i1 {zero} to i{BITS[kind]}"), kind)


def _shift(w: Writer, op: Operation) -> None:
    """By more than there are bits, all of them are gone."""
    kind = op.kind
    bits = BITS[kind]
    value, amount = w.bits(op.operands[1], kind), w.bits(op.operands[2], "u32")
    wide = w.sized(amount, 32, max(bits, 32))
    over = w.ir(f"icmp uge i{max(bits, 32)} {wide}, {bits}")
    amount = w.sized(
        w.ir(f"select i1 {over}, i{max(bits, 32)} {bits - 1}, i{max(bits, 32)} {wide}"), max(bits, 32), bits
    )
    left, signed = op.statement.opcode == "shl", kind[0] == "s"
    found = w.ir(f"{'shl' if left else 'ashr' if signed else 'lshr'} i{bits} {value}, {amount}")
    if left or not signed:
        found = w.ir(f"select i1 {over}, i{bits} 0, i{bits} {found}")
    w.put(op.operands[0], found, kind)


def _shf(w: Writer, op: Operation) -> None:
    """Two words, one behind the other, shifted: one of the results."""
    low, high, amount = (w.bits(one, "b32") for one in op.operands[1:4])
    if op.has("wrap"):
        amount = w.two("and", 32, amount, "31")
    else:
        over = w.ir(f"icmp ugt i32 {amount}, 32")
        amount = w.ir(f"select i1 {over}, i32 32, i32 {amount}")
    both = w.two("or", 64, w.two("shl", 64, w.sized(high, 32, 64), "32"), w.sized(low, 32, 64))
    wide = w.sized(amount, 32, 64)
    moved = w.two("shl", 64, both, wide) if op.has("l") else both
    found = w.two("lshr", 64, moved, "32" if op.has("l") else wide)
    w.put(op.operands[0], w.sized(found, 64, 32), "b32")


def _clamped(w: Writer, value: str, most: int) -> str:
    over = w.ir(f"icmp ugt i32 {value}, {most}")
    return w.ir(f"select i1 {over}, i32 {most}, i32 {value}")


def _field(w: Writer, op: Operation, place: int) -> tuple[str, str]:
    """Where a field begins and how long it is: bytes that two operands say."""
    found = [w.two("and", 32, w.bits(one, "u32"), "255") for one in op.operands[place : place + 2]]
    return found[0], found[1]


def _bfe(w: Writer, op: Operation) -> None:
    """In 128 bits, in which nothing is shifted too far."""
    kind = op.kind
    bits, signed = BITS[kind], kind[0] == "s"
    begin, length = _field(w, op, 2)
    value = w.sized(w.bits(op.operands[1], kind), bits, 128, signed=signed)
    begin, length = _clamped(w, begin, bits), _clamped(w, length, bits)
    moved = w.ir(f"{'ashr' if signed else 'lshr'} i128 {value}, {w.sized(begin, 32, 128)}")
    rest = w.two("sub", 128, "128", w.sized(length, 32, 128))
    none = w.ir(f"icmp eq i32 {length}, 0")
    top = w.ir(f"select i1 {none}, i128 0, i128 {moved}")
    rest = w.ir(f"select i1 {none}, i128 0, i128 {rest}")
    top = w.two("shl", 128, top, rest)
    w.put(op.operands[0], w.sized(w.ir(f"{'ashr' if signed else 'lshr'} i128 {top}, {rest}"), 128, bits), kind)


def _bfi(w: Writer, op: Operation) -> None:
    kind = op.kind
    bits = BITS[kind]
    begin, length = _field(w, op, 3)
    begin, length = _clamped(w, begin, bits), _clamped(w, length, bits)
    ones = w.two("shl", 128, "1", w.sized(length, 32, 128))
    mask = w.two("shl", 128, w.two("sub", 128, ones, "1"), w.sized(begin, 32, 128))
    field, base = (w.sized(w.bits(one, kind), bits, 128) for one in op.operands[1:3])
    moved = w.two("and", 128, w.two("shl", 128, field, w.sized(begin, 32, 128)), mask)
    kept = w.two("and", 128, base, w.two("xor", 128, mask, "-1"))
    w.put(op.operands[0], w.sized(w.two("or", 128, moved, kept), 128, bits), kind)


def _counted(w: Writer, op: Operation) -> None:
    """How many bits are set, or are zeros above the first one."""
    bits = BITS[op.kind]
    value = w.bits(op.operands[1], op.kind)
    if op.statement.opcode == "popc":
        found = w.intrinsic(f"llvm.ctpop.i{bits}", f"i{bits}", f"i{bits} {value}")
    else:
        found = w.intrinsic(f"llvm.ctlz.i{bits}", f"i{bits}", f"i{bits} {value}", "i1 false")
    w.put(op.operands[0], w.sized(found, bits, 32), "u32")


def _brev(w: Writer, op: Operation) -> None:
    bits = BITS[op.kind]
    found = w.intrinsic(f"llvm.bitreverse.i{bits}", f"i{bits}", f"i{bits} {w.bits(op.operands[1], op.kind)}")
    w.put(op.operands[0], found, op.kind)


def _bfind(w: Writer, op: Operation) -> None:
    """The place of the highest bit that is not the sign's; all ones where there is none."""
    bits = BITS[op.kind]
    value = w.bits(op.operands[1], op.kind)
    if op.kind[0] == "s":
        value = w.two("xor", bits, value, w.two("ashr", bits, value, bits - 1))
    zeros = w.intrinsic(f"llvm.ctlz.i{bits}", f"i{bits}", f"i{bits} {value}", "i1 false")
    place = w.two("sub", bits, bits - 1, zeros)
    none = w.ir(f"icmp eq i{bits} {value}, 0")
    found = zeros if op.has("shiftamt") else place
    found = w.ir(f"select i1 {none}, i{bits} -1, i{bits} {found}")
    w.put(op.operands[0], w.sized(found, bits, 32, signed=True), "u32")


def _lop3(w: Writer, op: Operation) -> None:
    """Any function of three bits: where its table has ones."""
    a, b, c = (w.bits(one, "b32") for one in op.operands[1:4])
    table = int(op.operands[4], 0)
    held = {1: (a, b, c), 0: tuple(w.two("xor", 32, one, "-1") for one in (a, b, c))}
    found = "0"
    for place in range(8):
        if table >> place & 1:
            x, y, z = (held[place >> 2 - n & 1][n] for n in range(3))
            found = w.two("or", 32, found, w.two("and", 32, w.two("and", 32, x, y), z))
    w.put(op.operands[0], found, "b32")


_PRMT: Final[Mapping[str, Callable[[int], list[int]]]] = {
    "f4e": lambda n: [(n + i) & 7 for i in range(4)],
    "b4e": lambda n: [(n - i) & 7 for i in range(4)],
    "rc8": lambda n: [n] * 4,
    "ecl": lambda n: [max(i, n) for i in range(4)],
    "ecr": lambda n: [min(i, n) for i in range(4)],
    "rc16": lambda n: [2 * (n & 1), 2 * (n & 1) + 1] * 2,
}  # fmt: skip


def _prmt(w: Writer, op: Operation) -> None:
    """Any four bytes of two words, or the signs of these."""
    low, high, selection = (w.bits(one, "b32") for one in op.operands[1:4])
    both = w.two("or", 64, w.two("shl", 64, w.sized(high, 32, 64), "32"), w.sized(low, 32, 64))
    mode = op.one_of([*_PRMT])
    found = "0"
    for place in range(4):
        if mode:
            nibble = _by_mode(w, selection, [_PRMT[mode](n)[place] for n in range(4)])
        else:
            nibble = w.two("and", 32, w.two("lshr", 32, selection, 4 * place), "15")
        amount = w.two("shl", 32, w.two("and", 32, nibble, "7"), "3")
        byte = w.sized(w.two("lshr", 64, both, w.sized(amount, 32, 64)), 64, 8)
        sign = w.ir(f"icmp ugt i32 {nibble}, 7")
        signs = w.two("ashr", 8, byte, "7")
        byte = w.ir(f"select i1 {sign}, i8 {signs}, i8 {byte}")
        moved = w.two("shl", 32, w.sized(byte, 8, 32), 8 * place)
        found = w.two("or", 32, found, moved)
    w.put(op.operands[0], found, "b32")


def _by_mode(w: Writer, selection: str, choices: list[int]) -> str:
    """One of four numbers, by the lowest bits."""
    table = sum(one << 8 * place for place, one in enumerate(choices))
    amount = w.two("shl", 32, w.two("and", 32, selection, "3"), "3")
    return w.two("and", 32, w.two("lshr", 32, table, amount), "15")


def _bmsk(w: Writer, op: Operation) -> None:
    begin, length = (w.bits(one, "u32") for one in op.operands[1:3])
    if op.has("wrap"):
        begin, length = (w.two("and", 32, one, "31") for one in (begin, length))
    begin, length = (w.sized(_clamped(w, one, 32), 32, 64) for one in (begin, length))
    ones = w.two("sub", 64, w.two("shl", 64, "1", length), "1")
    w.put(op.operands[0], w.sized(w.two("shl", 64, ones, begin), 64, 32), "b32")


TABLE: Final[Mapping[str, Row]] = {
    "not": Row(_not),
    "cnot": Row(_cnot),
    "shl": Row(_shift),
    "shr": Row(_shift),
    "shf": Row(_shf, "l r wrap clamp"),
    "bfe": Row(_bfe),
    "bfi": Row(_bfi),
    "popc": Row(_counted),
    "clz": Row(_counted),
    "brev": Row(_brev),
    "bfind": Row(_bfind, "shiftamt"),
    "lop3": Row(_lop3),
    "prmt": Row(_prmt, " ".join(_PRMT)),
    "bmsk": Row(_bmsk, "clamp wrap"),
}
