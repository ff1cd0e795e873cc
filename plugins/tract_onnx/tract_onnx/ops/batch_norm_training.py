"""Batch normalisation, by statistics that are given, or by those of the batch itself, as in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.dims import product
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.norm import wire_batch_norm
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

_ROLES: Final = ("scale", "bias", "mean", "variance")


@onnx_op(ROWS, "BatchNormalization")
def batch_norm_1(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """A node is in training mode unless an attribute says otherwise"""
    return (_by_given(node, wire),) if node.flag("is_test") else _with_statistics(node, wire)


@onnx_op(ROWS, "BatchNormalization", since=7)
def batch_norm_7(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """A node is in training mode when its statistics are asked for"""
    trains = any(node.wants_output(slot) for slot in range(1, 5))
    return _with_statistics(node, wire) if trains else (_by_given(node, wire),)


def _with_statistics(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    if node.flag("spatial", True):
        result, (mean, variance), running = _by_batch(node, wire)
        return result, *running, mean, variance
    flat = Wiring(wire.model, wire.name, _flat(wire), wire.outer)
    result, found, running = _by_batch(node, flat)
    given = wire.shape(wire.input(3))
    statistics = (wire.reshape(outlet, given) for outlet in (*running, *found))
    return wire.reshape(result, wire.shape(wire.input(0))), *statistics


def _flat(wire: Wiring) -> list[OutletId]:
    """The inputs where there is one of each parameter per element of an item: each element is a channel."""
    x, *parameters = (wire.input(slot) for slot in range(5))
    shape = wire.shape(x)
    for role, parameter in zip(_ROLES, parameters, strict=True):
        wire.require_shape(role, parameter, shape[1:])
    flat = wire.reshape(x, (shape[0], product(shape[1:])))
    return [flat, *(wire.reshape(y, (wire.shape(y).volume,)) for y in parameters)]


@onnx_op(ROWS, "BatchNormalization", since=14)
def batch_norm_14(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """An attribute says whether a node is in training mode"""
    if not node.flag("training_mode"):
        return (_by_given(node, wire),)
    result, _, running = _by_batch(node, wire)
    return result, *running


def _by_given(node: OnnxNode, wire: Wiring) -> OutletId:
    shape, kind = wire.shape(wire.input(0)), wire.dtype(wire.input(0))
    spatial = node.flag("spatial", True)  # up to version 8
    inputs = [wire.input(slot) for slot in range(5)] if spatial else _flat(wire)
    if any(wire.dtype(one) != kind for one in inputs):
        widest = max((wire.dtype(one) for one in inputs), key=lambda one: one.itemsize)
        inputs = [wire.cast(one, DatumType.F32 if widest.itemsize < 4 else widest) for one in inputs]
    x, scale, bias, mean, variance = inputs
    eps = node.number("epsilon", 1e-5)
    result = wire.through(wire_batch_norm, x, scale=scale, bias=bias, mean=mean, variance=variance, eps=eps)
    result = wire.cast(result, kind)
    return result if spatial else wire.reshape(result, shape)


def _by_batch(node: OnnxNode, wire: Wiring) -> tuple[OutletId, Sequence[OutletId], Sequence[OutletId]]:
    """The standardised tensor; mean and variance of each channel; the running ones, moved a little towards these."""
    x, scale, bias, *running = (wire.input(slot) for slot in range(5))
    kind, rank = wire.dtype(x), wire.rank(x)
    if rank < 2:
        raise FactError(f"a batch and channels are wanted, found {wire.fact(x)}")
    for role, parameter in zip(_ROLES, (scale, bias, *running), strict=True):
        wire.require_shape(role, parameter, wire.shape(x)[1:2])
    others = tuple(axis for axis in range(rank) if axis != 1)
    compute = DatumType.F32 if kind.itemsize < 4 else kind
    wide = Wired(wire, x).cast(compute)
    mean = wide.mean(others)
    centred = wide - mean
    variance = centred.mean_of_squares(others)
    inverse = (variance + node.number("epsilon", 1e-5)).rsqrt()
    scale, bias = (Wired(wire, parameter).cast(compute).unsqueeze(others) for parameter in (scale, bias))
    result = centred * inverse * scale + bias
    found = [one.squeeze(others) for one in (mean, variance)]
    moved = [_towards(node, Wired(wire, old), new).outlet for old, new in zip(running, found, strict=True)]
    return result.cast(kind).outlet, [one.cast(kind).outlet for one in found], moved


def _towards(node: OnnxNode, old: Wired, new: Wired) -> Wired:
    """``old * momentum + new * (1 - momentum)``, in the type of the old"""
    momentum = node.number("momentum", 0.9)
    return (old.cast(new.dtype) * momentum + new * (1 - momentum)).cast(old.dtype)
