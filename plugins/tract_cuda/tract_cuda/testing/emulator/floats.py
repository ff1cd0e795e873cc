"""Arithmetic of floats as PTX has it: rounding modes, flushed numbers, saturation, and halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tract_cuda.testing.emulator.types import FLOATS
from tract_cuda.testing.emulator.writer import Operation, Writer

MODES: Final = ("rz", "rm", "rp")
NARROW: Final = ("f16", "bf16")
PAIRS: Final = {"f16x2": "f16", "bf16x2": "bf16"}
ALL: Final = (*FLOATS, "bf16", *PAIRS)


def wide_of(kind: str) -> str:
    """The type in which LLVM computes with a type: halves as floats."""
    return "float" if kind in NARROW else FLOATS[kind]


def widened(w: Writer, value: str, kind: str) -> str:
    """A value, as `Writer.get` gives it, as that type."""
    if kind == "f16":
        return w.ir(f"fpext half {value} to float")
    if kind == "bf16":
        moved = w.two("shl", 32, w.ir(f"zext i16 {value} to i32"), "16")
        return w.ir(f"bitcast i32 {moved} to float")
    return value


def narrowed(w: Writer, value: str, kind: str, mode: str = "rn") -> str:
    """A number of that type as `Writer.put` takes it."""
    if kind == "f16":
        return half(w, value, mode)
    if kind == "bf16":
        return w.helper("bf16_rz" if mode == "rz" else "bf16_rn", f"float {value}")
    return value


def half(w: Writer, value: str, mode: str) -> str:
    """A float as a half, towards zero where the mode says so: what was cut off first is gone then."""
    if mode == "rz":
        bits = w.ir(f"bitcast float {value} to i32")
        cut = w.two("and", 32, bits, str(-(1 << 13)))
        normal = w.ir(f"bitcast i32 {cut} to float")
        size = w.intrinsic("llvm.fabs.f32", "float", f"float {value}")
        small = w.ir(f"fcmp olt float {size}, 0x3F10000000000000")
        finite = w.ir(f"fcmp olt float {size}, 0x7FF0000000000000")
        scaled = w.intrinsic("llvm.trunc.f32", "float", f"float {w.ir(f'fmul float {value}, 16777216.0')}")
        below = w.ir(f"fmul float {scaled}, 0x3E70000000000000")
        chosen = w.ir(f"select i1 {small}, float {below}, float {normal}")
        over = w.ir(f"fcmp ogt float {size}, 65504.0")
        most = w.intrinsic("llvm.copysign.f32", "float", "float 65504.0", f"float {value}")
        capped = w.ir(f"select i1 {over}, float {most}, float {chosen}")
        value = w.ir(f"select i1 {finite}, float {capped}, float {value}")
    elif mode != "rn":
        raise ValueError(mode)
    return w.ir(f"fptrunc float {value} to half")


def each(w: Writer, op: Operation, kind: str, operands: list[str], compute: Callable[[str, list[str]], str]) -> None:
    """Put what is computed of operands, or of both halves of each: with their type, and as `Writer.get` gives them."""
    if kind not in PAIRS:
        w.put(op.operands[0], compute(kind, [w.get(one, kind) for one in operands]), kind)
        return
    one = PAIRS[kind]
    found = "0"
    words = [w.bits(operand, kind) for operand in operands]
    for place in (0, 16):
        parts = [part(w, word, place, one) for word in words]
        result = compute(one, parts)
        bits = w.ir(f"bitcast half {result} to i16") if one == "f16" else result
        found = w.two("or", 32, found, w.two("shl", 32, w.ir(f"zext i16 {bits} to i32"), str(place)))
    w.put(op.operands[0], found, "b32")


def part(w: Writer, word: str, place: int, kind: str) -> str:
    """Half of a word, as `Writer.get` gives one."""
    bits = w.ir(f"trunc i32 {w.two('lshr', 32, word, str(place))} to i16")
    return w.ir(f"bitcast i16 {bits} to half") if kind == "f16" else bits


def flushed(w: Writer, op: Operation, value: str, kind: str) -> str:
    """Zero where the instruction flushes and the number is no normal one."""
    return w.helper(f"flush_{kind}", f"{kind} {value}") if op.has("ftz") else value


def finished(w: Writer, op: Operation, value: str, kind: str) -> str:
    """A result, flushed and saturated where the instruction says so. ``kind``: LLVM's."""
    value = flushed(w, op, value, kind)
    if op.has("sat"):
        value = w.helper(f"saturated_{kind}", f"{kind} {value}")
    if op.has("relu"):
        value = w.helper(f"max_nan_{kind}", f"{kind} {value}", f"{kind} 0.0")
    return value


