"""Elements written to places that a tensor names."""

from __future__ import annotations

from typing import Final

from tract_core.model.graph import OutletId
from tract_core.ops.scatter import Reduction, ScatterElements, ScatterNd
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

_REDUCTIONS: Final[dict[str, Reduction]] = {"none": "none", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def _reduction(node: OnnxNode) -> Reduction:
    return _REDUCTIONS[node.choice("reduction", _REDUCTIONS, "none")]


@onnx_op(ROWS, "Scatter", since=9)
@onnx_op(ROWS, "ScatterElements", since=11)
def scatter_elements(node: OnnxNode, wire: Wiring) -> OutletId:
    """X with each element of the third input written to the position on ``axis`` that the second holds"""
    x = wire.input(0)
    axis = node.axis("axis", wire.rank(x), 0)
    return wire.op(ScatterElements(axis, _reduction(node)), x, wire.input(1), wire.input(2))


@onnx_op(ROWS, "ScatterND", since=11)
def scatter_nd(node: OnnxNode, wire: Wiring) -> OutletId:
    """X with slices of the third input written to the coordinates in the last axis of the second"""
    return wire.op(ScatterNd(_reduction(node)), wire.input(0), wire.input(1), wire.input(2))
