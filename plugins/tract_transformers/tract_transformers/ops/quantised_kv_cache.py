"""A cache of keys or values that grows, kept in 4 or 8 bits.

Keys are quantised per channel, in blocks of 32 positions, since a few of their channels are much larger than the
others; values per position. The arrangement is that of KIVI (Liu and others, 2024), with the first positions left as
they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity
from tract_core.plugins.keys import COST, MEMORY, STATE, Array
from tract_core.plugins.tables import Rows
from tract_transformers.ops.kv_cache import check_sizes, with_past

ROWS = Rows()

EXACT: Final = 4
"""Positions at the beginning that stay in f32, as attention gives them more weight than any others."""

BLOCK: Final = 32
"""Positions that share the scales of their channels."""

SEQUENCE: Final = 2
"""The axis of the positions, of [batch, heads, positions, channels]."""

FLOATS: Final = (DatumType.F16, DatumType.BF16, DatumType.F32)


@frozen
class QuantizedDynKvCache(TypedOp):
    """As `DynKvCache`, with its ``past``, of [batch, heads, positions, channels] along ``axis`` 2, in ``bits`` 4 or 8.

    Besides the first 4 positions, each element comes back within half a step of where it was. A step is the range of
    the group that it belongs to over 15 or 255. With ``per_channel``, as for keys, a group is one channel in a block of
    32 positions, and those that fill no block yet are exact; without, as for values, it is one position. A group with
    an element that is not finite comes back as NaN.
    """

    key: str
    axis: int
    past: Dim
    bits: int
    per_channel: bool

    tells = ("past",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``past`` positions more than the input has. Raises FactError for other tensors than those."""
        (x,) = arity(self, inputs, 1)
        if self.bits not in (4, 8):
            raise FactError(f"{self.name}: {self.bits} bits, wanted 4 or 8")
        if x.rank != SEQUENCE + 2 or self.axis != SEQUENCE or x.datum_type not in FLOATS:
            raise FactError(
                f"{self.name} along axis {self.axis} of {x}, wanted [batch, heads, positions, channels] of f16, bf16 or"
                f" f32 along axis {SEQUENCE}"
            )
        return (with_past(self, x, self.axis, self.past),)


