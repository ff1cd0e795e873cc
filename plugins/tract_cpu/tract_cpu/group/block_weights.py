"""Weights that stay in blocks: products unpack them in registers, so that nobody writes their numbers to memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from tract_llvm.language.types import F16, F32, I8, U8, ElementType

from tract_core.compile.products import ProductAxes, is_product_of_two, stretched_shapes
from tract_core.data import DatumType
from tract_core.data.blocks.coded import FLOATS, LEVELS, scales_of_nvfp4
from tract_core.data.blocks.ternary import digits
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.quantize import DequantizeLinear
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.group.grouped_blocks import GROUPED, SCALES_OF_OFFSETS
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start
from tract_cpu.kernels.in_blocks.lay import CodePlane, CodesForm
from tract_cpu.kernels.in_blocks.weights import BlockForm
from tract_cpu.program.block_weights import BlockParts, BlockWeights, NarrowWeights, StoredCodes
from tract_cpu.table import BLOCKS

ROWS = Rows()


@frozen
class Packed(CpuGroup):
    """Weights that nobody unpacks but the products and look-ups that read them."""

    weights: BlockWeights | NarrowWeights


@ROWS.row(GROUPS, UnpackBlocks)
def group_blocks(op: UnpackBlocks, start: Start) -> CpuGroup:
    """Weights of products stay in blocks; other blocks are left to the host."""
    return packed_weights(start) or start.host("blocks that are no weights of products have no native code yet")


def packed_weights(start: Start) -> Packed | None:
    """The group of a node that unpacks weights of products alone; ``None`` for any other."""
    describe = start.model.registry[BLOCKS].find(type(start.node.op))
    arrays = [start.array(slot) for slot in range(len(start.node.inputs))]
    if describe is None or any(one is None for one in arrays):
        return None
    readers = start.model.outlet(start.outlet).successors
    if not readers or start.outlet in start.model.outputs or start.result() != F32:
        return None
    op = start.node.op
    axis = op.axis if isinstance(op, DequantizeLinear) else start.node.facts[0].rank - 1
    if not all(_takes_blocks(start, start.model.nodes[one.node], one.slot, axis) for one in readers):
        return None
    weights = describe(op, *arrays)
    return None if weights is None else Packed((start.node.node,), tuple(start.read()), None, weights)


def _takes_blocks(start: Start, reader: TypedNode, slot: int, axis: int) -> bool:
    """Whether a node multiplies with weights, or looks up rows of them. ``axis``: along which blocks are."""
    if reader.id in start.walk.refused:
        return False
    if isinstance(reader.op, Gather):
        index = start.known.element_at(reader.inputs[1])
        return slot == 0 and (reader.op.axis, axis) == (0, 1) and index is not None and index.kind in "iu"
    if isinstance(reader.op, IndexedMatMul):
        kinds = [start.known.element_at(outlet) for outlet in reader.inputs]
        return (slot, axis) == (1, 2) and kinds[:2] == [F32, F32] and kinds[2] is not None
    return _multiplies(start, reader, slot, axis)


def _multiplies(start: Start, reader: TypedNode, slot: int, axis: int) -> bool:
    """Whether a node is a product whose right factor is that input, summed along that axis."""
    op, facts = reader.op, [start.model.outlet_fact(outlet) for outlet in reader.inputs]
    if not isinstance(op, EinSum) or op.q_output is not None:
        return False
    kinds = [one.datum_type for one in (*facts, start.model.outlet_fact(OutletId(reader.id)))]
    if kinds != [DatumType.F32] * 3 or op.acc is not DatumType.F32 or not is_product_of_two(op, facts):
        return False
    axes, term = ProductAxes.of(op, stretched_shapes(op, facts)), op.axes.inputs[slot]
    if axes.right != slot or axes.pairs or len(term) != 2 or reader.inputs[0] == reader.inputs[1]:
        return False
    kept = [name for name in op.axes.outputs[0] if name in axes.rows + axes.columns]
    return axes.inner == term[axis] and axes.columns == term[1 - axis] == kept[-1]


# ---- how blocks lie


@ROWS.row(BLOCKS, UnpackBlocks)
def blocks_of_files(op: UnpackBlocks, packed: Array) -> BlockWeights | NarrowWeights | None:
    """Those of ggml."""
    if packed.ndim not in (3, 4) or not packed.size:
        return None
    if op.form in _NARROW:
        return NarrowWeights(packed.reshape(*packed.shape[:-2], -1).view(_NARROW[op.form]))
    found = _OF_FILES.get(op.form)
    if found is None or _has_infinities(op.form, packed):
        return None
    form, parts = found
    columns, blocks, size = packed.shape[-3:]
    rows = packed.reshape(-1, blocks, size)

    def part(first: int, last: int) -> BlockParts:
        return parts(np.ascontiguousarray(rows[first:last]))

    return BlockWeights(form, columns, blocks * FORMATS[op.form].length, packed, part, len(rows) // columns)


def _halves(blocks: Array, start: int) -> Array:
    return blocks.view("<f2")[..., start // 2]  # of blocks of an even number of bytes, as all are that have such


def _nibbles(blocks: Array, start: int, length: int = 32) -> Array:
    """Codes of 4 bits of blocks, in runs of so many: in the low halves of bytes, then in the high ones."""
    codes = blocks[..., start:].reshape(*blocks.shape[:-1], -1, length // 2)
    found = np.empty((*codes.shape[:-1], 2, length // 2), np.uint8)
    np.bitwise_and(codes, 15, out=found[..., 0, :])
    np.right_shift(codes, 4, out=found[..., 1, :])
    return found.reshape(len(blocks), -1)


def _crumbs(packed: Array, length: int = 32) -> Array:
    """Codes of 2 bits, in runs of so many: in the lowest bits of bytes, then in the next ones."""
    runs = packed.reshape(*packed.shape[:-1], -1, 1, length)
    return (runs >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3).reshape(len(packed), -1)


def _q4_0(blocks: Array) -> BlockParts:
    codes = CodesForm(32, 18, (CodePlane(2, 4, 16),), plus=8)  # 8 less, as four bits
    return BlockParts(StoredCodes(codes, blocks), (_halves(blocks, 0),))


def _q4_1(blocks: Array) -> BlockParts:
    codes = CodesForm(32, 20, (CodePlane(4, 4, 16),))
    return BlockParts(StoredCodes(codes, blocks), (_halves(blocks, 0), _halves(blocks, 2)))


def _q5_0(blocks: Array) -> BlockParts:
    codes = CodesForm(32, 22, (CodePlane(6, 4, 16), CodePlane(2, 1, 1)))
    return BlockParts(StoredCodes(codes, blocks), (_halves(blocks, 0),))


def _q5_1(blocks: Array) -> BlockParts:
    codes = CodesForm(32, 24, (CodePlane(8, 4, 16), CodePlane(4, 1, 1)))
    return BlockParts(StoredCodes(codes, blocks), (_halves(blocks, 0), _halves(blocks, 2)))


def _q8_0(blocks: Array) -> BlockParts:
    return BlockParts(StoredCodes(CodesForm(32, 34, (CodePlane(2, 8, 32),)), blocks), (_halves(blocks, 0),))


def _q8_1(blocks: Array) -> BlockParts:
    return BlockParts(StoredCodes(CodesForm(32, 36, (CodePlane(4, 8, 32),)), blocks), (_halves(blocks, 0),))


def _small_scales(blocks: Array, start: int) -> tuple[Array, Array]:
    """Scales and minima of 6 bits of the eight blocks that have a scale in common, packed into twelve bytes."""
    first, second, rest = (blocks[..., start + 4 * one : start + 4 * one + 4] for one in range(3))
    scales = np.concatenate([first & 63, rest & 15 | first >> 6 << 4], axis=-1)
    minima = np.concatenate([second & 63, rest >> 4 | second >> 6 << 4], axis=-1)
    return scales.reshape(len(blocks), -1), minima.reshape(len(blocks), -1)


def _q2_k(blocks: Array) -> BlockParts:
    both = blocks[..., :16].reshape(len(blocks), -1)
    codes = StoredCodes(CodesForm(256, 84, (CodePlane(16, 2, 32),)), blocks)
    return BlockParts(codes, (both & 15, both >> 4), (_halves(blocks, 80), -_halves(blocks, 82)))


def _q3_k(blocks: Array) -> BlockParts:
    codes = CodesForm(256, 110, (CodePlane(32, 2, 32), CodePlane(0, 1, 32)), plus=12)  # 4 less, as four bits
    scales = _nibbles(blocks[..., :104], 96, 16) | _crumbs(blocks[..., 104:108], 4) << 4
    return BlockParts(StoredCodes(codes, blocks), (scales.astype(np.int8) - 32,), (_halves(blocks, 108),))


def _q4_k(blocks: Array) -> BlockParts:
    codes = StoredCodes(CodesForm(256, 144, (CodePlane(16, 4, 32),)), blocks)
    return BlockParts(codes, _small_scales(blocks, 4), (_halves(blocks, 0), -_halves(blocks, 2)))


def _q5_k(blocks: Array) -> BlockParts:
    codes = StoredCodes(CodesForm(256, 176, (CodePlane(48, 4, 32), CodePlane(16, 1, 32))), blocks)
    return BlockParts(codes, _small_scales(blocks, 4), (_halves(blocks, 0), -_halves(blocks, 2)))


def _q6_k(blocks: Array) -> BlockParts:
    codes = StoredCodes(CodesForm(256, 210, (CodePlane(0, 4, 64), CodePlane(128, 2, 32))), blocks)
    scales = np.ascontiguousarray(blocks[..., 192:208]).view(np.int8).reshape(len(blocks), -1)
    return BlockParts(codes, (scales,), (_halves(blocks, 208),))


def _iq4_nl(blocks: Array) -> BlockParts:
    codes = CodesForm(32, 18, (CodePlane(2, 4, 16),), levels=_LEVELS)
    return BlockParts(StoredCodes(codes, blocks), (_halves(blocks, 0),))


def _iq4_xs(blocks: Array) -> BlockParts:
    scales = _nibbles(blocks[..., :8], 4, 2) | _crumbs(blocks[..., 2:4], 1) << 4
    codes = CodesForm(256, 136, (CodePlane(8, 4, 16),), levels=_LEVELS)
    return BlockParts(StoredCodes(codes, blocks), (scales.astype(np.int8) - 32,), (_halves(blocks, 0),))


def _mxfp4(blocks: Array) -> BlockParts:
    """Twice the numbers, so half the scales: f32 holds each of these powers of two."""
    scales = np.ldexp(np.float32(1), blocks[..., 0].astype(np.int32) - 128)
    return BlockParts(StoredCodes(CodesForm(32, 17, (CodePlane(1, 4, 16),), levels=_FLOATS), blocks), (scales,))


def _nvfp4(blocks: Array) -> BlockParts:
    """Twice the numbers, so half the scales: f16 holds each of them."""
    scales = scales_of_nvfp4(blocks.reshape(-1, blocks.shape[-1])).reshape(len(blocks), -1)
    codes = CodesForm(64, 36, (CodePlane(4, 4, 8),), levels=tuple(one + _CENTRE for one in _FLOATS))
    return BlockParts(StoredCodes(codes, blocks), (scales,))


def _tq1_0(blocks: Array) -> BlockParts:
    found = digits(blocks.reshape(-1, blocks.shape[-1])[:, :52]).reshape(len(blocks), -1)
    return BlockParts(found - np.uint8(1), (_halves(blocks, 52),))


def _tq2_0(blocks: Array) -> BlockParts:
    return BlockParts(StoredCodes(CodesForm(256, 66, (CodePlane(0, 2, 32),)), blocks), (_halves(blocks, 64),))


def _has_infinities(form: str, blocks: Array) -> bool:
    """Whether numbers may be infinite: infinities cancel to what is no number, which sums of codes do not show.

    So do infinite offsets that files do not have.
    """
    scales = SCALES_OF_OFFSETS.get(form)
    if scales is not None:
        return bool(np.isinf(scales(blocks)).any())
    return form == "mxfp4" and int(blocks[..., 0].max()) > _MXFP4_LARGEST


_LEVELS: Final = tuple(level & 0xFF for level in LEVELS)
"""The integers that codes of IQ4 stand for, by the code: of 8 bits, with a sign."""

_CENTRE: Final = 16
"""Added to the integers of MXFP4, up to 12, it makes integers of 5 bits without a sign."""

_FLOATS: Final = tuple(one + _CENTRE for one in FLOATS)
"""Such integers, by the code."""

_MXFP4_LARGEST: Final = 252
"""The largest scale of which all numbers are finite: 12 * 2**124."""

_NARROW: Final = {"f16": np.dtype("<f2"), "bf16": DatumType.BF16.numpy}
"""Formats whose blocks are just floats."""

_OF_FILES: Final[Mapping[str, tuple[BlockForm, Callable[[Array], BlockParts]]]] = {
    "q4_0": (BlockForm(4, 8, 32, F16), _q4_0),
    "q4_1": (BlockForm(4, 0, 32, F16, F16), _q4_1),
    "q5_0": (BlockForm(5, 16, 32, F16), _q5_0),
    "q5_1": (BlockForm(5, 0, 32, F16, F16), _q5_1),
    "q8_0": (BlockForm(8, 128, 32, F16), _q8_0),
    "q8_1": (BlockForm(8, 128, 32, F16), _q8_1),
    "q2_k": (BlockForm(2, 0, 16, U8, U8, 16, F16), _q2_k),
    "q3_k": (BlockForm(4, 8, 16, I8, None, 16, F16), _q3_k),
    "q4_k": (BlockForm(4, 0, 32, U8, U8, 8, F16), _q4_k),
    "q5_k": (BlockForm(5, 0, 32, U8, U8, 8, F16), _q5_k),
    "q6_k": (BlockForm(6, 32, 16, I8, None, 16, F16), _q6_k),
    "iq4_nl": (BlockForm(8, 128, 32, F16), _iq4_nl),
    "iq4_xs": (BlockForm(8, 128, 32, I8, None, 8, F16), _iq4_xs),
    "mxfp4": (BlockForm(5, _CENTRE, 32, F32), _mxfp4),
    "nvfp4": (BlockForm(6, 2 * _CENTRE, 16, F16), _nvfp4),
    "tq1_0": (BlockForm(2, 2, 256, F16), _tq1_0),
    "tq2_0": (BlockForm(2, 1, 256, F16), _tq2_0),
    **GROUPED,
}
"""By the name of a format: its form, and what takes blocks [columns, blocks, bytes] apart."""


@ROWS.row(BLOCKS, DequantizeLinear)
def blocks_of_onnx(op: DequantizeLinear, x: Array, scale: Array, zero: Array) -> BlockWeights | None:
    """Integers of 2, 4 or 8 bits, with a scale and a zero point for each block; floats of 8 bits with a scale."""
    kind, scales = DatumType.from_numpy(x.dtype), _SCALES.get(scale.dtype.type)
    bits = _BITS.get(kind)
    if bits is None or scales is None or x.ndim not in (2, 3) or scale.ndim != x.ndim or not x.size:
        return None
    if op.axis != x.ndim - 1 and x.ndim == 3:
        return None
    turned = [one.reshape(-1, one.shape[-1]) if op.axis == x.ndim - 1 else one.T for one in (x, scale, zero)]
    if kind.is_float() and (_has_nan(x) or zero.astype(np.float32).any()):
        return None
    half, middle = 1 << (bits - 1), int(zero.flat[0])
    whole = kind.is_float() or kind.is_signed()
    centred = bool((zero == zero.flat[0]).all()) and middle == (0 if whole else half)
    centre = half if not kind.is_float() and (centred or kind.is_signed()) else 0
    form = BlockForm(bits, centre, op.block, scales, None if centred else F32, floats=kind.is_float())
    rows, depth = turned[0].shape
    columns = x.shape[1] if x.ndim == 3 else rows
    if depth % op.block or op.block % form.unit:
        return None

    def part(first: int, last: int) -> BlockParts:
        codes, scale, zero = (one[first:last] for one in turned)
        numbers = codes.view(np.uint8)
        if not kind.is_float() and centred and middle:
            numbers = numbers - np.uint8(middle)
        if centred:
            return BlockParts(numbers, (scale,))
        return BlockParts(numbers, (scale, -scale.astype(np.float32) * zero.astype(np.float32)))

    return BlockWeights(form, columns, depth, x, part, rows // columns)


def _has_nan(floats: Array) -> bool:
    """Whether one of some floats of the type e4m3fn is none."""
    return bool((floats.view(np.uint8) & 127 == 127).any())


_BITS: Final = {
    **dict.fromkeys((DatumType.U2, DatumType.I2), 2),
    **dict.fromkeys((DatumType.U4, DatumType.I4), 4),
    **dict.fromkeys((DatumType.U8, DatumType.I8, DatumType.F8E4M3FN), 8),
}
"""How many bits codes have, by their type."""

_SCALES: Final[Mapping[type, ElementType]] = {np.float32: F32, np.float16: F16}
