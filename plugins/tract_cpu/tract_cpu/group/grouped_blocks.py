"""Weights whose codes stand for groups of numbers, as ggml's IQ1, IQ2 and IQ3 have them, as integers with scales.

Integers that are all odd are taken as twice an integer and one more: half as many are left, and the one more is an
offset of the block. Those of IQ2 are some steps of 17 apart, or one more: kernels make them of codes of 4 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
from tract_llvm.language.types import F16, I8, U8

from tract_core.data.blocks.grouped import TAKEN_APART, half_of_iq1_m
from tract_core.plugins.keys import Array
from tract_cpu.kernels.in_blocks.weights import BlockForm
from tract_cpu.program.block_weights import BlockParts


def _taken(name: str, blocks: Array) -> tuple[Array, Array, Array]:
    """Of blocks [columns, blocks, bytes]: integers [columns, depth], and of columns what parts and blocks have."""
    integers, scales, units = TAKEN_APART[name](blocks.reshape(-1, blocks.shape[-1]))
    return integers.reshape(len(blocks), -1), scales.reshape(len(blocks), -1), units.reshape(len(blocks), -1)


def _in_steps(name: str, blocks: Array) -> BlockParts:
    """Integers of IQ2, as codes that `BlockForm` spreads."""
    integers, scales, units = _taken(name, blocks)
    return BlockParts(_STEPS[integers.view(np.uint8)], (scales,), (units,))


def _raised(blocks: Array) -> BlockParts:
    """Integers up to 31, as such without a sign."""
    integers, scales, units = _taken("iq3_xxs", blocks)
    return BlockParts(integers + np.int8(32), (scales,), (units,))


def _halved(name: str, blocks: Array) -> BlockParts:
    """Odd integers."""
    integers, scales, units = _taken(name, blocks)
    return BlockParts(integers >> 1, (2 * scales, scales), (units, units))


def _iq1_s(blocks: Array) -> BlockParts:
    """Eight times -1, 0 or 1, and one more or less, which is the same for all of a block."""
    integers, scales, units = _taken("iq1_s", blocks)
    eighths = integers + np.int8(1) >> 3
    more = (integers - 8 * eighths)[:, ::32]
    return BlockParts(eighths, (8 * scales, more * scales.astype(np.int8)), (units, units))


def _codes_of_steps() -> Array:
    """By the byte that an integer of IQ2 is: how many steps of 17 it is above the least, and 8 if it is one more."""
    found = np.zeros(256, np.uint8)
    for number in (-43, -25, -8, 8, 25, 43):
        steps, more = divmod(number + 43, 17)
        found[number % 256] = steps + 8 * more
    return found


_STEPS: Final = _codes_of_steps()

GROUPED: Final[Mapping[str, tuple[BlockForm, Callable[[Array], BlockParts]]]] = {
    "iq1_s": (BlockForm(2, 2, 32, U8, I8, 8), _iq1_s),
    "iq1_m": (BlockForm(4, 8, 16, U8, U8, 16), partial(_halved, "iq1_m")),
    "iq2_xxs": (BlockForm(4, 43, 32, U8, None, 8, spread=True), partial(_in_steps, "iq2_xxs")),
    "iq2_xs": (BlockForm(4, 43, 16, U8, None, 16, spread=True), partial(_in_steps, "iq2_xs")),
    "iq2_s": (BlockForm(4, 43, 16, U8, None, 16, spread=True), partial(_in_steps, "iq2_s")),
    "iq3_xxs": (BlockForm(6, 32, 32, U8, None, 8), _raised),
    "iq3_s": (BlockForm(4, 8, 32, U8, U8, 8, F16), partial(_halved, "iq3_s")),
}
"""By the name of a format: its form, and what takes blocks [columns, blocks, bytes] apart."""


def _half(blocks: Array) -> Array:
    return np.ascontiguousarray(blocks[..., :2]).view("<f2")


SCALES_OF_OFFSETS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "iq1_s": _half,
    "iq1_m": lambda blocks: half_of_iq1_m(blocks.reshape(-1, blocks.shape[-1])),
    "iq3_s": _half,
}
"""Of formats that get offsets which files do not have, what scales of blocks [..., bytes] are, in f16 or f32."""
