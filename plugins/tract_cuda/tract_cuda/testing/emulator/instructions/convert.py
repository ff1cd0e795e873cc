"""Conversions between types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_cuda.testing.emulator.floats import MODES, PAIRS, finished, finished_bf16, flushed, half, narrowed, widened
from tract_cuda.testing.emulator.types import BITS, FLOATS
from tract_cuda.testing.emulator.writer import Operation, Row, Writer

_WHOLE: Final = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_FLOATING: Final = (*FLOATS, "bf16")
_EIGHTS: Final = {"e4m3x2": "e4m3", "e5m2x2": "e5m2"}


def _cvt(w: Writer, op: Operation) -> None:
    if op.has("pack"):
        _pack(w, op)
        return
    target, source = op.kinds[-2:]
    if target == "tf32":
        _tf32(w, op)
    elif target in PAIRS or target in _EIGHTS or source in _EIGHTS:
        _pair(w, op, target, source)
    else:
        w.put(op.operands[0], _one(w, op, target, source), target)


def _one(w: Writer, op: Operation, target: str, source: str) -> str:
    value = w.get(op.operands[1], source)
    if source not in _FLOATING and target not in _FLOATING:
        return _integers(w, op, value, target, source)
    if source not in _FLOATING:
        return _to_float(w, op, value, target, source)
    if target not in _FLOATING:
        return _to_integer(w, op, value, target, source)
    return _floats(w, op, value, target, source)


def _integers(w: Writer, op: Operation, value: str, target: str, source: str) -> str:
    have, want = BITS[source], BITS[target]
    if not op.has("sat"):
        return w.sized(value, have, want, signed=source[0] == "s")
    wide = w.sized(value, have, 128, signed=source[0] == "s")
    return w.sized(_clamped(w, wide, target), 128, want)


def _clamped(w: Writer, value: str, kind: str) -> str:
    """An i128 within the bounds of a type."""
    bits = BITS[kind]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    value = w.intrinsic("llvm.smax.i128", "i128", f"i128 {value}", f"i128 {low}")
    return w.intrinsic("llvm.smin.i128", "i128", f"i128 {value}", f"i128 {high}")


def _to_float(w: Writer, op: Operation, value: str, target: str, source: str) -> str:
    word, mode = "sitofp" if source[0] == "s" else "uitofp", op.one_of(MODES, "rn")
    if mode == "rn" and target in ("f32", "f64"):
        return w.ir(f"{word} i{BITS[source]} {value} to {FLOATS[target]}")
    if BITS[source] > 32 and target in ("f32", "f64"):
        raise op.unknown("integers of 64 bits are rounded to the nearest only")
    wide = w.ir(f"{word} i{BITS[source]} {value} to double")
    return _from_double(w, wide, target, mode)


def _from_double(w: Writer, value: str, target: str, mode: str) -> str:
    """A double rounded once."""
    if target == "f64":
        return value
    if target == "f32":
        if mode == "rn":
            return w.ir(f"fptrunc double {value} to float")
        return w.helper(f"directed_{mode}_float", f"double {value}", "double 0.0")
    odd = w.helper("narrow_odd", f"double {value}")
    return narrowed(w, odd, target, mode)


def _to_integer(w: Writer, op: Operation, value: str, target: str, source: str) -> str:
    """Rounded as the instruction says, and within the bounds of the type; what is no number is 0."""
    kind = FLOATS.get(source, "float")
    if source in FLOATS:
        value = flushed(w, op, value, kind)
    if source in ("f16", "bf16"):
        value, kind = widened(w, value, source), "float"
    whole = _made_whole(w, op.one_of([*_WHOLE], "rzi"), value, kind)
    suffix, bits, signed = "f64" if kind == "double" else "f32", BITS[target], "s" if target[0] == "s" else "u"
    return w.intrinsic(f"llvm.fpto{signed}i.sat.i{bits}.{suffix}", f"i{bits}", f"{kind} {whole}")


def _floats(w: Writer, op: Operation, value: str, target: str, source: str) -> str:
    mode = op.one_of(MODES, "rn")
    if source in FLOATS:
        value = flushed(w, op, value, FLOATS[source])
    number = widened(w, value, source)
    kind = "double" if source == "f64" else "float"
    whole = op.one_of([*_WHOLE])
    if whole:
        number = _made_whole(w, whole, number, kind)
    if kind == "double":
        found = _from_double(w, number, target, mode)
    elif target == "f64":
        found = w.ir(f"fpext float {number} to double")
    else:
        found = narrowed(w, number, target, mode)
    return finished_bf16(w, op, found) if target == "bf16" else finished(w, op, found, FLOATS[target])


def _made_whole(w: Writer, how: str, number: str, kind: str) -> str:
    """A number of a type of LLVM without its fraction."""
    return w.intrinsic(f"llvm.{_WHOLE[how]}.{'f64' if kind == 'double' else 'f32'}", kind, f"{kind} {number}")


def _tf32(w: Writer, op: Operation) -> None:
    """The bits of a float, of which the lowest 13 are rounded away: ties away from zero, or to even."""
    value = w.bits(op.operands[1], "b32")
    if op.has("relu", "satfinite"):
        raise op.unknown("it is rounded only")
    more = _more(w, op, value)
    number = w.ir(f"bitcast i32 {value} to float")
    finite = w.ir(f"fcmp one float {number}, 0x7FF0000000000000")
    ordered = w.two("and", 1, finite, w.ir(f"fcmp one float {number}, 0xFFF0000000000000"))
    cut = w.two("and", 32, more, str(-(1 << 13)))
    w.put(op.operands[0], w.ir(f"select i1 {ordered}, i32 {cut}, i32 {value}"), "b32")


def _more(w: Writer, op: Operation, value: str) -> str:
    """The bits from which the lowest 13 are cut."""
    if op.has("rna"):
        return w.two("add", 32, value, str(1 << 12))
    if op.has("rz"):
        return value
    even = w.two("and", 32, w.two("lshr", 32, value, "13"), "1")
    return w.two("add", 32, w.two("add", 32, value, str((1 << 12) - 1)), even)


def _pair(w: Writer, op: Operation, target: str, source: str) -> None:
    """Two numbers in one register: the first operand in its upper half."""
    if target in _EIGHTS:
        raise op.unknown("numbers of 8 bits are not known")
    if source in _EIGHTS:
        raise op.unknown("numbers of 8 bits are not known")
    kind, mode = PAIRS[target], op.one_of(MODES, "rn")
    found = "0"
    for operand, place in zip(op.operands[1:3], (16, 0), strict=True):
        value = w.get(operand, source)
        if op.has("relu"):
            value = w.helper("max_nan_float", f"float {value}", "float 0.0")
        if op.has("satfinite"):
            raise op.unknown("halves are not kept finite")
        narrow = half(w, value, mode) if kind == "f16" else narrowed(w, value, kind, mode)
        bits = w.ir(f"bitcast half {narrow} to i16") if kind == "f16" else narrow
        found = w.two("or", 32, found, w.two("shl", 32, w.ir(f"zext i16 {bits} to i32"), str(place)))
    w.put(op.operands[0], found, "b32")


def _pack(w: Writer, op: Operation) -> None:
    """Two integers within the bounds of a narrow type, in front of what a third operand has."""
    target, source = op.kinds[0], op.kinds[1]
    bits = BITS[target]
    values = [w.sized(w.bits(one, source), 32, 128, signed=True) for one in op.operands[1:3]]
    first, second = (w.sized(w.sized(_clamped(w, one, target), 128, bits), bits, 32) for one in values)
    found = w.two("or", 32, w.two("shl", 32, first, str(bits)), second)
    for operand in op.operands[3:]:
        rest = w.two("shl", 32, w.bits(operand, "b32"), 2 * bits)
        found = w.two("or", 32, found, rest)
    w.put(op.operands[0], found, "b32")


TABLE: Final[Mapping[str, Row]] = {
    "cvt": Row(_cvt, f"rn rz rm rp rna {' '.join(_WHOLE)} ftz sat relu satfinite pack"),
}
