"""Moves, choices, comparisons and conversions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.types import BITS, FLOATS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, ir_of, listed

_COMPARISONS: Final = {
    **{one: one for one in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"},
}


def compared(w: Writer, how: str, kind: str, left: str, right: str) -> str:
    """Whether two operands compare so, as i1."""
    x, y = w.get(left, kind), w.get(right, kind)
    if kind in FLOATS:
        word = {"num": "ord", "nan": "uno"}.get(how) or (
            "u" + how[:-1] if how[-1] == "u" and how != "equ" else "o" + how
        )
        word = {"equ": "ueq", "neu": "une"}.get(how, word)
        return w.ir(f"fcmp {word} {FLOATS[kind]} {x}, {y}")
    word = _COMPARISONS[how]
    signed = "" if word in ("eq", "ne") else "s" if kind[0] == "s" else "u"
    return w.ir(f"icmp {signed}{word} i{BITS[kind]} {x}, {y}")


def _setp(w: Writer, op: Operation) -> None:
    found = compared(w, op.words[0], op.kind, *op.operands[1:3])
    w.put(op.operands[0], found, "pred")


def _selp(w: Writer, op: Operation) -> None:
    kind = ir_of(op.kind)
    x, y = (w.get(one, op.kind) for one in op.operands[1:3])
    chosen = w.bits(op.operands[3], "pred")
    w.put(op.operands[0], w.ir(f"select i1 {chosen}, {kind} {x}, {kind} {y}"), op.kind)


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
    for place, part in enumerate(parts):
        moved = w.ir(f"lshr i{bits} {value}, {place * one}")
        w.put(part, w.ir(f"trunc i{bits} {moved} to i{one}"), f"b{one}")


def _together(w: Writer, kind: str, target: str, parts: list[str]) -> None:
    bits, one = BITS[kind], BITS[kind] // len(parts)
    value = "0"
    for place, part in enumerate(parts):
        wide = w.ir(f"zext i{one} {w.bits(part, f'b{one}')} to i{bits}")
        value = w.ir(f"or i{bits} {value}, {w.ir(f'shl i{bits} {wide}, {place * one}')}")
    w.put(target, value, kind)


TABLE: Final[Mapping[str, Row]] = {
    "mov": Row(_mov),
    "setp": Row(_setp, " ".join([*_COMPARISONS, *(f"{one}u" for one in _COMPARISONS), "num nan ftz"])),
    "selp": Row(_selp),
}
