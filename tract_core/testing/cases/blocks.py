"""Cases of numbers in blocks."""

from __future__ import annotations

import struct
from functools import partial
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.data.blocks import Q4_0, Q8_1, BlockFormat
from tract_core.ops.blocks import UnpackBlocks
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Array, Case

ROWS = Rows()


def _by_blocks(form: BlockFormat, packed: Array) -> Array:
    """The same, by Python's own reading of halves and integers, block by block."""
    blocks = packed.reshape(-1, form.size)
    numbers = [number for block in blocks for number in _NUMBERS[form.name](block.tobytes())]
    return np.reshape(numbers, (*packed.shape[:-2], packed.shape[-2] * form.length))


def _of_q4_0(block: bytes) -> list[float]:
    (scale,), codes = struct.unpack("<e", block[:2]), block[2:]
    return [(code - 8) * scale for code in (*(byte % 16 for byte in codes), *(byte // 16 for byte in codes))]


def _of_q8_1(block: bytes) -> list[float]:
    scale, _, *codes = struct.unpack("<ee32b", block)
    return [code * scale for code in codes]


_NUMBERS: Final = {"q4_0": _of_q4_0, "q8_1": _of_q8_1}


def _blocks_case(form: BlockFormat, fact: str, shape: tuple[int, ...], to: DatumType) -> Case:
    packed = np.random.default_rng(len(fact)).integers(0, 256, (*shape, form.size), np.uint8)
    packed[..., [1, 3]] = packed[..., [1, 3]] & 0x83 | 0x2C  # scales of either sign and some 0.1
    given = Arg(f"{fact},{form.size},u8", packed.tolist())
    op = UnpackBlocks(form.name, to)
    return Case(f"UnpackBlocks-{form.name}-{fact}-{to.short}", op, [given], partial(_by_blocks, form), {"B": 3})


ROWS.add(
    CASES,
    "blocks",
    [
        _blocks_case(Q4_0, "B,2", (3, 2), DatumType.F32),
        _blocks_case(Q4_0, "1", (1,), DatumType.F64),
        _blocks_case(Q4_0, "2,B,1", (2, 3, 1), DatumType.F16),
        _blocks_case(Q4_0, "0,4", (0, 4), DatumType.F32),
        _blocks_case(Q8_1, "B,2", (3, 2), DatumType.F32),
    ],
)
