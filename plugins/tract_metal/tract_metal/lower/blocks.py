"""Products with weights in blocks, repacked once to what MLX multiplies: codes without signs, a scale, and an offset.

The numbers are those of the file but for their last bits: MLX computes ``scale * code + offset``, where an offset is
the rounded product of the scale and the zero point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import mlx.core as mx
import numpy as np

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.quantize import DequantizeLinear
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_metal.elements import element_of, to_mlx
from tract_metal.group.blocks import PackedChoice, PackedProduct
from tract_metal.lower.indexed_matmul import chosen_product
from tract_metal.site import Site
from tract_metal.table import BLOCKS, KINDS

ROWS = Rows()

_FACTORS: Final = (mx.float32, mx.float16, mx.bfloat16)

NO_FACTORS: Final = "MLX multiplies weights in blocks with f32, f16 and bf16"

LENGTHS: Final = (32, 64, 128)
"""Of blocks that MLX knows."""


@frozen
class BlockedWeights:
    """Weights [rows, columns] in blocks of ``length`` along ``axis``, which is the last one or the first.

    Of several matrices, the rows follow each other.

    ``scale``, ``offset``: f32, one for each block. ``codes``: gives the codes, of u8, each below 2 to the power of
    ``bits``: to take them apart is left to who wants them.
    """

    codes: Callable[[], Array]
    scale: Array
    offset: Array
    bits: int
    length: int
    axis: int


@ROWS.row(BLOCKS, UnpackBlocks)
def blocks_of_archives(op: UnpackBlocks, packed: Array) -> BlockedWeights | None:
    """The formats of ggml: a scale in f16 first, and codes of 4 or 8 bits behind."""
    if packed.ndim not in (3, 4) or op.form not in _CODES:
        return None
    bits, codes = _CODES[op.form]
    packed = packed.reshape(-1, *packed.shape[-2:])
    scale = np.ascontiguousarray(packed[..., :2]).view("<f2")[..., 0].astype(np.float32)
    offset = scale * np.float32(-(1 << (bits - 1)))
    return BlockedWeights(lambda: codes(packed).reshape(packed.shape[0], -1), scale, offset, bits, 32, 1)


def _nibbles(packed: Array) -> Array:
    return np.concatenate([packed[..., 2:] & 15, packed[..., 2:] >> 4], axis=-1)


def _bytes(packed: Array) -> Array:
    return packed[..., -32:] ^ np.uint8(128)  # as if 128 had been added


_CODES: Final[Mapping[str, tuple[int, Callable[[Array], Array]]]] = {
    "q4_0": (4, _nibbles),
    "q8_0": (8, _bytes),
    "q8_1": (8, _bytes),
}
"""For each format of archives, how many bits its codes have, and what takes them out of blocks."""


@ROWS.row(BLOCKS, DequantizeLinear)
def blocks_of_onnx(op: DequantizeLinear, x: Array, scale: Array, zero: Array) -> BlockedWeights | None:
    """Integers of 4 or 8 bits, with a scale and a zero point for each block."""
    kind = DatumType.from_numpy(x.dtype)
    bits = {DatumType.U4: 4, DatumType.I4: 4, DatumType.U8: 8, DatumType.I8: 8}.get(kind)
    if x.ndim == 3 and op.axis == 2:
        return blocks_of_onnx(replace(op, axis=1), *(one.reshape(-1, one.shape[-1]) for one in (x, scale, zero)))
    if bits is None or x.ndim != 2 or scale.ndim != 2 or op.block not in LENGTHS or x.shape[op.axis] % op.block:
        return None
    shift = 1 << (bits - 1) if kind.is_signed() else 0
    factor = scale.astype(np.float32)
    offset = factor * -(zero.astype(np.float32) + np.float32(shift))
    if not np.isfinite(offset).all():
        return None

    def codes() -> Array:
        return (x.astype(np.int16) + shift).astype(np.uint8)

    return BlockedWeights(codes, factor, offset, bits, op.block, op.axis)


@ROWS.row(KINDS, PackedProduct)
def lower_packed(group: PackedProduct, site: Site) -> Callable[..., mx.array] | str:
    """By MLX's own, in the type of the other factor."""
    kind, weights = _factors_of(group, site)
    if kind is None or kind not in _FACTORS:
        return NO_FACTORS
    if weights.axis != int(group.rows_first):
        return "the blocks lie along an axis that is not summed over"

    def multiplied(*arrays: mx.array) -> mx.array:
        x = dict(zip(site.inputs, arrays, strict=True))[group.x]
        names = [*group.term.replace(group.inner, ""), group.inner]
        codes, scale, offset = site.once(lambda: _packed(weights, site, group))
        x = mx.transpose(x, [group.term.index(name) for name in names])
        rows = [*names[:-1], group.column]
        shape = (*x.shape[:-1], codes.shape[0])
        given = mx.zeros(shape, kind)
        if 0 not in shape:
            given = mx.quantized_matmul(x, codes, scale, offset, group_size=weights.length, bits=weights.bits)
        return mx.transpose(given, [rows.index(name) for name in group.result])

    return multiplied


@ROWS.row(KINDS, PackedChoice)
def lower_packed_choice(group: PackedChoice, site: Site) -> Callable[..., mx.array] | str:
    """By MLX's own, in the type of the rows."""
    kind, weights = _factors_of(group, site)
    if kind is None or kind not in _FACTORS:
        return NO_FACTORS
    shape = tuple(map(int, site.fact(OutletId(group.nodes[0])).shape))

    def multiplied(*arrays: mx.array) -> mx.array:
        given = dict(zip(site.inputs, arrays, strict=True))

        def product(rows: mx.array, **chosen: Any) -> mx.array:
            codes, scale, offset = site.once(lambda: _packed(weights, site, group, shape[:-1]))
            return mx.gather_qmm(rows, codes, scale, offset, group_size=weights.length, bits=weights.bits, **chosen)

        return chosen_product(site, product, shape, (given[group.x], given[group.which]))

    return multiplied


def _factors_of(group: PackedProduct | PackedChoice, site: Site) -> tuple[mx.Dtype | None, BlockedWeights]:
    """The type of the other factor, and the weights."""
    node = site.model.nodes[group.nodes[0]]
    describe = site.model.registry[BLOCKS].find(type(node.op))
    assert describe is not None, "it was found by that"
    weights = describe(node.op, *(site.model.outlet_fact(one).constant for one in node.inputs))
    return element_of(site.model.outlet_fact(group.x).datum_type), weights


def _packed(
    weights: BlockedWeights, site: Site, group: PackedProduct | PackedChoice, lead: Sequence[int] = (-1,)
) -> list[mx.array]:
    """[columns of the result, summed], as MLX wants it: codes side by side in words, from the lowest bits on.

    In the type of the other factor. ``lead``: how many matrices and columns, where it is not one matrix.
    """
    codes, scale, offset = (
        np.ascontiguousarray(one if weights.axis == 1 else one.T)
        for one in (weights.codes(), weights.scale, weights.offset)
    )
    if weights.bits == 4:
        codes = codes[:, 0::2] | codes[:, 1::2] << 4
    words, kind = np.ascontiguousarray(codes).view("<u4"), site.model.outlet_fact(group.x).datum_type.numpy
    return [to_mlx(one.reshape(*lead, one.shape[-1])) for one in (words, scale.astype(kind), offset.astype(kind))]
