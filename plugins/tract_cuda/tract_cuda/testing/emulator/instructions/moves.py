"""Moves, choices, comparisons and conversions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.floats import PAIRS, flushed, part, wide_of, widened
from tract_cuda.testing.emulator.types import BITS, FLOATS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, listed

MOST_SHARED: Final = 227 << 10
"""Bytes of shared memory that a block has at most."""
_COMPARISONS: Final = {
    **{one: one for one in ("eq", "ne", "lt", "le", "gt", "ge")},
    "lo": "lt",
    "ls": "le",
    "hi": "gt",
    "hs": "ge",
}


def compared(w: Writer, op: Operation, kind: str, x: str, y: str) -> str:
    """Whether two values compare as the instruction says, as i1."""
    how = op.words[0]
    if kind not in (*FLOATS, "bf16"):
        word = _COMPARISONS[how]
        signed = "" if word in ("eq", "ne") else "s" if kind[0] == "s" else "u"
        return w.ir(f"icmp {signed}{word} i{BITS[kind]} {x}, {y}")
    if kind in FLOATS:
        x, y = (flushed(w, op, one, FLOATS[kind]) for one in (x, y))
    x, y = (widened(w, one, kind) for one in (x, y))
    ordered = {one: f"o{one}" for one in ("eq", "ne", "lt", "le", "gt", "ge")}
    word = {**ordered, **{f"{one}u": f"u{one}" for one in ordered}, "num": "ord", "nan": "uno"}[how]
    return w.ir(f"fcmp {word} {wide_of(kind)} {x}, {y}")


def _setp(w: Writer, op: Operation) -> None:
    """One predicate and its opposite; of pairs of halves, one for each."""
    kind = op.kind
    targets = op.operands[0].split("|")
    if kind in PAIRS:
        words = [w.bits(one, kind) for one in op.operands[1:3]]
        found = [compared(w, op, PAIRS[kind], *(part(w, word, at, PAIRS[kind]) for word in words)) for at in (0, 16)]
    else:
        first = compared(w, op, kind, *(w.get(one, kind) for one in op.operands[1:3]))
        found = [first, w.two("xor", 1, first, "true")] if len(targets) > 1 else [first]
    word = op.one_of(["and", "or", "xor"])
    for target, value in zip(targets, found, strict=True):
        joined = w.two(word, 1, value, w.bits(op.operands[3], "pred")) if word else value
        w.put(target.strip(), joined, "pred")


def _set(w: Writer, op: Operation) -> None:
    """All ones, or the number 1, where two operands compare so."""
    target, kind = op.kinds[0], op.kinds[-1]
    if kind in PAIRS:
        raise op.unknown("pairs are compared by setp only")
    found = compared(w, op, kind, *(w.get(one, kind) for one in op.operands[1:3]))
    word = op.one_of(["and", "or", "xor"])
    if word:
        found = w.two(word, 1, found, w.bits(op.operands[3], "pred"))
    ones = {"f32": str(0x3F800000), "f16": str(0x3C00), "bf16": str(0x3F80)}.get(target, "-1")
    bits = BITS[target]
    w.put(op.operands[0], w.ir(f"select i1 {found}, i{bits} {ones}, i{bits} 0"), f"b{bits}")


def _selp(w: Writer, op: Operation) -> None:
    bits = BITS[op.kind]
    x, y = (w.bits(one, op.kind) for one in op.operands[1:3])
    chosen = w.bits(op.operands[3], "pred")
    w.put(op.operands[0], w.ir(f"select i1 {chosen}, i{bits} {x}, i{bits} {y}"), f"b{bits}")


def _slct(w: Writer, op: Operation) -> None:
    """The first operand where the third is not negative."""
    kind, decides = op.kinds
    x, y = (w.bits(one, kind) for one in op.operands[1:3])
    third = w.get(op.operands[3], decides)
    chosen = w.ir(f"fcmp oge float {third}, 0.0") if decides == "f32" else w.ir(f"icmp sge i32 {third}, 0")
    bits = BITS[kind]
    w.put(op.operands[0], w.ir(f"select i1 {chosen}, i{bits} {x}, i{bits} {y}"), f"b{bits}")


def _testp(w: Writer, op: Operation) -> None:
    kind = op.kind
    value = w.get(op.operands[1], kind)
    size = w.intrinsic(f"llvm.fabs.{kind}", FLOATS[kind], f"{FLOATS[kind]} {value}")
    tests = {
        "finite": ("olt", "0x7FF0000000000000"),
        "infinite": ("oeq", "0x7FF0000000000000"),
        "number": ("ord", "0.0"),
        "notanumber": ("uno", "0.0"),
    }
    word, bound = tests.get(op.words[0], ("", ""))
    if not word:
        raise op.unknown(f"'{op.words[0]}' is not tested")
    w.put(op.operands[0], w.ir(f"fcmp {word} {FLOATS[kind]} {size}, {bound}"), "pred")


def _isspacep(w: Writer, op: Operation) -> None:
    """Whether a generic address is in shared memory, or in global memory, which is all else."""
    value = w.bits(op.operands[1], "b64")
    inside = list[str]()
    for name, size in (("shared", str(MOST_SHARED)), ("local", w.field("local_bytes"))):
        offset = w.two("sub", 64, value, w.field(name))
        inside.append(w.ir(f"icmp ult i64 {offset}, {size}"))
    shared, local = inside
    word = op.one_of(["shared", "local", "global"])
    outside = w.two("xor", 1, w.two("or", 1, shared, local), "true")
    w.put(op.operands[0], {"shared": shared, "local": local, "global": outside}[word], "pred")


def _mov(w: Writer, op: Operation) -> None:
    target, source = op.operands
    if target.startswith("{"):
        _apart(w, op.kind, listed(target), source)
    elif source.startswith("{"):
        _together(w, op.kind, target, listed(source))
    elif w.space_of(source) == "local":
        w.put(target, w.address(f"[{source}]"), op.kind)
    else:
        w.put(target, w.bits(source, op.kind), f"b{BITS[op.kind]}" if op.kind != "pred" else "pred")


def _apart(w: Writer, kind: str, parts: list[str], source: str) -> None:
    bits, one = BITS[kind], BITS[kind] // len(parts)
    value = w.bits(source, kind)
    for place, one_part in enumerate(parts):
        moved = w.ir(f"lshr i{bits} {value}, {place * one}")
        w.put(one_part, w.ir(f"trunc i{bits} {moved} to i{one}"), f"b{one}")


def _together(w: Writer, kind: str, target: str, parts: list[str]) -> None:
    bits, one = BITS[kind], BITS[kind] // len(parts)
    value = "0"
    for place, one_part in enumerate(parts):
        wide = w.ir(f"zext i{one} {w.bits(one_part, f'b{one}')} to i{bits}")
        value = w.ir(f"or i{bits} {value}, {w.ir(f'shl i{bits} {wide}, {place * one}')}")
    w.put(target, value, kind)


_COMPARED: Final = " ".join([*_COMPARISONS, *(f"{one}u" for one in _COMPARISONS), "num nan ftz and or xor"])

TABLE: Final[Mapping[str, Row]] = {
    "mov": Row(_mov),
    "setp": Row(_setp, _COMPARED),
    "set": Row(_set, _COMPARED),
    "selp": Row(_selp),
    "slct": Row(_slct, "ftz"),
    "testp": Row(_testp, "finite infinite number notanumber subnormal normal"),
    "isspacep": Row(_isspacep, "global shared local cta const param"),
}
