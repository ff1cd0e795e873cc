"""Tensors that stay in blocks, which kernels unpack as they read."""

from __future__ import annotations

from typing import Final

import numpy as np
from tract_llvm.language.types import F32, U32, ElementType, element_type

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.quantize import DequantizeLinear
from tract_core.plugins.keys import Array
from tract_cuda.blocks import BlockRecord
from tract_cuda.group.groups import Packed
from tract_cuda.kernels.blocks import BlockForm
from tract_cuda.table import BLOCKS

_WIDEST: Final = 8
"""Bits of the widest codes: of a zero point of so many, f32 holds every difference."""


def packed_of(model: TypedModel, node: TypedNode) -> Packed | None:
    """A node alone whose result stays in blocks; ``None`` for any other."""
    if isinstance(node.op, DequantizeLinear):
        form = _form_of(node.op, model, node) if _is_read_in_blocks(model, node, node.op.axis) else None
        return None if form is None else Packed((node.id,), form, None)
    describe = model.registry[BLOCKS].find(type(node.op))
    record = None if describe is None else describe(node.op)
    return Packed((node.id,), record.form, record) if isinstance(record, BlockRecord) else None


def _is_read_in_blocks(model: TypedModel, node: TypedNode, axis: int) -> bool:
    """Whether somebody sums over the axis along which blocks are, or picks slices along another one."""
    for reader in model.outlet(OutletId(node.id)).successors:
        op = model.nodes[reader.node].op
        if isinstance(op, Gather) and reader.slot == 0 and op.axis != axis:
            return True
        if isinstance(op, IndexedMatMul) and reader.slot == 1 and axis == 2:
            return True
        if isinstance(op, EinSum) and op.axes.inputs[reader.slot][axis] not in op.axes.outputs[0]:
            return True
    return False


def _form_of(op: DequantizeLinear, model: TypedModel, node: TypedNode) -> BlockForm | None:
    """How a constant lies in blocks; ``None`` where it does not, or where words hold no whole blocks."""
    x, scale, zero = (_constant(model, outlet) for outlet in node.inputs)
    codes, scales, zeros, to = (
        element_type(model.outlet_fact(outlet).datum_type.storage) for outlet in (*node.inputs, OutletId(node.id))
    )
    if x is None or scale is None or zero is None or not op.block or scale.ndim != x.ndim:
        return None
    if codes is None or scales is None or zeros is None or to is None or op.block * codes.bits % U32.bits:
        return None
    if codes.kind not in "iu" or codes.bits > _WIDEST or not (_is_narrow(scales) and _is_narrow(to)):
        return None
    return BlockForm(op.block, codes, False, U32, scales, _same(zero, zeros), to)


def _constant(model: TypedModel, outlet: OutletId) -> Array | None:
    value = model.outlet_fact(outlet).value
    return value.array if isinstance(value, Constant) else None


def _is_narrow(element: ElementType) -> bool:
    """Whether f32 holds all numbers of a type, which kernels compute with."""
    return element.kind == "f" and element.bits <= F32.bits and not element.is_carried


def _same(zeros: Array, element: ElementType) -> ElementType | int:
    """The one zero point of all blocks, where they have the same."""
    numbers = np.asarray(zeros, np.int64).reshape(-1)
    return int(numbers[0]) if numbers.size and (numbers == numbers[0]).all() else element
