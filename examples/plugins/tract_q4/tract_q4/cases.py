"""What unpacking must give, on any runtime: bytes taken apart one by one."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case
from tract_q4.q4 import BYTES, NUMBERS, UnpackQ4

ROWS = Rows()


def _unpacked(packed: Any) -> Any:
    """The same, by Python's own reading of halves and integers."""
    numbers = [number for start in range(0, packed.size, BYTES) for number in _numbers(packed.tobytes()[start:])]
    return np.reshape(numbers, (*packed.shape[:-2], packed.shape[-2] * NUMBERS))


def _numbers(block: bytes) -> list[float]:
    (scale,), codes = struct.unpack("<e", block[:2]), block[2:BYTES]
    return [(code - 8) * scale for code in (*(byte % 16 for byte in codes), *(byte // 16 for byte in codes))]


def _case(fact: str, shape: tuple[int, ...], to: DatumType, *, constant: bool = False) -> Case:
    packed = np.random.default_rng(len(fact)).integers(0, 256, (*shape, BYTES), np.uint8)
    packed[..., 1] = packed[..., 1] & 0x83 | 0x2C  # scales of either sign and some 0.1
    given = Arg(fact, packed.tolist(), constant=constant)
    return Case(f"UnpackQ4-{fact}-{to.short}", UnpackQ4(to), [given], _unpacked, {"B": 3})


ROWS.add(
    CASES,
    "q4",
    [
        _case("B,2,18,u8", (3, 2), DatumType.F32),
        _case("1,18,u8", (1,), DatumType.F64),
        _case("2,B,1,18,u8", (2, 3, 1), DatumType.F16),
        _case("0,4,18,u8", (0, 4), DatumType.F32),
        _case("5,2,18,u8", (5, 2), DatumType.F32, constant=True),
    ],
)
