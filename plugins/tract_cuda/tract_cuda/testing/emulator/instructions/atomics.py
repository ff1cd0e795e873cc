"""Reading, changing and writing memory in one step, and what orders accesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.floats import NARROW, PAIRS, narrowed, part, widened
from tract_cuda.testing.emulator.instructions.memory import reached
from tract_cuda.testing.emulator.machine.access import ATOMIC, READ, WRITE
from tract_cuda.testing.emulator.types import BITS, FLOATS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer, listed

_KINDS: Final = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_KNOWN: Final = f"{' '.join(_KINDS)} noftz relaxed acquire release acq_rel cta cluster gpu sys global shared v2 v4"
_WHOLE: Final = {"add": "add", "and": "and", "or": "or", "xor": "xor"}


def _atom(w: Writer, op: Operation) -> None:
    _changed(w, op, listed(op.operands[0]), op.operands[1], [*op.operands[2:]])


def _red(w: Writer, op: Operation) -> None:
    targets = ["_"] * len(listed(op.operands[1]))
    _changed(w, op, targets, op.operands[0], [*op.operands[1:]])


def _changed(w: Writer, op: Operation, targets: list[str], where: str, operands: list[str]) -> None:
    """Others may go in between before, and nobody while it is done: threads go on one at a time."""
    kind, bits = op.kind, BITS[op.kind]
    w.turn()
    place = reached(w, op, where, bits // 8 * len(targets), READ | WRITE | ATOMIC)
    values = [[w.bits(one, kind) for one in listed(operand)] for operand in operands]
    for number, target in enumerate(targets):
        here = w.ir(f"getelementptr i8, ptr {place}, i64 {bits // 8 * number}")
        before = w.ir(f"load i{bits}, ptr {here}, align 1")
        after = _after(w, op, before, [one[number] for one in values])
        w.do(f"store i{bits} {after}, ptr {here}, align 1")
        w.put(target, before, kind if kind[0] == "s" else f"b{bits}")


def _after(w: Writer, op: Operation, before: str, values: list[str]) -> str:
    """What the memory holds then."""
    how, kind, bits = op.one_of(_KINDS), op.kind, BITS[op.kind]
    if how == "exch":
        return values[0]
    if how == "cas":
        same = w.ir(f"icmp eq i{bits} {before}, {values[0]}")
        return w.ir(f"select i1 {same}, i{bits} {values[1]}, i{bits} {before}")
    if how in ("inc", "dec"):
        return _wrapped(w, how, bits, before, values[0])
    if kind in PAIRS:
        return _in_halves(w, how, kind, before, values[0])
    if kind in (*FLOATS, *NARROW):
        return _floating(w, how, kind, before, values[0])
    if how in _WHOLE:
        return w.two(_WHOLE[how], bits, before, values[0])
    sign = "s" if kind[0] == "s" else "u"
    return w.intrinsic(f"llvm.{sign}{how}.i{bits}", f"i{bits}", f"i{bits} {before}", f"i{bits} {values[0]}")


def _wrapped(w: Writer, how: str, bits: int, before: str, bound: str) -> str:
    """One more, and 0 after the bound; or one less, and the bound after 0."""
    beyond = w.ir(f"icmp uge i{bits} {before}, {bound}")
    if how == "inc":
        return w.ir(f"select i1 {beyond}, i{bits} 0, i{bits} {w.two('add', bits, before, '1')}")
    above = w.ir(f"icmp ugt i{bits} {before}, {bound}")
    wraps = w.two("or", 1, above, w.ir(f"icmp eq i{bits} {before}, 0"))
    return w.ir(f"select i1 {wraps}, i{bits} {bound}, i{bits} {w.two('sub', bits, before, '1')}")


def _floating(w: Writer, how: str, kind: str, before: str, value: str) -> str:
    """Of the bits of two floats."""
    x, y = before, value
    if kind in FLOATS:
        x, y = (w.ir(f"bitcast i{BITS[kind]} {one} to {FLOATS[kind]}") for one in (x, y))
    wide = FLOATS.get(kind, "float") if kind not in NARROW else "float"
    x, y = (widened(w, one, kind) for one in (x, y))
    both = f"{wide} {x}", f"{wide} {y}"
    found = w.ir(f"fadd {wide} {x}, {y}") if how == "add" else w.helper(f"{how}_{wide}", *both)
    found = narrowed(w, found, kind)
    return w.ir(f"bitcast {FLOATS[kind]} {found} to i{BITS[kind]}") if kind in FLOATS else found


def _in_halves(w: Writer, how: str, kind: str, before: str, value: str) -> str:
    found = "0"
    for place in (0, 16):
        one = [part(w, word, place, "bf16") for word in (before, value)]
        after = _floating(w, how, PAIRS[kind], *one)
        found = w.two("or", 32, found, w.two("shl", 32, w.ir(f"zext i16 {after} to i32"), str(place)))
    return found


def _nothing(w: Writer, op: Operation) -> None:
    """All that is written is seen at once here."""


def _pause(w: Writer, op: Operation) -> None:
    w.turn()


_ORDERS: Final = (
    "sc acq_rel acquire release cta cluster gpu sys gl proxy async alias global shared generic mbarrier_init"
)
_HINTS: Final = (
    "global L1 L2 L2::128B L2::64B L2::256B evict_last evict_normal L2::evict_last L2::evict_normal tensormap"
)

TABLE: Final[Mapping[str, Row]] = {
    "atom": Row(_atom, _KNOWN),
    "red": Row(_red, _KNOWN),
    "fence": Row(_nothing, _ORDERS + " shared::cta shared::cluster sync_restrict"),
    "membar": Row(_nothing, _ORDERS),
    "prefetch": Row(_nothing, _HINTS),
    "prefetchu": Row(_nothing, _HINTS),
    "applypriority": Row(_nothing, _HINTS),
    "griddepcontrol": Row(_nothing, "wait launch_dependents"),
    "setmaxnreg": Row(_nothing, "inc dec sync aligned"),
    "nanosleep": Row(_pause),
}
