"""Cases of numbers in blocks."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.data.blocks import BF16, IQ1_M, IQ3_S, MXFP4, NVFP4, Q4_0, Q4_1, Q4_K, Q6_K, Q8_1, BlockFormat
from tract_core.data.blocks.grids import grid
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Array, Case

ROWS = Rows()


def _by_blocks(form: BlockFormat, packed: Array) -> Array:
    """The same, by Python's own reading of halves and integers, block by block."""
    blocks = packed.reshape(-1, form.size)
    numbers = [number for block in blocks for number in _NUMBERS[form.name](block.tobytes())]
    return np.reshape(numbers, (*packed.shape[:-2], packed.shape[-2] * form.length))


def _half(block: bytes, place: int) -> float:
    return struct.unpack_from("<e", block, place)[0]


def _nibbles(codes: bytes) -> list[int]:
    return [*(byte % 16 for byte in codes), *(byte // 16 for byte in codes)]


def _bit(packed: bytes, place: int) -> int:
    return packed[place // 8] >> place % 8 & 1


def _of_q4_0(block: bytes) -> list[float]:
    return [(code - 8) * _half(block, 0) for code in _nibbles(block[2:])]


def _of_q4_1(block: bytes) -> list[float]:
    return [code * _half(block, 0) + _half(block, 2) for code in _nibbles(block[4:])]


def _five(block: bytes) -> list[int]:
    return [code + 16 * _bit(block[:4], place) for place, code in enumerate(_nibbles(block[4:]))]


def _of_q5_0(block: bytes) -> list[float]:
    return [(code - 16) * _half(block, 0) for code in _five(block[2:])]


def _of_q5_1(block: bytes) -> list[float]:
    return [code * _half(block, 0) + _half(block, 2) for code in _five(block[4:])]


def _of_q8_0(block: bytes) -> list[float]:
    scale, *codes = struct.unpack("<e32b", block)
    return [code * scale for code in codes]


def _of_q8_1(block: bytes) -> list[float]:
    scale, _, *codes = struct.unpack("<ee32b", block)
    return [code * scale for code in codes]


def _plane(packed: bytes, place: int, bits: int) -> int:
    """The integer of an element: each 32 bytes have those of as many elements as fit, 32 of them in one plane."""
    planes = 8 // bits
    byte = packed[place // (32 * planes) * 32 + place % 32]
    return byte >> place // 32 % planes * bits & (1 << bits) - 1


def _of_q2_k(block: bytes) -> list[float]:
    codes, scale, least = block[:16], _half(block, 80), _half(block, 82)
    parts = [(scale * (codes[place // 16] % 16), least * (codes[place // 16] // 16)) for place in range(256)]
    return [step * _plane(block[16:80], place, 2) - less for place, (step, less) in enumerate(parts)]


def _of_q3_k(block: bytes) -> list[float]:
    low, high, scale = _nibbles(block[96:104]), block[104:108], _half(block, 108)
    scales = [scale * (low[part] + 16 * (high[part % 4] >> part // 4 * 2 & 3) - 32) for part in range(16)]
    numbers = [_plane(block[32:96], place, 2) + 4 * _plane(block[:32], place, 1) - 4 for place in range(256)]
    return [scales[place // 16] * number for place, number in enumerate(numbers)]


def _of_six_bits(packed: bytes, part: int) -> tuple[int, int]:
    """A scale and an offset, as ggml's own function for them reads the 12 bytes."""
    if part < 4:
        return packed[part] % 64, packed[part + 4] % 64
    low = packed[part + 4]
    return low % 16 + packed[part - 4] // 64 * 16, low // 16 + packed[part] // 64 * 16


def _scaled(block: bytes, numbers: Sequence[int]) -> list[float]:
    parts = [_of_six_bits(block[4:16], part) for part in range(8)]
    pairs = [(_half(block, 0) * scale, _half(block, 2) * less) for scale, less in parts]
    return [pairs[place // 32][0] * number - pairs[place // 32][1] for place, number in enumerate(numbers)]


def _of_q4_k(block: bytes) -> list[float]:
    return _scaled(block, [_plane(block[16:], place, 4) for place in range(256)])


def _of_q5_k(block: bytes) -> list[float]:
    high, low = block[16:48], block[48:]
    return _scaled(block, [_plane(low, place, 4) + 16 * _plane(high, place, 1) for place in range(256)])


def _of_q6_k(block: bytes) -> list[float]:
    numbers = list[float]()
    for place in range(256):
        half, rest = divmod(place, 128)
        low = block[64 * half + rest % 64] >> rest // 64 * 4 & 15
        high = block[128 + 32 * half + rest % 32] >> rest // 32 * 2 & 3
        (scale,) = struct.unpack_from("b", block, 192 + place // 16)
        numbers.append(_half(block, 208) * scale * (low + 16 * high - 32))
    return numbers


_LEVELS: Final = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def _of_iq4_nl(block: bytes) -> list[float]:
    return [_LEVELS[code] * _half(block, 0) for code in _nibbles(block[2:])]


def _of_iq4_xs(block: bytes) -> list[float]:
    (high,) = struct.unpack_from("<H", block, 2)
    numbers = list[float]()
    for part in range(8):
        scale = (block[4 + part // 2] >> part % 2 * 4 & 15) + 16 * (high >> 2 * part & 3) - 32
        codes = _nibbles(block[8 + 16 * part : 24 + 16 * part])
        numbers += [_half(block, 0) * scale * _LEVELS[code] for code in codes]
    return numbers


_MAGNITUDES: Final = (0, 0.5, 1, 1.5, 2, 3, 4, 6)


def _of_mxfp4(block: bytes) -> list[float]:
    scale = 2.0 ** (block[0] - 127)
    return [(-1 if code > 7 else 1) * _MAGNITUDES[code % 8] * scale for code in _nibbles(block[1:])]


def _of_nvfp4(block: bytes) -> list[float]:
    numbers = list[float]()
    for part in range(4):
        exponent, digits = divmod(block[part] % 128, 8)
        scale = 2.0 ** (exponent - 7) * (1 + digits / 8) if exponent else digits * 2.0**-9
        codes = _nibbles(block[4 + 8 * part : 12 + 8 * part])
        numbers += [(-1 if code > 7 else 1) * _MAGNITUDES[code % 8] * scale for code in codes]
    return numbers


def _of_tq1_0(block: bytes) -> list[float]:
    """A byte times 3 to the power of five, in 256 parts and rounded down, is what its digits make."""
    numbers = list[float]()
    for first, last, count in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
        for power in range(4, 4 - count, -1):
            numbers += [byte * 243 // 256 // 3**power % 3 - 1 for byte in block[first:last]]
    return [number * _half(block, 52) for number in numbers]


def _of_tq2_0(block: bytes) -> list[float]:
    return [(_plane(block, place, 2) - 1) * _half(block, 64) for place in range(256)]


def _row(name: str, code: int) -> list[int]:
    row: list[int] = grid(name)[code].tolist()
    return row


def _minus(magnitudes: Sequence[int], signs: int) -> list[int]:
    return [-one if signs >> place & 1 else one for place, one in enumerate(magnitudes)]


def _even(signs: int) -> int:
    """Seven signs, and the one that makes the number of negative ones even."""
    return signs + signs.bit_count() % 2 * 128


def _word(block: bytes, place: int, size: int = 2) -> int:
    return int.from_bytes(block[place : place + size], "little")


def _nibble(packed: bytes, place: int) -> int:
    return packed[place // 2] >> place % 2 * 4 & 15


def _of_iq1_s(block: bytes) -> list[float]:
    numbers = list[float]()
    for group in range(32):
        word = _word(block, 34 + group // 4 * 2)
        scale, more = _half(block, 0) * (word // 4096 % 8 * 2 + 1), -1 / 8 if word >> 15 else 1 / 8
        code = block[2 + group] + 256 * (word >> group % 4 * 3 & 7)
        numbers += [scale * (one + more) for one in _row("iq1", code)]
    return numbers


def _of_iq1_m(block: bytes) -> list[float]:
    words, numbers = [_word(block, place) for place in range(48, 56, 2)], list[float]()
    parts = [word // 4096 for word in words]
    (half,) = struct.unpack("<e", bytes([parts[0] + 16 * parts[1], parts[2] + 16 * parts[3]]))
    for group in range(32):
        high = _nibble(block[32:48], group)
        scale, more = half * ((words[group // 8] >> group // 2 % 4 * 3 & 7) * 2 + 1), -1 / 8 if high > 7 else 1 / 8
        numbers += [scale * (one + more) for one in _row("iq1", block[group] + 256 * (high % 8))]
    return numbers


def _of_iq2_xxs(block: bytes) -> list[float]:
    numbers = list[float]()
    for group in range(32):
        place = 2 + group // 4 * 8
        word = _word(block, place + 4, 4)
        scale = _half(block, 0) * (word // 2**28 + 0.5) / 4
        row = _row("iq2_xxs", block[place + group % 4])
        numbers += [scale * one for one in _minus(row, _even(word >> 7 * (group % 4) & 127))]
    return numbers


def _of_iq2_xs(block: bytes) -> list[float]:
    numbers = list[float]()
    for group in range(32):
        word = _word(block, 2 + 2 * group)
        scale = _half(block, 0) * (_nibble(block[66:], group // 2) + 0.5) / 4
        numbers += [scale * one for one in _minus(_row("iq2_xs", word % 512), _even(word // 512))]
    return numbers


def _of_iq2_s(block: bytes) -> list[float]:
    numbers = list[float]()
    for group in range(32):
        code = block[2 + group] + 256 * (block[66 + group // 4] >> group % 4 * 2 & 3)
        scale = _half(block, 0) * (_nibble(block[74:], group // 2) + 0.5) / 4
        numbers += [scale * one for one in _minus(_row("iq2_s", code), block[34 + group])]
    return numbers


def _of_iq3_xxs(block: bytes) -> list[float]:
    numbers = list[float]()
    for pair in range(32):
        word = _word(block, 66 + pair // 4 * 4, 4)
        scale = _half(block, 0) * (word // 2**28 + 0.5) / 2
        row = [*_row("iq3_xxs", block[2 + 2 * pair]), *_row("iq3_xxs", block[3 + 2 * pair])]
        numbers += [scale * one for one in _minus(row, _even(word >> 7 * (pair % 4) & 127))]
    return numbers


def _of_iq3_s(block: bytes) -> list[float]:
    numbers = list[float]()
    for pair in range(32):
        codes = [block[2 + group] + 256 * _bit(block[66:74], group) for group in (2 * pair, 2 * pair + 1)]
        scale = _half(block, 0) * (_nibble(block[106:], pair // 4) * 2 + 1)
        row = [*_row("iq3_s", codes[0]), *_row("iq3_s", codes[1])]
        numbers += [scale * one for one in _minus(row, block[74 + pair])]
    return numbers


def _of_f16(block: bytes) -> list[float]:
    return [_half(block, 0)]


def _of_bf16(block: bytes) -> list[float]:
    return [*struct.unpack("<f", bytes(2) + block)]


_NUMBERS: Final = {
    "q4_0": _of_q4_0,
    "q4_1": _of_q4_1,
    "q5_0": _of_q5_0,
    "q5_1": _of_q5_1,
    "q8_0": _of_q8_0,
    "q8_1": _of_q8_1,
    "q2_k": _of_q2_k,
    "q3_k": _of_q3_k,
    "q4_k": _of_q4_k,
    "q5_k": _of_q5_k,
    "q6_k": _of_q6_k,
    "iq4_nl": _of_iq4_nl,
    "iq4_xs": _of_iq4_xs,
    "mxfp4": _of_mxfp4,
    "nvfp4": _of_nvfp4,
    "iq1_s": _of_iq1_s,
    "iq1_m": _of_iq1_m,
    "iq2_xxs": _of_iq2_xxs,
    "iq2_xs": _of_iq2_xs,
    "iq2_s": _of_iq2_s,
    "iq3_xxs": _of_iq3_xxs,
    "iq3_s": _of_iq3_s,
    "tq1_0": _of_tq1_0,
    "tq2_0": _of_tq2_0,
    "f16": _of_f16,
    "bf16": _of_bf16,
}

_HALVES: Final[Mapping[str, Sequence[int]]] = {
    **dict.fromkeys(("q4_0", "q5_0", "q8_0", "iq4_nl", "iq4_xs", "f16"), (0,)),
    **dict.fromkeys(("iq1_s", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"), (0,)),
    **dict.fromkeys(("q4_1", "q5_1", "q8_1", "q4_k", "q5_k"), (0, 2)),
    "q2_k": (80, 82),
    "q3_k": (108,),
    "q6_k": (208,),
    "tq1_0": (52,),
    "tq2_0": (64,),
    **dict.fromkeys(("mxfp4", "nvfp4", "iq1_m", "bf16"), ()),
}
"""Where the numbers in f16 of a block begin."""


def _packed(form: BlockFormat, seed: int, shape: tuple[int, ...]) -> Array:
    """Random blocks, whose scales have either sign and are some 0.1, or whose exponent is near 0."""
    packed = np.random.default_rng(seed).integers(0, 256, (*shape, form.size), np.uint8)
    for place in _HALVES[form.name]:
        packed[..., place + 1] = packed[..., place + 1] & 0x83 | 0x2C
    if form is MXFP4:
        packed[..., 0] = packed[..., 0] % 8 + 120
    if form is NVFP4:
        packed[..., :4] = packed[..., :4] % 48  # below 0.5, some of them tiny
    if form is IQ1_M:  # the four highest bits of words
        packed[..., 55] = packed[..., 55] & 0x8F | 0x20
        packed[..., 53] = packed[..., 53] & 0x3F | 0x80
    if form is BF16:
        packed[..., 1] = packed[..., 1] & 0x81 | 0x3E
    return packed


def _blocks_case(form: BlockFormat, fact: str, shape: tuple[int, ...], to: DatumType = DatumType.F32) -> Case:
    given = Arg(f"{fact},{form.size},u8", _packed(form, len(fact), shape).tolist())
    op = UnpackBlocks(form.name, to)
    return Case(f"UnpackBlocks-{form.name}-{fact}-{to.short}", op, [given], partial(_by_blocks, form), {"B": 3})


ROWS.add(
    CASES,
    "blocks",
    [
        *(_blocks_case(form, "B,2", (3, 2)) for form in FORMATS.values()),
        _blocks_case(Q4_0, "1", (1,), DatumType.F64),
        _blocks_case(Q4_0, "2,B,1", (2, 3, 1), DatumType.F16),
        _blocks_case(Q4_0, "0,4", (0, 4)),
        _blocks_case(Q8_1, "1", (1,), DatumType.F16),
        _blocks_case(Q4_1, "0,4", (0, 4)),
        _blocks_case(Q4_K, "2,B,1", (2, 3, 1), DatumType.F16),
        _blocks_case(Q6_K, "0,4", (0, 4)),
        _blocks_case(IQ3_S, "0,4", (0, 4)),
        _blocks_case(IQ1_M, "2,B,1", (2, 3, 1), DatumType.F16),
    ],
)
