"""The types of PTX, as LLVM has them."""

from __future__ import annotations

from typing import Final

BITS: Final = {
    "pred": 1,
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "tf32": 32,
    "b128": 128,
    "f16x2": 32,
    "bf16x2": 32,
    "u16x2": 32,
    "s16x2": 32,
    "e4m3x2": 16,
    "e5m2x2": 16,
    "e4m3": 8,
    "e5m2": 8,
}
"""How wide they are."""

FLOATS: Final = {"f16": "half", "f32": "float", "f64": "double"}
"""Those that LLVM computes in."""
