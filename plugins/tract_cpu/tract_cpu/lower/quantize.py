"""Numbers into small integers and back: elements, with a scale and a zero point for all of them or along one axis."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tract_core.dims import Dim
from tract_core.ops.quantize import DequantizeLinear, LookupTable, QuantizeLinear
from tract_core.plugins.tables import Rows
from tract_cpu.kernels.expressions import Apply, Expression
from tract_cpu.kernels.quantize import dequantize, quantize
from tract_cpu.lower.fusion import Chain, extended
from tract_cpu.lower.gather import Indexed
from tract_cpu.lower.lowering import MOVES, Site
from tract_cpu.lower.map import map_step
from tract_cpu.lower.views import View

ROWS = Rows()

_WIDEST: Final = 32
"""Bits of the widest integers that f64 holds exactly, with room for a zero point."""


@ROWS.row(MOVES, QuantizeLinear, DequantizeLinear)
def lower_linear(op: QuantizeLinear | DequantizeLinear, site: Site) -> str | None:
    """The chain that begins with the operator."""
    if op.block:
        return "native code knows no blocks of one scale"
    views, result = site.inputs(), site.result()
    facts = site.facts()
    if views is None or result is None:
        return "native code does not know these types"
    if any(one.kind in "iu" and one.bits > _WIDEST for one in (views[0].element, views[2].element, result)):
        return "native code quantises to integers of up to 32 bits"
    shape = tuple(facts[0].shape)
    operands = (views[0], *(_along(view, op.axis, shape) for view in views[1:]))
    kinds = tuple(view.element for view in operands)
    step = Apply(op, (0, 1, 2), result, quantize if isinstance(op, QuantizeLinear) else dequantize)
    chain = extended(site.lowering, Chain(Expression(kinds, (step,)), operands, site.outlet, (site.node.node,)))
    target = site.lowering.new(chain.outlet)
    site.add(map_step(chain.expression, chain.operands, target, site.isa, chain.nodes))
    return None


@ROWS.row(MOVES, LookupTable)
def lower_table(op: LookupTable, site: Site) -> str | None:
    """A copy for every byte. A negative one counts from the end of the table, where the byte with the same bits is."""
    (x,) = site.known_inputs()
    table = site.lowering.constant(op.table.array)
    assert table is not None  # the result has its type
    result = site.lowering.new(site.outlet)
    entries = View(table.storage, table.element, x.shape, (0,) * len(x.shape))
    site.add_all([Indexed(entries, x, result, 0, ((len(op.table.array), 1),), None).reading(site.isa)])
    return None


def _along(view: View, axis: int, shape: tuple[Dim, ...]) -> View:
    """One number for all elements, or one per position of an axis, stretched to a shape."""
    if not view.shape:
        return view.stretched(shape)
    behind = len(shape) - 1 - axis
    placed = replace(view, shape=(*view.shape, *[1] * behind), strides=(*view.strides, *[0] * behind))
    return placed.stretched(shape)
