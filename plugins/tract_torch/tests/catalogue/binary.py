"""Operators on two tensors, element by element, of PyTorch in the catalogue."""

from __future__ import annotations

import torch

from catalogue.entry import Entry, signed, two

PAIRS = ("S,1,24,f32:edges", "24,1,f32:edges")
LONGS = ("S,1,9,i64:whole edges", "9,1,i64:whole edges")
NONZERO = ("S,3,i64", "1,3,i64:nonzero")
MODES = (None, "floor", "trunc")


def _divided(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(torch.div(a, b, rounding_mode=mode) for mode in MODES)


def _whole_quotients(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    modes = [torch.div(a, b, rounding_mode=mode) for mode in ("floor", "trunc")]
    return (*modes, a // b, a % b, torch.fmod(a, b), a // 100, torch.div(a, 7, rounding_mode="floor"))


ENTRIES = [
    *(
        Entry(name, signed(getattr(torch, name)), PAIRS)
        for name in ("add", "sub", "mul", "div", "fmod", "floor_divide", "atan2")
    ),
    *(Entry(name, signed(getattr(torch, name)), PAIRS) for name in ("hypot", "heaviside", "logaddexp", "xlogy")),
    *(
        Entry(name, getattr(torch, name), PAIRS)
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
    ),
    *(
        Entry(name, getattr(torch, name), PAIRS)
        for name in ("logaddexp2", "maximum", "minimum", "remainder", "fmax", "fmin", "isclose")
    ),
    Entry("copysign", signed(torch.copysign), ("S,1,24,f32:edges", "9,1,f32")),
    Entry("pow", torch.pow, ("S,1,9,f32:positive", "9,1,f32")),
    Entry("pow, edges", torch.pow, PAIRS),
    Entry("float_power", torch.float_power, ("S,3,f32:positive", "1,3,i64")),
    Entry("special_xlog1py", torch.special.xlog1py, ("S,1,9,f32", "9,1,f32:positive")),
    *(
        Entry(f"{name}, integers", getattr(torch, name), LONGS)
        for name in ("add", "sub", "mul", "maximum", "minimum", "eq", "ne", "lt", "logical_and", "logical_xor")
    ),
    *(
        Entry(f"{name}, integers", getattr(torch, name), LONGS)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "fmax", "fmin", "heaviside", "copysign", "atan2")
    ),
    *(
        Entry(f"{name}, integers", getattr(torch, name), NONZERO)
        for name in ("fmod", "remainder", "floor_divide", "div")
    ),
    Entry("div, integers by modes", _divided, NONZERO),
    Entry("div, modes", _divided, PAIRS),
    Entry("div, bytes", lambda a, b: (*_divided(a, b + 1), a - b, a * b), ("S,3,u8", "3,u8")),
    *(
        Entry(f"div, ends of {kind}", _whole_quotients, (f"S,1,13,{kind}:ends", f"14,1,{kind}:divisors"))
        for kind in ("u8", "i8", "i16", "i32", "i64")
    ),
    Entry("div, numbers", lambda a: (a / 3, 3 / a, a // 2, 2.5 // a, a % 0.7, 0.7 % a), ("S,3,f32:positive",)),
    Entry("div, whole numbers", lambda a: (a / 3, 3 / a, a // 2, 7 // a, a % 3, 7 % a), ("S,3,i64:positive",)),
    Entry("bitwise_left_shift", lambda a, b: (a << b, a << 3, 3 << b), ("S,3,i64", "1,3,i64:below 9")),
    Entry("bitwise_right_shift", lambda a, b: (a >> b, a >> 3, -30 >> b), ("S,3,i64", "1,3,i64:below 9")),
    Entry("bitwise_right_shift, far", lambda a: (a >> 63, a >> 62), ("S,9,i64:whole edges",)),
    Entry("bitwise_and, booleans", lambda a, b: (a & b, a | b, a ^ b, a * b, a + b), ("S,3,bool", "3,bool")),
    Entry("bitwise_and, numbers", lambda a: (a & 6, a | 6, a ^ 6, 6 & a), ("S,3,i64",)),
    Entry("ldexp", torch.ldexp, ("S,3,f32", "1,3,i64")),
    Entry("isclose, equal_nan", lambda a, b: torch.isclose(a, b, equal_nan=True), PAIRS),
    Entry("allclose", lambda a, b: torch.isclose(a, b, 0.5, 0.25).all(), ("S,3,f32", "3,f32")),
    Entry("add, alpha", lambda a, b: (torch.add(a, b, alpha=2.5), torch.sub(a, b, alpha=-2)), ("S,3,f32", "3,f32")),
    Entry("add, alpha of integers", lambda a, b: (a.add(b, alpha=2), torch.rsub(a, b)), ("S,3,i64", "3,i64")),
    Entry("rsub", lambda a, b: (torch.rsub(a, b, alpha=3), torch.rsub(a, 2.5)), ("S,3,f32", "3,f32")),
    Entry("xlogy, numbers", lambda a: (torch.xlogy(a, 2), torch.xlogy(2, a)), ("S,3,f32:positive",)),
    two(lambda a, b: 1 - a * 2 + b / 3, "numbers"),
    Entry("where", lambda a, b: (torch.where(a > b, a, b), torch.where(a > 0, a, 0.0)), PAIRS),
    Entry("where, types", lambda a, b: torch.where(a > 1, a, b), ("S,3,i64", "3,f32")),
    two(lambda a, b: (torch.lerp(a, b, 0.3), torch.lerp(a, b, b), torch.lerp(a, b, 0.8)), "lerp"),
    two(lambda a, b: (torch.addcmul(a, a, b, value=0.5), torch.addcdiv(a, b, a, value=0.5)), "addcmul, addcdiv"),
    two(lambda a, b: (a.masked_fill(a > b, 0.25), a.masked_fill(b > 0, float("-inf"))), "masked_fill"),
    Entry(
        "true_divide, multiply, subtract", lambda a, b: a.true_divide(b).multiply(b).subtract(a), ("S,3,f32", "3,f32")
    ),
    Entry("greater, less, not_equal", lambda a, b: (a.greater(b), a.less_equal(b), a.not_equal(b)), PAIRS),
    Entry("ge, booleans", lambda a, b: (a >= b, a > b, a <= b, a < b, a == b, a != b), ("S,3,bool", "3,bool")),
    Entry("types are promoted", lambda a, b: (a + b, a * 2.5, a > b, b - a), ("S,3,i64", "3,f32"), "integers"),
    Entry("types are promoted, narrow", lambda a, b: (a + b, a * 2, a > b, a * 1.5), ("S,3,i8", "3,f16"), "integers"),
    Entry("bool times float", lambda a, b: ((a > 0) * b, (a > 0) + 1, (a > 0) * 2.5), ("S,3,f32", "3,f32")),
    Entry("a number with no axes", lambda a, b: (a + b, a * b, a > b), ("S,3,f16", "f32"), tolerance=2e-3),
    Entry("gcd", torch.gcd, ("S,3,i64", "1,3,i64")),
    Entry("gcd, far apart", lambda x: torch.gcd(x * 1836311903, torch.full((1,), 2971215073)), ("S,3,i64",)),
    Entry("gcd, steps", lambda x: torch.gcd(x * 0 + 7540113804746346429, x * 0 + 4660046610375530309), ("S,i64",)),
    Entry("lcm, ends", torch.lcm, ("S,1,13,i8:ends", "14,1,i8:divisors")),
    Entry("lcm", lambda x, y: (torch.lcm(x, y), torch.lcm(x, torch.tensor(6))), ("S,3,i64", "1,3,i64")),
]
