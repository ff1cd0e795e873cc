"""Numbers into small integers and back, and the chain behind; bytes by tables, in blocks of channels where they are."""

from __future__ import annotations

from typing import Final

from tract_llvm.elements.expressions import Apply, Expression
from tract_llvm.elements.quantize import dequantize, quantize
from tract_llvm.language.types import I8, U8, element_type

from tract_core.ops.quantize import DequantizeLinear, LookupTable, QuantizeLinear
from tract_core.plugins.tables import Rows
from tract_cpu.group.block_weights import packed_weights
from tract_cpu.group.groups import CpuGroup, Epilogue
from tract_cpu.group.start import GROUPS, Start, read_along
from tract_cpu.kernels.table import has_table

ROWS = Rows()

_WIDEST: Final = 32
"""Bits of the widest integers that f64 holds exactly, with room for a zero point."""


@ROWS.row(GROUPS, QuantizeLinear, DequantizeLinear)
def group_linear(op: QuantizeLinear | DequantizeLinear, start: Start) -> CpuGroup:
    """The chain that begins with the operator; weights of products stay in blocks."""
    packed = packed_weights(start) if isinstance(op, DequantizeLinear) and op.block else None
    if packed is not None:
        return packed
    kinds, result = [start.known.element_at(outlet) for outlet in start.node.inputs], start.result()
    known = tuple(one for one in kinds if one is not None)
    if len(known) < len(kinds) or result is None:
        return start.host("native code does not know these types")
    if any(one.kind in "iu" and one.bits > _WIDEST for one in (known[0], known[2], result)):
        return start.host("native code quantises to integers of up to 32 bits")
    step = Apply(op, (0, 1, 2), result, quantize if isinstance(op, QuantizeLinear) else dequantize)
    chain = start.behind(Expression(known, (step,)), own=start.node.inputs)
    return Epilogue(chain.nodes, (*start.read(), *read_along(chain, None)), None, chain)


@ROWS.row(GROUPS, LookupTable)
def group_table(op: LookupTable, start: Start) -> CpuGroup:
    """Alone."""
    bytes_ = element_type(op.table.datum_type) in (U8, I8)
    form = start.only_blocked(0) if bytes_ and has_table(start.isa) else None
    return start.alone(form, list(start.read(form)))
