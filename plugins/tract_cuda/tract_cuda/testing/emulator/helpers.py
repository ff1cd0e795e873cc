"""Functions in the text of LLVM that instructions are made of; each kernel brings those that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.frozen import frozen


@frozen
class Helper:
    """``result``: its type; ``arguments``: as declared; ``body``: blocks of LLVM. ``needs``: others that it calls.

    ``declares``: functions of elsewhere that it calls.
    """

    result: str
    arguments: str
    body: str
    needs: tuple[str, ...] = ()
    declares: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """The whole function."""
        return f"define internal {self.result} @{name}({self.arguments}) alwaysinline {{\n{self.body}\n}}\n"


_BITS: Final = {"half": 16, "float": 32, "double": 64}
_FRACTION: Final = {"half": 10, "float": 23, "double": 52}


def _flush(kind: str) -> Helper:
    """Zero, with its sign, for numbers below all normal ones."""
    bits, fraction = _BITS[kind], _FRACTION[kind]
    sign = -(1 << bits - 1)
    exponent = (1 << bits - 1) - (1 << fraction)
    return Helper(
        kind,
        f"{kind} %x",
        f"""  %b = bitcast {kind} %x to i{bits}
  %e = and i{bits} %b, {exponent}
  %z = icmp eq i{bits} %e, 0
  %s = and i{bits} %b, {sign}
  %r = select i1 %z, i{bits} %s, i{bits} %b
  %f = bitcast i{bits} %r to {kind}
  ret {kind} %f""",
    )


def _extreme(kind: str, *, largest: bool, spreads: bool) -> Helper:
    """The smaller or larger of two numbers, of zeros too. ``spreads``: not-a-number, where one is that."""
    bits = _BITS[kind]
    nan = (1 << bits - 1) - 1
    word = "and" if largest else "or"
    other = (f"i{bits} {nan}", f"i{bits} {nan}") if spreads else (f"i{bits} %bi", f"i{bits} %ai")
    return Helper(
        kind,
        f"{kind} %a, {kind} %b",
        f"""  %ai = bitcast {kind} %a to i{bits}
  %bi = bitcast {kind} %b to i{bits}
  %first = fcmp {"ogt" if largest else "olt"} {kind} %a, %b
  %same = fcmp oeq {kind} %a, %b
  %an = fcmp uno {kind} %a, %a
  %bn = fcmp uno {kind} %b, %b
  %both = and i1 %an, %bn
  %m = {word} i{bits} %ai, %bi
  %r0 = select i1 %first, i{bits} %ai, i{bits} %bi
  %r1 = select i1 %same, i{bits} %m, i{bits} %r0
  %r2 = select i1 %an, {other[0]}, i{bits} %r1
  %r3 = select i1 %bn, {other[1]}, i{bits} %r2
  %r4 = select i1 %both, i{bits} {nan}, i{bits} %r3
  %f = bitcast i{bits} %r4 to {kind}
  ret {kind} %f""",
    )


_SATURATED: Final = """  %low = fcmp ogt {kind} %x, 0.0
  %a = select i1 %low, {kind} %x, {kind} 0.0
  %high = fcmp olt {kind} %a, 1.0
  %b = select i1 %high, {kind} %a, {kind} 1.0
  ret {kind} %b"""


def _stepped(kind: str, mode: str) -> str:
    """Of a number %f, whether what it stands for is %below or %above it, and the one rounded by the mode."""
    bits = _BITS[kind]
    chosen = {
        "rm": ("%down = and i1 %above, true", "%up = and i1 false, false"),
        "rp": ("%down = and i1 false, false", "%up = and i1 %below, true"),
        "rz": ("%down = and i1 %above, %positive", "%up = and i1 %below, %negative"),
    }[mode]
    return f"""  %positive = fcmp ogt {kind} %f, 0.0
  %negative = fcmp olt {kind} %f, 0.0
  %zero = fcmp oeq {kind} %f, 0.0
  {chosen[0]}
  {chosen[1]}
  %i = bitcast {kind} %f to i{bits}
  %more = add i{bits} %i, 1
  %less = sub i{bits} %i, 1
  %down0 = select i1 %negative, i{bits} %more, i{bits} %less
  %down1 = select i1 %zero, i{bits} {-(1 << bits - 1) + 1}, i{bits} %down0
  %up0 = select i1 %negative, i{bits} %less, i{bits} %more
  %up1 = select i1 %zero, i{bits} 1, i{bits} %up0
  %r0 = select i1 %down, i{bits} %down1, i{bits} %i
  %r1 = select i1 %up, i{bits} %up1, i{bits} %r0
  %r = bitcast i{bits} %r1 to {kind}
  ret {kind} %r"""


def _directed32(mode: str) -> Helper:
    """A double, and whether what it stands for is a bit more or less, as a float."""
    return Helper(
        "float",
        "double %hi, double %err",
        f"""  %f = fptrunc double %hi to float
  %g = fpext float %f to double
  %lt = fcmp olt double %g, %hi
  %gt = fcmp ogt double %g, %hi
  %eq = fcmp oeq double %g, %hi
  %ep = fcmp ogt double %err, 0.0
  %en = fcmp olt double %err, 0.0
  %b0 = and i1 %eq, %ep
  %a0 = and i1 %eq, %en
  %below = or i1 %lt, %b0
  %above = or i1 %gt, %a0
{_stepped("float", mode)}""",
    )


def _directed64(mode: str) -> Helper:
    return Helper(
        "double",
        "double %f, double %err",
        f"""  %below = fcmp ogt double %err, 0.0
  %above = fcmp olt double %err, 0.0
{_stepped("double", mode)}""",
    )


def _odd(wide: str) -> str:
    """Text: the integer %name.i of a number, moved towards what it stands for where it is even and not exact."""
    bits = _BITS[wide]
    return f"""  %{wide}.i = bitcast {wide} %{wide} to i{bits}
  %{wide}.last = trunc i{bits} %{wide}.i to i1
  %{wide}.even = xor i1 %{wide}.last, true
  %{wide}.pos = fcmp ogt {wide} %{wide}, 0.0
  %{wide}.away = icmp eq i1 %{wide}.pos, %{wide}.more
  %{wide}.step = select i1 %{wide}.away, i{bits} 1, i{bits} -1
  %{wide}.moved = add i{bits} %{wide}.i, %{wide}.step
  %{wide}.does = and i1 %{wide}.even, %{wide}.inexact
  %{wide}.r = select i1 %{wide}.does, i{bits} %{wide}.moved, i{bits} %{wide}.i
  %{wide}.f = bitcast i{bits} %{wide}.r to {wide}"""


_NARROW_TO_ODD: Final = f"""  %float = fptrunc double %d to float
  %back = fpext float %float to double
  %float.inexact = fcmp one double %back, %d
  %float.more = fcmp ogt double %d, %back
{_odd("float")}
  ret float %float.f"""

_FMA_ODD: Final = f"""  %p = fmul double %a, %b
  %double = fadd double %p, %c
  %bb = fsub double %double, %p
  %e1 = fsub double %double, %bb
  %e2 = fsub double %p, %e1
  %e3 = fsub double %c, %bb
  %err = fadd double %e2, %e3
  %double.inexact = fcmp one double %err, 0.0
  %double.more = fcmp ogt double %err, 0.0
{_odd("double")}
  %n = call float @narrow_odd(double %double.f)
  ret float %n"""

_BF16: Final = """  %i = bitcast float %x to i32
  %l0 = lshr i32 %i, 16
  %l1 = and i32 %l0, 1
  %l2 = add i32 %l1, 32767
  %s = add i32 %i, %l2
  %nan = fcmp uno float %x, %x
  %r0 = lshr i32 %s, 16
  %r1 = select i1 %nan, i32 32767, i32 %r0
  %r = trunc i32 %r1 to i16
  ret i16 %r"""

_BF16_RZ: Final = """  %i = bitcast float %x to i32
  %nan = fcmp uno float %x, %x
  %r0 = lshr i32 %i, 16
  %r1 = select i1 %nan, i32 32767, i32 %r0
  %r = trunc i32 %r1 to i16
  ret i16 %r"""

_PERTURB: Final = """  %i = bitcast double %x to i64
  %m0 = add i64 %seed, -7046029254386353131
  %m1 = xor i64 %i, %m0
  %m2 = mul i64 %m1, -4658895280553007687
  %m3 = lshr i64 %m2, 29
  %m4 = xor i64 %m2, %m3
  %m5 = mul i64 %m4, -7723592293110705685
  %m6 = ashr i64 %m5, 11
  %u0 = sitofp i64 %m6 to double
  %u = fmul double %u0, 0x3CB0000000000000
  %d0 = fmul double %u, %relative
  %d1 = fmul double %d0, %x
  %d2 = fmul double %u, %absolute
  %d3 = fadd double %d1, %d2
  %r0 = fadd double %x, %d3
  %fin0 = call double @llvm.fabs.f64(double %x)
  %fin = fcmp olt double %fin0, 0x7FF0000000000000
  %r = select i1 %fin, double %r0, double %x
  ret double %r"""

HELPERS: Final[Mapping[str, Helper]] = {
    **{f"flush_{kind}": _flush(kind) for kind in _BITS},
    **{f"saturated_{kind}": Helper(kind, f"{kind} %x", _SATURATED.format(kind=kind)) for kind in _BITS},
    **{
        f"{'max' if largest else 'min'}_{'nan_' if spreads else ''}{kind}": _extreme(
            kind, largest=largest, spreads=spreads
        )
        for kind in _BITS
        for largest in (False, True)
        for spreads in (False, True)
    },
    **{f"directed_{mode}_float": _directed32(mode) for mode in ("rz", "rm", "rp")},
    **{f"directed_{mode}_double": _directed64(mode) for mode in ("rz", "rm", "rp")},
    "narrow_odd": Helper("float", "double %d", _NARROW_TO_ODD),
    "fma_odd": Helper("float", "double %a, double %b, double %c", _FMA_ODD, needs=("narrow_odd",)),
    "bf16_rn": Helper("i16", "float %x", _BF16),
    "bf16_rz": Helper("i16", "float %x", _BF16_RZ),
    "off": Helper(
        "double",
        "double %x, double %relative, double %absolute, i64 %seed",
        _PERTURB,
        declares=("declare double @llvm.fabs.f64(double)",),
    ),
}
"""``off``: a number as far off as bounds allow, somehow: by a hash of itself and a seed."""
