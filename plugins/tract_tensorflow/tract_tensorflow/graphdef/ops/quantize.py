"""Numbers rounded as if they were stored in a few bits."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


def _rounded(node: GraphNode, wire: GraphWiring, low: Wired, high: Wired) -> Wired:
    """X in equal steps between two numbers, which are moved so that 0 is one of the steps."""
    bits = node.integer("num_bits", 8)
    if not 2 <= bits <= 16:
        raise node.misfit("num_bits", f"is {bits}", "2 to 16")
    first, last = int(node.flag("narrow_range")), (1 << bits) - 1
    scale = (high - low) / float(last - first)
    zero = first - low / scale
    zero = (zero < first).where(float(first), (zero > last).where(float(last), (zero + 0.5).floor()))
    least, most = (first - zero) * scale, (last - zero) * scale
    inside = wire.tensor(0).maximum(least).minimum(most) - least
    result = (inside / scale + 0.5).floor() * scale + least
    return (low.eq(0) & high.eq(0)).where(0, result)


@tf_op(ROWS, "FakeQuantWithMinMaxArgs")
def fake_quant_of_attributes(node: GraphNode, wire: GraphWiring) -> Wired:
    """Between two attributes"""
    x = wire.tensor(0)
    low, high = (x.like(node.number(name, default)) for name, default in (("min", -6.0), ("max", 6.0)))
    return _rounded(node, wire, low, high)


@tf_op(ROWS, "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant(node: GraphNode, wire: GraphWiring) -> Wired:
    """Between two inputs: numbers, or one for each channel"""
    low, high = wire.tensor(1), wire.tensor(2)
    if node.op_type.endswith("PerChannel") and not low.rank == high.rank == 1:
        raise FactError(f"one number for each channel is wanted, found {low.fact} and {high.fact}")
    return _rounded(node, wire, low, high)
