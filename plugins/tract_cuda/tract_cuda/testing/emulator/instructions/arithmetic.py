"""Arithmetic of integers and of floats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.types import BITS, FLOATS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, ir_of

_INTEGERS: Final = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "mul": "mul"}
_FLOATS: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def _two(w: Writer, op: Operation) -> None:
    kind = op.kind
    name = op.statement.opcode
    x, y = (w.get(one, kind) for one in op.operands[1:3])
    word = _FLOATS[name] if kind in FLOATS else _INTEGERS.get(name) or f"{'s' if kind[0] == 's' else 'u'}{name}"
    w.put(op.operands[0], w.ir(f"{word} {ir_of(kind)} {x}, {y}"), kind)


def _wide(w: Writer, op: Operation) -> tuple[str, str]:
    """The whole product, and its type."""
    kind = op.kind
    bits = BITS[kind]
    x, y = (w.sized(w.get(one, kind), bits, 2 * bits, signed=kind[0] == "s") for one in op.operands[1:3])
    return w.ir(f"mul i{2 * bits} {x}, {y}"), f"{kind[0]}{2 * bits}"


def _mul(w: Writer, op: Operation) -> None:
    if op.has("wide"):
        value, kind = _wide(w, op)
        w.put(op.operands[0], value, kind)
    elif op.has("hi"):
        value, _ = _wide(w, op)
        bits = BITS[op.kind]
        high = w.ir(f"lshr i{2 * bits} {value}, {bits}")
        w.put(op.operands[0], w.ir(f"trunc i{2 * bits} {high} to i{bits}"), op.kind)
    else:
        _two(w, op)


def _mad(w: Writer, op: Operation) -> None:
    kind = op.kind
    if op.has("wide"):
        value, kind = _wide(w, op)
    else:
        x, y = (w.get(one, kind) for one in op.operands[1:3])
        value = w.ir(f"mul i{BITS[kind]} {x}, {y}")
    w.put(op.operands[0], w.ir(f"add i{BITS[kind]} {value}, {w.get(op.operands[3], kind)}"), kind)


def _fma(w: Writer, op: Operation) -> None:
    kind = op.kind
    x, y, z = (f"{FLOATS[kind]} {w.get(one, kind)}" for one in op.operands[1:4])
    w.put(op.operands[0], w.intrinsic(f"llvm.fma.{kind}", FLOATS[kind], x, y, z), kind)


TABLE: Final[Mapping[str, Row]] = {
    **{name: Row(_two, "rn ftz") for name in ("add", "sub", "div", "rem", "and", "or", "xor")},
    "mul": Row(_mul, "rn ftz lo hi wide"),
    "mad": Row(_mad, "lo wide"),
    "fma": Row(_fma, "rn ftz"),
}