def finished_bf16(w: Writer, op: Operation, value: str) -> str:
    """The same of a bf16, as its bits."""
    if not op.has("sat", "relu"):
        return value
    return narrowed(w, finished(w, op, widened(w, value, "bf16"), "float"), "bf16")


def arithmetic(w: Writer, op: Operation, kind: str, name: str, values: list[str]) -> str:
    """``add``, ``sub``, ``mul``, ``div``, ``fma``, ``sqrt`` of values, rounded once."""
    wide = wide_of(kind)
    mode = op.one_of(MODES, "rn")
    given = [flushed(w, op, one, FLOATS[kind]) if kind in FLOATS else one for one in values]
    numbers = [widened(w, one, kind) for one in given]
    if name == "fma" and kind in NARROW:
        doubles = [f"double {w.ir(f'fpext float {one} to double')}" for one in numbers]
        found = w.helper("fma_odd", *doubles)
    elif mode == "rn" or kind in NARROW:
        found = _nearest(w, name, wide, numbers)
    else:
        found = _directed(w, op, name, numbers, wide)
    if kind in NARROW:
        value = narrowed(w, found, kind, mode)
        return finished(w, op, value, "half") if kind == "f16" else finished_bf16(w, op, value)
    return finished(w, op, found, wide)


_SUFFIX: Final = {"half": "f16", "float": "f32", "double": "f64"}


def _nearest(w: Writer, name: str, kind: str, values: list[str]) -> str:
    if name in ("fma", "sqrt"):
        return w.intrinsic(f"llvm.{name}.{_SUFFIX[kind]}", kind, *(f"{kind} {one}" for one in values))
    return w.ir(f"f{name} {kind} {values[0]}, {values[1]}")


def _directed(w: Writer, op: Operation, name: str, values: list[str], kind: str) -> str:
    """By way of doubles, and the sign of what these are off."""
    mode = op.one_of(MODES)
    if kind == "double" and name == "fma":
        raise op.unknown("fma.f64 is rounded to the nearest only")
    doubles = values if kind == "double" else [w.ir(f"fpext float {one} to double") for one in values]
    high, error = _EXACT[name](w, *doubles)
    return w.helper(f"directed_{mode}_{kind}", f"double {high}", f"double {error}")


def _exact_sum(w: Writer, a: str, b: str) -> tuple[str, str]:
    high = w.ir(f"fadd double {a}, {b}")
    of_b = w.ir(f"fsub double {high}, {a}")
    of_a = w.ir(f"fsub double {high}, {of_b}")
    left, right = w.ir(f"fsub double {a}, {of_a}"), w.ir(f"fsub double {b}, {of_b}")
    return high, w.ir(f"fadd double {left}, {right}")


def _exact_difference(w: Writer, a: str, b: str) -> tuple[str, str]:
    return _exact_sum(w, a, w.ir(f"fneg double {b}"))


def _fused(w: Writer, a: str, b: str, c: str) -> str:
    return w.intrinsic("llvm.fma.f64", "double", f"double {a}", f"double {b}", f"double {c}")


def _exact_product(w: Writer, a: str, b: str) -> tuple[str, str]:
    high = w.ir(f"fmul double {a}, {b}")
    return high, _fused(w, a, b, w.ir(f"fneg double {high}"))


def _exact_fma(w: Writer, a: str, b: str, c: str) -> tuple[str, str]:
    """Of floats: their product is a double."""
    return _exact_sum(w, w.ir(f"fmul double {a}, {b}"), c)


def _exact_quotient(w: Writer, a: str, b: str) -> tuple[str, str]:
    high = w.ir(f"fdiv double {a}, {b}")
    rest = _fused(w, w.ir(f"fneg double {high}"), b, a)
    return high, w.ir(f"fdiv double {rest}, {b}")


def _exact_root(w: Writer, a: str) -> tuple[str, str]:
    high = w.intrinsic("llvm.sqrt.f64", "double", f"double {a}")
    return high, _fused(w, w.ir(f"fneg double {high}"), high, a)


_EXACT: Final[dict[str, Callable[..., tuple[str, str]]]] = {
    "add": _exact_sum,
    "sub": _exact_difference,
    "mul": _exact_product,
    "fma": _exact_fma,
    "div": _exact_quotient,
    "sqrt": _exact_root,
}


def approximate(w: Writer, value: str, relative: float, absolute: float = 0.0) -> str:
    """A double, as far off as bounds allow, somehow, as a float: both bounds leave room for rounding it."""
    seed = w.seed()
    bounds = (w.double(relative), w.double(absolute))
    found = w.helper("off", f"double {value}", *(f"double {one}" for one in bounds), f"i64 {seed}")
    return w.ir(f"fptrunc double {found} to float")
