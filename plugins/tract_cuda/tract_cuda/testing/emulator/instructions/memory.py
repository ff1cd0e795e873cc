"""Reading and writing memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.machine.access import READ, WRITE
from tract_cuda.testing.emulator.types import BITS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, listed

_SPACES: Final = {"global": "global", "const": "global", "shared": "shared", "local": "local", "": "generic"}
_KNOWN: Final = (
    "v2 v4 v8 ca cg cs lu cv wb wt nc weak volatile relaxed acquire release cta cluster gpu sys "
    "global shared local param const "
    "L1::no_allocate L1::evict_last L1::evict_first L1::evict_normal L1::evict_unchanged "
    "L2::64B L2::128B L2::256B"
)
_OTHERS: Final = ("volatile", "relaxed", "acquire", "release")
"""Accesses that other threads may wait for."""


def space(op: Operation) -> str:
    """Where the memory is, as the machine calls it."""
    word = op.one_of(["global", "const", "shared", "local"])
    return _SPACES[word]


def reached(w: Writer, op: Operation, operand: str, count: int, kind: int) -> str:
    """The address on the host that an access may use, as a pointer."""
    found = w.machine(f"access_{space(op)}", w.address(operand), str(count), str(kind), str(w.line))
    return w.ir(f"inttoptr i64 {found} to ptr")


def _ld(w: Writer, op: Operation) -> None:
    kind = op.kind
    targets, one = listed(op.operands[0]), BITS[kind] // 8
    if op.has("param"):
        place = w.parameter(op.operands[1])
    else:
        if op.has(*_OTHERS):
            w.turn()
        place = reached(w, op, op.operands[1], one * len(targets), READ)
    for number, target in enumerate(targets):
        here = w.ir(f"getelementptr i8, ptr {place}, i64 {one * number}")
        value = w.ir(f"load i{8 * one}, ptr {here}, align 1")
        w.put(target, value, kind if kind[0] == "s" else f"b{8 * one}")


def _st(w: Writer, op: Operation) -> None:
    sources, one = listed(op.operands[1]), BITS[op.kind] // 8
    values = [w.bits(source, f"b{8 * one}") for source in sources]
    if op.has(*_OTHERS):
        w.turn()
    place = reached(w, op, op.operands[0], one * len(sources), WRITE)
    for number, value in enumerate(values):
        here = w.ir(f"getelementptr i8, ptr {place}, i64 {one * number}")
        w.do(f"store i{8 * one} {value}, ptr {here}, align 1")


def _cvta(w: Writer, op: Operation) -> None:
    value = w.bits(op.operands[1], op.kind)
    if op.has("shared"):
        base = w.ir(f"sub i64 {w.field('shared')}, 1024")
        value = w.ir(f"{'sub' if op.has('to') else 'add'} i64 {value}, {base}")
    w.put(op.operands[0], value, op.kind)


TABLE: Final[Mapping[str, Row]] = {
    "ld": Row(_ld, _KNOWN),
    "ldu": Row(_ld, _KNOWN),
    "st": Row(_st, _KNOWN),
    "cvta": Row(_cvta, "to global shared local const param"),
}
