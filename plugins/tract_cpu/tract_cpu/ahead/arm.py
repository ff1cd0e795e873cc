"""What LLVM calls on 32-bit ARM, where no instruction does it: objects have it themselves, under the names of the ABI.

Division of 64-bit integers, which kernels do once for a task or a row, goes bit by bit from the first one of the
quotient on: most quotients are small. Conversions between these and floats go by way of the two halves, and round once.

Source: "Run-time ABI for the Arm Architecture", 4.3.1 and 4.1.2: results of divisions are pairs in registers, and
floats are passed as integers are.
"""

from __future__ import annotations

from typing import Final

ARM: Final = "arm"
"""The architecture, as LLVM calls it."""

_DIVISION: Final = """
define arm_aapcscc {i64, i64} @__aeabi_uldivmod(i64 %a, i64 %b) nounwind {
  %less = icmp ult i64 %a, %b
  br i1 %less, label %none, label %some
none:
  %zero = insertvalue {i64, i64} zeroinitializer, i64 %a, 1
  ret {i64, i64} %zero
some:
  %zeros.a = call i64 @llvm.ctlz.i64(i64 %a, i1 false)
  %zeros.b = call i64 @llvm.ctlz.i64(i64 %b, i1 false)
  %places = sub i64 %zeros.b, %zeros.a
  %first = shl i64 %b, %places
  br label %bit
bit:
  %place = phi i64 [%places, %some], [%next, %bit]
  %rest = phi i64 [%a, %some], [%left, %bit]
  %part = phi i64 [%first, %some], [%half, %bit]
  %quotient = phi i64 [0, %some], [%found, %bit]
  %fits = icmp uge i64 %rest, %part
  %less.part = sub i64 %rest, %part
  %left = select i1 %fits, i64 %less.part, i64 %rest
  %double = shl i64 %quotient, 1
  %one = zext i1 %fits to i64
  %found = or i64 %double, %one
  %half = lshr i64 %part, 1
  %next = sub i64 %place, 1
  %last = icmp eq i64 %place, 0
  br i1 %last, label %done, label %bit
done:
  %with.quotient = insertvalue {i64, i64} zeroinitializer, i64 %found, 0
  %both = insertvalue {i64, i64} %with.quotient, i64 %left, 1
  ret {i64, i64} %both
}
define arm_aapcscc {i64, i64} @__aeabi_ldivmod(i64 %a, i64 %b) nounwind {
  %size.a = call i64 @llvm.abs.i64(i64 %a, i1 false)
  %size.b = call i64 @llvm.abs.i64(i64 %b, i1 false)
  %sizes = call arm_aapcscc {i64, i64} @__aeabi_uldivmod(i64 %size.a, i64 %size.b)
  %quotient = extractvalue {i64, i64} %sizes, 0
  %rest = extractvalue {i64, i64} %sizes, 1
  %sign.a = ashr i64 %a, 63
  %sign.b = ashr i64 %b, 63
  %sign = xor i64 %sign.a, %sign.b
  %turned = xor i64 %quotient, %sign
  %first = sub i64 %turned, %sign
  %turned.rest = xor i64 %rest, %sign.a
  %second = sub i64 %turned.rest, %sign.a
  %with.quotient = insertvalue {i64, i64} zeroinitializer, i64 %first, 0
  %both = insertvalue {i64, i64} %with.quotient, i64 %second, 1
  ret {i64, i64} %both
}
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.abs.i64(i64, i1)
"""


