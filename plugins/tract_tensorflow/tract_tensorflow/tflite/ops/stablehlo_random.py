"""Random bits from a state: counters that are scrambled with a key.

Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), with what the kernels of LiteRT take
for counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import CorruptModel, Unsupported
from tract_core.ops.binary import BitXor
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_ALGORITHMS: Final = ("DEFAULT", "PHILOX", "THREEFRY")
_FACTORS: Final = (0xD2511F53, 0xCD9E8D57)
_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_PARITY: Final = 0x1BD11BDA
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))


@tflite_op(ROWS, "STABLEHLO_RNG_BIT_GENERATOR")
def rng_bit_generator(node: TfliteNode, wire: Wiring) -> Sequence[Wired]:
    """The state after it, and bits; Philox, or Threefry: the same state gives the same bits"""
    state, kind, number = wire.tensor(0), node.output(1).kind, node.integer("algorithm", 0)
    shape = [size for size in node.output(1).shape if size is not None]
    if len(shape) != len(node.output(1).shape) or kind is None or kind not in _WORDS:
        raise Unsupported(f"random bits of {node.output(1).type_name} and {list(node.output(1).shape)}")
    if not 0 <= number < len(_ALGORITHMS) or state.dtype is not DatumType.U64 or state.rank != 1:
        raise CorruptModel(f"random bits by algorithm {number} from {state.fact}")
    length, is_threefry = state.shape[0], _ALGORITHMS[number] == "THREEFRY"
    if is_symbolic(length) or int(length) not in ((2,) if is_threefry else (2, 3)):
        raise CorruptModel(f"{_ALGORITHMS[number]} has a state of 2 numbers, or 3 for Philox, found {state.fact}")
    words, width = _WORDS[kind] * int(np.prod(shape)), 2 if is_threefry else 4
    blocks = -(-words // width)
    key, counter = state.part(0, 0, 1), state.part(0, 1, 2)
    counters = counter + state.operand(np.arange(blocks, dtype=np.uint64))
    if is_threefry:
        found = _threefry(_halves(key), _halves(counters))
    else:
        rest = _halves(state.part(0, 2, 3) if length == 3 else key)
        found = _philox(_halves(key), [*_halves(counters), *(one.broadcast((blocks,)) for one in rest)])
    joined = found[0].unsqueeze([1]).concat([one.unsqueeze([1]) for one in found[1:]], 1).reshape((blocks * width,))
    bits = joined.part(0, 0, words)
    if _WORDS[kind] == 2:
        pairs = bits.reshape((words // 2, 2))
        bits = (pairs.part(1, 0, 1) + (pairs.part(1, 1, 2) << 32)).reshape((words // 2,))
    after = [
        key,
        counter + state.operand(np.array([blocks], np.uint64)),
        *([state.part(0, 2, 3)] if length == 3 else []),
    ]
    return [after[0].concat(after[1:], 0), bits.cast(kind).reshape(shape)]


_WORDS: Final = {DatumType.I32: 1, DatumType.U32: 1, DatumType.I64: 2, DatumType.U64: 2}
"""How many words of 32 bits an element has."""


def _low(x: Wired) -> Wired:
    """The 32 lowest bits."""
    return (x << 32) >> 32


def _halves(x: Wired) -> list[Wired]:
    return [_low(x), x >> 32]


def _xor(*parts: Wired) -> Wired:
    return reduce(lambda a, b: a.with_outlet(a.wire.binary(BitXor(), a.outlet, b.outlet)), parts)


def _philox(key: Sequence[Wired], block: Sequence[Wired]) -> list[Wired]:
    """10 rounds on four words."""
    found = [*block]
    for step in range(10):
        a, b = found[0] * _FACTORS[0], found[2] * _FACTORS[1]
        keys = [_low(one + step * more % (1 << 32)) for one, more in zip(key, _STEPS, strict=True)]
        found = [_xor(b >> 32, found[1], keys[0]), _low(b), _xor(a >> 32, found[3], keys[1]), _low(a)]
    return found


def _threefry(key: Sequence[Wired], block: Sequence[Wired]) -> list[Wired]:
    """20 rounds on two words."""
    keys = [*key, _xor(*key, key[0].like(_PARITY))]
    a, b = (_low(one + other) for one, other in zip(block, key, strict=True))
    for step in range(5):
        for places in _ROTATIONS[step % 2]:
            a = _low(a + b)
            b = _xor(_low(b << places) + (b >> (32 - places)), a)
        a, b = _low(a + keys[(step + 1) % 3]), _low(b + keys[(step + 2) % 3] + (step + 1))
    return [a, b]