@frozen
class Stored:
    """Positions as they are kept. Nothing in it is ever written to.

    ``first`` and ``last``: f32 [batch, heads, up to 4 or 31, channels], the exact positions before and behind the
    others. ``codes``: bytes [batch, heads, positions, bytes of all channels]; of 4 bits, the lower half of a byte is
    the channel before that of the upper half. ``low`` and ``step``: f32, what a code of 0 stands for and what 1 adds;
    [batch, heads, positions, 1] without ``per_channel``, else [batch, heads, blocks, channels].
    """

    bits: int
    per_channel: bool
    first: Array
    codes: Array
    low: Array
    step: Array
    last: Array

    @staticmethod
    def empty(bits: int, batch: int, heads: int, channels: int, *, per_channel: bool) -> Stored:
        """No positions."""
        none = np.zeros((batch, heads, 0, channels), np.float32)
        codes = np.zeros((batch, heads, 0, (channels * bits + 7) // 8), np.uint8)
        scales = none if per_channel else np.zeros((batch, heads, 0, 1), np.float32)
        return Stored(bits, per_channel, none, codes, scales, scales, none)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """That of the tensor."""
        batch, heads, first, channels = self.first.shape
        return batch, heads, first + self.codes.shape[2] + self.last.shape[2], channels

    def appended(self, x: Array) -> Stored:
        """With the positions of ``x``, f32 [batch, heads, positions, channels], behind."""
        room = EXACT - self.first.shape[2]
        first, rest = np.concatenate([self.first, x[:, :, :room]], 2), np.concatenate([self.last, x[:, :, room:]], 2)
        size = BLOCK if self.per_channel else 1
        whole = rest.shape[2] // size * size
        codes, low, step = _quantised(rest[:, :, :whole], self.bits, size, per_channel=self.per_channel)
        return Stored(
            self.bits,
            self.per_channel,
            first,
            np.concatenate([self.codes, codes], 2),
            np.concatenate([self.low, low], 2),
            np.concatenate([self.step, step], 2),
            rest[:, :, whole:].copy(),
        )

    def tensor(self) -> Array:
        """All positions, in f32."""
        channels, size = self.first.shape[3], BLOCK if self.per_channel else 1
        low, step = (np.repeat(one, size, 2) for one in (self.low, self.step))
        middle = low + _unpacked(self.codes, self.bits)[..., :channels] * step
        return np.concatenate([self.first, middle, self.last], 2)


def _quantised(x: Array, bits: int, size: int, *, per_channel: bool) -> tuple[Array, Array, Array]:
    """Codes, and of each group of ``size`` positions the number of code 0 and the step."""
    batch, heads, count, channels = x.shape
    blocks = x.reshape(batch, heads, count // size, size, channels)
    axis, most = 3 if per_channel else 4, np.float32(2**bits - 1)
    low = blocks.min(axis, keepdims=True, initial=np.inf)
    high = blocks.max(axis, keepdims=True, initial=-np.inf)
    step = np.where(high > low, (high - low) / most, np.float32(1))
    step[~(np.isfinite(low) & np.isfinite(high))] = np.nan
    places = np.nan_to_num((blocks - low) / step)
    codes = np.minimum(np.floor(places + np.float32(0.5)), most).astype(np.uint8).reshape(x.shape)
    groups = (batch, heads, count // size, channels if per_channel else 1)
    return _packed(codes, bits), low.reshape(groups), step.reshape(groups)


def _packed(codes: Array, bits: int) -> Array:
    """Codes along the last axis in as few bytes as they take."""
    if bits == 8:
        return codes
    odd = [(0, 0)] * (codes.ndim - 1) + [(0, codes.shape[-1] % 2)]
    pairs = np.pad(codes, odd)
    return pairs[..., ::2] | pairs[..., 1::2] << 4


def _unpacked(codes: Array, bits: int) -> Array:
    """The codes in bytes, where those of 4 bits are; one more than there were, where that number is odd."""
    if bits == 8:
        return codes
    return np.stack([codes & 15, codes >> 4], -1).reshape(*codes.shape[:-1], codes.shape[-1] * 2)


class QuantizedDynKvCacheState:
    """All positions so far, quantised; nothing before the first turn tells the other sizes."""

    def __init__(self, op: QuantizedDynKvCache) -> None:
        self.op = op
        self.past: Stored | None = None

    def told(self) -> tuple[int]:
        """How many positions came so far."""
        return (0 if self.past is None else self.past.shape[SEQUENCE],)

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """What came so far, and the input behind it, as it is kept. Raises RunError where other sizes came before."""
        (x,) = inputs
        past = stored_behind(self.past, x, self.op.bits, per_channel=self.op.per_channel)
        found = past.tensor().astype(x.dtype)
        self.past = past
        return (found,)

    def freeze(self) -> Stored | None:
        """All positions so far."""
        return self.past

    def thaw(self, frozen: Stored | None) -> None:
        """Go back to a snapshot."""
        self.past = frozen


def stored_behind(past: Stored | None, x: Array, bits: int, *, per_channel: bool) -> Stored:
    """The positions of ``x`` behind those that came before. Raises RunError where these have other sizes."""
    check_sizes(None if past is None else past.shape, x.shape, SEQUENCE)
    batch, heads, _, channels = x.shape
    before = past or Stored.empty(bits, batch, heads, channels, per_channel=per_channel)
    return before.appended(x.astype(np.float32))


@ROWS.row(STATE, QuantizedDynKvCache)
def state(op: QuantizedDynKvCache, session: Session) -> QuantizedDynKvCacheState:
    """Nothing came yet."""
    return QuantizedDynKvCacheState(op)


@ROWS.row(MEMORY, QuantizedDynKvCache)
def memory(op: QuantizedDynKvCache, made: int, *inputs: Array) -> int:
    """The tensor in f32 up to three times: codes as numbers, the steps, and what these give."""
    (x,) = inputs
    return made + 3 * (made + x.nbytes) * (4 // x.itemsize)


@ROWS.row(COST, QuantizedDynKvCache)
def cost(op: QuantizedDynKvCache, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A multiplication and an addition per element that comes back; what is kept counts in bytes of a buffer."""
    volume = outputs[0].shape.volume
    return {"FMA(F32)": volume, "BUF(U8)": volume * op.bits // 8}