def _divides(prefix: str, extends: str) -> str:
    """Division of 32-bit integers: of the quotient alone, and with the remainder."""
    name = f"__aeabi_{prefix}idiv"
    wide = f"""
  %wide.a = {extends} i32 %a to i64
  %wide.b = {extends} i32 %b to i64
  %both = call arm_aapcscc {{i64, i64}} @__aeabi_{prefix}ldivmod(i64 %wide.a, i64 %wide.b)
  %wide.quotient = extractvalue {{i64, i64}} %both, 0
  %quotient = trunc i64 %wide.quotient to i32"""
    return f"""
define arm_aapcscc i32 @{name}(i32 %a, i32 %b) nounwind {{{wide}
  ret i32 %quotient
}}
define arm_aapcscc {{i32, i32}} @{name}mod(i32 %a, i32 %b) nounwind {{{wide}
  %wide.rest = extractvalue {{i64, i64}} %both, 1
  %rest = trunc i64 %wide.rest to i32
  %with.quotient = insertvalue {{i32, i32}} zeroinitializer, i32 %quotient, 0
  %found = insertvalue {{i32, i32}} %with.quotient, i32 %rest, 1
  ret {{i32, i32}} %found
}}
"""


def _from_integer(prefix: str, kind: str, shift: str, odd: str) -> str:
    """Integers of 64 bits as floats. ``odd``: whether one has more digits than an f64."""
    return f"""
define arm_aapcscc double @__aeabi_{prefix}l2d(i64 %x) nounwind {{
  %upper = {shift} i64 %x, 32
  %high = trunc i64 %upper to i32
  %low = trunc i64 %x to i32
  %high.float = {kind}tofp i32 %high to double
  %low.float = uitofp i32 %low to double
  %far = fmul double %high.float, 0x41F0000000000000
  %sum = fadd double %far, %low.float
  ret double %sum
}}
define arm_aapcscc float @__aeabi_{prefix}l2f(i64 %x) nounwind {{
{odd}
  %last = and i64 %x, 2047
  %carried = add i64 %last, 2047
  %joined = or i64 %x, %carried
  %odd = and i64 %joined, -2048
  %exact = select i1 %long, i64 %odd, i64 %x
  %wide = call arm_aapcscc double @__aeabi_{prefix}l2d(i64 %exact)
  %found = fptrunc double %wide to float
  ret float %found
}}
"""


_TO_INTEGER: Final = """
define arm_aapcscc i64 @__aeabi_d2ulz(double %x) nounwind {
  %far = fmul double %x, 0x3DF0000000000000
  %high = fptoui double %far to i32
  %high.float = uitofp i32 %high to double
  %much = fmul double %high.float, 0x41F0000000000000
  %rest = fsub double %x, %much
  %low = fptoui double %rest to i32
  %upper = zext i32 %high to i64
  %lower = zext i32 %low to i64
  %shifted = shl i64 %upper, 32
  %found = or i64 %shifted, %lower
  ret i64 %found
}
define arm_aapcscc i64 @__aeabi_d2lz(double %x) nounwind {
  %size = call double @llvm.fabs.f64(double %x)
  %found = call arm_aapcscc i64 @__aeabi_d2ulz(double %size)
  %negative = fcmp olt double %x, 0.0
  %other = sub i64 0, %found
  %signed = select i1 %negative, i64 %other, i64 %found
  ret i64 %signed
}
define arm_aapcscc i64 @__aeabi_f2ulz(float %x) nounwind {
  %wide = fpext float %x to double
  %found = call arm_aapcscc i64 @__aeabi_d2ulz(double %wide)
  ret i64 %found
}
define arm_aapcscc i64 @__aeabi_f2lz(float %x) nounwind {
  %wide = fpext float %x to double
  %found = call arm_aapcscc i64 @__aeabi_d2lz(double %wide)
  ret i64 %found
}
declare double @llvm.fabs.f64(double)
"""

_LONG: Final = "  %long = icmp uge i64 %x, 9007199254740992"
_LONG_OF_SIGNED: Final = "  %up = add i64 %x, 9007199254740992\n  %long = icmp ugt i64 %up, 18014398509481984"

FUNCTIONS: Final = "".join(
    (
        _DIVISION,
        _divides("u", "zext"),
        _divides("", "sext"),
        _from_integer("u", "ui", "lshr", _LONG),
        _from_integer("", "si", "ashr", _LONG_OF_SIGNED),
        _TO_INTEGER,
    )
)
"""A module of LLVM with all of them."""
