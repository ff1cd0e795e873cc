"""Products with weights of a few bits, quantised in blocks, and rows of them (domain ``com.microsoft``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.frontend.precision import rounded_once
from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.gather import Gather
from tract_core.ops.quantize import DequantizeLinear
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import MICROSOFT_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

TYPES: Final = {2: DatumType.U2, 4: DatumType.U4, 8: DatumType.U8}
"""The element type of weights, by how many bits they have."""


@onnx_op(ROWS, "MatMulNBits", domain=MICROSOFT_DOMAIN)
@rounded_once()
def matmul_nbits(node: OnnxNode, wire: Wiring) -> OutletId:
    """X times the transpose of a matrix [N, K] of small integers, which are centred and scaled block by block

    Without zero points, the middle of the range stands for zero. ``g_idx`` says which block each of the K columns
    belongs to, where that is not the order of the columns. X itself is never rounded, also where ``accuracy_level``
    allows it.
    """
    x, bias = wire.input(0), wire.optional_input(5)
    bits, block = node.integer("bits", 4), node.integer("block_size")
    rows, columns = node.integer("N"), node.integer("K")
    if bits not in TYPES:
        raise Unsupported(f"MatMulNBits with {bits} bits, known are {', '.join(map(str, TYPES))}")
    if block < 1 or rows < 1 or columns < 1:
        raise CorruptModel(f"MatMulNBits with N={rows}, K={columns} and blocks of {block} makes no sense")
    result = _times(node, wire, x, _weights(wire, rows, columns, bits, block))
    return result if bias is None else wire.binary(Add(), result, bias)


def _times(node: OnnxNode, wire: Wiring, x: OutletId, weights: OutletId) -> OutletId:
    """``x`` times the transpose of a matrix [N, K], in the type of ``x``."""
    if wire.rank(x) < 1:
        raise FactError(f"{node.op_type} wants at least one axis, found {wire.fact(x)}")
    kind, names = wire.dtype(x).storage, "abcdefghijl"[: wire.rank(x) - 1]
    axes = AxesMapping((f"{names}k", "nk"), (f"{names}n",))
    return wire.cast(wire.op(EinSum(axes, accumulator(kind)), x, wire.cast(weights, kind)), kind)


def _weights(wire: Wiring, rows: int, columns: int, bits: int, block: int) -> OutletId:
    """The matrix [N, K] of real numbers."""
    blocks = -(-columns // block)
    packed, scale = wire.known(wire.input(1), "the weights of MatMulNBits"), wire.input(2)
    quants = unpacked(packed, bits, rows, blocks * block)[:, :columns]
    q = wire.const(Constant(quants.astype(TYPES[bits].numpy)))
    scale = wire.reshape(scale, (rows, blocks))
    zero = _zero_points(wire, rows, blocks, bits)
    groups = wire.optional_input(4)
    if groups is None and wire.dtype(zero).is_integer():
        return wire.op(DequantizeLinear(wire.dtype(scale).storage, 1, block), q, scale, zero)
    if groups is None:
        groups = wire.const(np.arange(columns) // block)
    kind = wire.dtype(scale)
    scale, zero = (wire.op(Gather(1), wire.cast(one, kind), _first(wire, groups, columns)) for one in (scale, zero))
    return wire.op(Mul(), wire.op(Sub(), wire.cast(q, kind), zero), scale)


def _first(wire: Wiring, groups: OutletId, columns: int) -> OutletId:
    """The block of each column; files may list blocks for columns that only fill up the last one."""
    given = wire.known(groups, "the blocks of MatMulNBits").reshape(-1)
    if len(given) < columns:
        raise CorruptModel(f"'g_idx' has {len(given)} entries for {columns} columns")
    return wire.const(given[:columns].astype(np.int64))


def _zero_points(wire: Wiring, rows: int, blocks: int, bits: int) -> OutletId:
    """What stands for zero in each block, [N, blocks]: integers like the weights, or real numbers."""
    given = wire.optional_input(3)
    kind = TYPES[bits]
    if given is None:
        return wire.const(Constant(np.full((rows, blocks), 1 << (bits - 1)).astype(kind.numpy)))
    if wire.dtype(given).is_float():
        return wire.reshape(given, (rows, blocks))
    packed = wire.known(given, "the zero points of MatMulNBits")
    per_byte = 8 // bits
    return wire.const(
        Constant(unpacked(packed, bits, rows, -(-blocks // per_byte) * per_byte)[:, :blocks].astype(kind.numpy))
    )


_FP4: Final = (0, 5.208333333e-03, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25)
_CODES: Final = {
    0: (*_FP4, *(-value for value in _FP4)),
    1: (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
        *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
        *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ),
}
"""What the 16 codes stand for, by ``quant_type``: FP4 and NF4 of bitsandbytes (Dettmers et al. 2023, appendix E)."""


@onnx_op(ROWS, "MatMulBnb4", domain=MICROSOFT_DOMAIN)
@rounded_once()
def matmul_bnb4(node: OnnxNode, wire: Wiring) -> OutletId:
    """X times the transpose of a matrix [N, K] of 4-bit codes for numbers up to 1, scaled block by block"""
    rows, columns, block, code = (node.integer(name) for name in ("N", "K", "block_size", "quant_type"))
    if code not in _CODES:
        raise Unsupported(f"MatMulBnb4 with quant_type {code}, known are {', '.join(map(str, _CODES))}")
    packed = wire.known(wire.input(1), "the weights of MatMulBnb4").reshape(-1)
    if block < 1 or rows < 1 or columns < 1 or packed.dtype != np.uint8 or packed.size != -(-rows * columns // 2):
        raise CorruptModel(
            f"{packed.size} elements of {packed.dtype} do not hold {rows} rows of {columns} codes in blocks of {block}"
        )
    codes = np.stack([packed >> 4, packed & 15], axis=1).reshape(-1)[: rows * columns]
    blocks = -(-codes.size // block)
    scale = wire.reshape(wire.input(2), (blocks,))
    scale = wire.op(Gather(0), scale, wire.const(np.arange(codes.size) // block))
    values = np.array(_CODES[code], np.float32)[codes]
    weights = wire.op(Mul(), wire.const(values), wire.cast(scale, DatumType.F32))
    return _times(node, wire, wire.input(0), wire.reshape(weights, (rows, columns)))


@onnx_op(ROWS, "GatherBlockQuantized", domain=MICROSOFT_DOMAIN)
def gather_block_quantized(node: OnnxNode, wire: Wiring) -> OutletId:
    """The slices at given positions of a tensor of small integers, as real numbers

    The integers are centred and scaled block by block along one axis. Where bytes hold several of them, the middle of
    the range stands for zero unless zero points are given.
    """
    data, indices, scale, zero = wire.input(0), wire.input(1), wire.input(2), wire.optional_input(3)
    bits, block = node.integer("bits", 4), node.integer("block_size", 128)
    if bits not in TYPES:
        raise Unsupported(f"GatherBlockQuantized with {bits} bits, known are {', '.join(map(str, TYPES))}")
    middle = 0
    if wire.dtype(data) is DatumType.U8:
        middle = 1 << (bits - 1)
        data, zero = _spread(wire, data, bits), None if zero is None else _spread(wire, zero, bits)
    kind, rank = wire.dtype(data), wire.rank(data)
    if zero is None:
        zero = wire.broadcast(wire.const(Constant(np.array(middle).astype(kind.numpy))), wire.shape(scale))
    taken, along = node.axis("gather_axis", rank, 0), node.axis("quantize_axis", rank, 1)
    if taken == along:
        raise Unsupported("GatherBlockQuantized takes slices from the axis along which blocks are")
    data, scale, zero = (wire.op(Gather(taken), one, indices) for one in (data, scale, zero))
    axis = along + (wire.rank(indices) - 1 if along > taken else 0)
    return wire.op(DequantizeLinear(wire.dtype(scale).storage, axis, block), data, scale, zero)


def _spread(wire: Wiring, packed: OutletId, bits: int) -> OutletId:
    """Small integers that share bytes along the last axis, the lowest bits first, as elements of their own."""
    value = wire.known(packed, "the integers of GatherBlockQuantized")
    if value.ndim < 1:
        raise CorruptModel("the integers of GatherBlockQuantized have no axis")
    columns = value.shape[-1] * 8 // bits
    spread = unpacked(value, bits, value.size * 8 // bits // max(columns, 1), columns)
    return wire.const(Constant(spread.reshape(*value.shape[:-1], columns).astype(TYPES[bits].numpy)))


def unpacked(packed: Array, bits: int, rows: int, columns: int) -> Array:
    """Small integers that share bytes, the lowest bits first: [rows, columns]."""
    if packed.dtype != np.uint8 or packed.size * 8 != rows * columns * bits:
        raise CorruptModel(
            f"{packed.size} elements of {packed.dtype} do not hold {rows} rows of {columns} integers of {bits} bits"
        )
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (packed.reshape(rows, -1, 1) >> shifts & ((1 << bits) - 1)).reshape(rows, columns)
