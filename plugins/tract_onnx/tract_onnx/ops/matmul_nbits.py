"""Products with weights of a few bits, quantised in blocks (domain ``com.microsoft``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel, FactError, Unsupported
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

_TYPES: Final = {2: DatumType.U2, 4: DatumType.U4, 8: DatumType.U8}
"""The element type of weights, by how many bits they have."""


@onnx_op(ROWS, "MatMulNBits", domain=MICROSOFT_DOMAIN)
def matmul_nbits(node: OnnxNode, wire: Wiring) -> OutletId:
    """X times the transpose of a matrix [N, K] of small integers, which are centred and scaled block by block

    Without zero points, the middle of the range stands for zero. ``g_idx`` says which block each of the K columns
    belongs to, where that is not the order of the columns.
    """
    x, bias = wire.input(0), wire.optional(5)
    bits, block = node.int("bits", 4), node.int("block_size")
    rows, columns = node.int("N"), node.int("K")
    if bits not in _TYPES:
        raise Unsupported(f"MatMulNBits with {bits} bits, known are {', '.join(map(str, _TYPES))}")
    if block < 1 or rows < 1 or columns < 1:
        raise CorruptModel(f"MatMulNBits with N={rows}, K={columns} and blocks of {block} makes no sense")
    kind = wire.dtype(x).storage
    weights = wire.cast(_weights(wire, rows, columns, bits, block), kind)
    names = "abcdefghijl"[: wire.rank(x) - 1]
    if wire.rank(x) < 1:
        raise FactError(f"MatMulNBits wants at least one axis, found {wire.fact(x)}")
    axes = AxesMapping((f"{names}k", "nk"), (f"{names}n",))
    result = wire.cast(wire.op(EinSum(axes, accumulator(kind)), x, weights), kind)
    return result if bias is None else wire.binary(Add(), result, bias)


def _weights(wire: Wiring, rows: int, columns: int, bits: int, block: int) -> OutletId:
    """The matrix [N, K] of real numbers."""
    blocks = -(-columns // block)
    packed, scale = wire.known(wire.input(1), "the weights of MatMulNBits"), wire.input(2)
    quants = _unpacked(packed, bits, rows, blocks * block)[:, :columns]
    q = wire.const(Constant(quants.astype(_TYPES[bits].numpy)))
    scale = wire.reshape(scale, (rows, blocks))
    zero = _zero_points(wire, rows, blocks, bits)
    groups = wire.optional(4)
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
    given = wire.optional(3)
    kind = _TYPES[bits]
    if given is None:
        return wire.const(Constant(np.full((rows, blocks), 1 << (bits - 1)).astype(kind.numpy)))
    if wire.dtype(given).is_float():
        return wire.reshape(given, (rows, blocks))
    packed = wire.known(given, "the zero points of MatMulNBits")
    per_byte = 8 // bits
    return wire.const(
        Constant(_unpacked(packed, bits, rows, -(-blocks // per_byte) * per_byte)[:, :blocks].astype(kind.numpy))
    )


def _unpacked(packed: Array, bits: int, rows: int, columns: int) -> Array:
    """Small integers that share bytes, the lowest bits first: [rows, columns]."""
    if packed.dtype != np.uint8 or packed.size * 8 != rows * columns * bits:
        raise CorruptModel(
            f"{packed.size} elements of {packed.dtype} do not hold {rows} rows of {columns} integers of {bits} bits"
        )
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (packed.reshape(rows, -1, 1) >> shifts & ((1 << bits) - 1)).reshape(rows, columns)
