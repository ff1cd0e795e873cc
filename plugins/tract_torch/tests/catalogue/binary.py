"""Operators on two tensors, element by element, of PyTorch in the catalogue."""

from __future__ import annotations

import torch

from catalogue.entry import Entry, two

ENTRIES = [
    *(two(getattr(torch, name)) for name in ("add", "sub", "mul", "maximum", "minimum")),
    *(two(getattr(torch, name), make="positive") for name in ("div", "pow", "fmod", "remainder", "floor_divide")),
    *(two(getattr(torch, name), make="integers") for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(two(getattr(torch, name), make="integers", kind="i64") for name in ("add", "mul", "logical_and", "logical_xor")),
    *(two(getattr(torch, f"bitwise_{name}"), make="integers", kind="i64") for name in ("and", "or", "xor")),
    two(torch.remainder, "remainder, any signs"),
    two(lambda a, b: torch.div(a, b, rounding_mode="floor"), "div, floor"),
    two(lambda a, b: torch.div(a, b, rounding_mode="trunc"), "div, trunc"),
    two(lambda a, b: torch.add(a, b, alpha=2.5), "add with alpha"),
    two(lambda a, b: 1 - a * 2 + b / 3, "numbers"),
    two(lambda a, b: torch.where(a > b, a, b), "where"),
    two(lambda a, b: torch.lerp(a, b, 0.3), "lerp"),
    two(lambda a, b: torch.addcmul(a, a, b, value=0.5), "addcmul"),
    two(lambda a, b: a.masked_fill(a > b, 0.25), "masked_fill"),
    Entry("types are promoted", lambda a, b: a + b, ("S,3,i64", "3,f32"), "integers"),
    Entry("bool times float", lambda a, b: (a > 0) * b, ("S,3,f32", "3,f32")),
    Entry("integers divided", lambda a, b: a / (b * b + 1), ("S,3,i64", "3,i64"), "integers"),
]
