"""Softmax and its relatives."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import product
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.wiring_dyn import wire_one_hot
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

_OPS: Final = {"Softmax": Softmax, "LogSoftmax": LogSoftmax}


def _trailing_axes(node: OnnxNode, wire: Wiring) -> tuple[int, ...]:
    """Up to version 12, all axes from ``axis`` on count as one."""
    return tuple(range(_axis(node, wire, 1), wire.rank(wire.input(0))))


def _one_axis(node: OnnxNode, wire: Wiring) -> tuple[int, ...]:
    return (_axis(node, wire, -1),)


def _axis(node: OnnxNode, wire: Wiring, default: int) -> int:
    rank = wire.rank(wire.input(0))
    if rank == 0:
        raise FactError(f"{node.op_type} wants at least one axis, found {wire.fact(wire.input(0))}")
    return node.axis("axis", rank, default)


@onnx_op(ROWS, *_OPS)
def softmax_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """Over all axes from ``axis`` on"""
    return wire.op(_OPS[node.op_type](_trailing_axes(node, wire)), wire.input(0))


@onnx_op(ROWS, *_OPS, since=13)
def softmax_13(node: OnnxNode, wire: Wiring) -> OutletId:
    """Over one axis"""
    return wire.op(_OPS[node.op_type](_one_axis(node, wire)), wire.input(0))


@onnx_op(ROWS, "Hardmax")
def hardmax_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """Over all axes from ``axis`` on"""
    x = wire.input(0)
    shape = wire.shape(x)
    axis = _trailing_axes(node, wire)[0]
    flat = wire.reshape(x, (*shape[:axis], product(shape[axis:])))
    return wire.reshape(_hardmax(wire, flat, axis), shape)


@onnx_op(ROWS, "Hardmax", since=13)
def hardmax_13(node: OnnxNode, wire: Wiring) -> OutletId:
    """Over one axis"""
    return _hardmax(wire, wire.input(0), _one_axis(node, wire)[0])


def _hardmax(wire: Wiring, x: OutletId, axis: int) -> OutletId:
    """1 at the first of the largest elements, else 0"""
    fact = wire.fact(x)
    if fact.shape[axis] == 0:
        return x
    places = wire.squeeze(wire.op(Reduce((axis,), Reducer.ARG_MAX_FIRST), x), [axis])
    off, on = (Constant(np.array(value, fact.datum_type.numpy)) for value in (0, 1))
    size = wire.cast(wire.const(fact.shape[axis]), DatumType.I64)
    return wire.through(wire_one_hot, places, size, axis=axis, off=off, on=on)
