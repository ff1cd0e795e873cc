"""Axes added, removed, moved and arranged anew."""

from __future__ import annotations

from tract_core.model.identity import Identity, PinConst
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.reshape import DynReshape
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Identity)
@ROWS.row(ONNX_WRITE, PinConst)
def identity(op: Identity | PinConst, node: Spelling) -> str:
    """Identity"""
    return node.add("Identity", node.input())


@ROWS.row(ONNX_WRITE, AddAxis)
def add_axis(op: AddAxis, node: Spelling) -> str:
    """Unsqueeze"""
    return node.with_axes(node.input(), [op.axis])


@ROWS.row(ONNX_WRITE, RmAxis)
def rm_axis(op: RmAxis, node: Spelling) -> str:
    """Squeeze"""
    return node.without_axes(node.input(), [op.axis])


@ROWS.row(ONNX_WRITE, MoveAxis)
def move_axis(op: MoveAxis, node: Spelling) -> str:
    """Transpose"""
    return node.transposed(node.input(), op.permutation(node.fact().rank))


@ROWS.row(ONNX_WRITE, Reshape)
def reshape(op: Reshape, node: Spelling) -> str:
    """Reshape; a size that is a symbol need not be computed where it is the only one, or stays in its place."""
    before, after = node.fact().shape, node.result().shape
    short = [0 if place < len(before) and size == before[place] != 0 else size for place, size in enumerate(after)]
    unknown = [place for place, size in enumerate(short) if not isinstance(size, int)]
    if len(unknown) == 1 and 0 not in after:
        short[unknown[0]] = -1
    if 0 in after or len(unknown) > 1:
        return node.reshaped(node.input(), after)
    return node.add("Reshape", node.input(), node.sizes(short))


@ROWS.row(ONNX_WRITE, DynReshape)
def dyn_reshape(op: DynReshape, node: Spelling) -> str:
    """Reshape"""
    return node.add("Reshape", *node.inputs, allowzero=int(op.allow_zero))
