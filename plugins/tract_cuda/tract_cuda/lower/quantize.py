"""Numbers into small integers and back: elements, with a scale and a zero point for all of them or along one axis."""

from __future__ import annotations

from tract_llvm.fuse.chain import Chain
from tract_llvm.program.scales import along_axis, by_blocks

from tract_core.ops.quantize import DequantizeLinear, LookupTable, QuantizeLinear
from tract_core.plugins.tables import Rows
from tract_cuda.group.groups import Scaled
from tract_cuda.group.quantize import converting
from tract_cuda.kernels.table import TablePlan
from tract_cuda.lowering import Site
from tract_cuda.maps import map_launch
from tract_cuda.positions import launch_over, loops_over
from tract_cuda.table import CUDA, KINDS

ROWS = Rows()


@ROWS.row(CUDA, QuantizeLinear, DequantizeLinear)
def lower_linear(op: QuantizeLinear | DequantizeLinear, site: Site) -> str | None:
    """The operator, where nothing is computed behind it."""
    model = site.lowering.model
    chain = converting(op, model, model.nodes[site.node.node])
    return "kernels quantise to integers of up to 32 bits" if chain is None else _lower(op, site, chain)


@ROWS.row(KINDS, Scaled)
def lower_scaled(site: Site) -> str | None:
    """The operator, and what is computed behind it."""
    group, op = site.group, site.node.op
    assert isinstance(group, Scaled) and isinstance(op, QuantizeLinear | DequantizeLinear)  # noqa: PT018 (tables)
    return _lower(op, site, group.chain)


def _lower(op: QuantizeLinear | DequantizeLinear, site: Site, chain: Chain) -> None:
    """One kernel; where blocks have one scale, one for whole blocks, and one for what is left."""
    lowering = site.lowering
    views = [lowering.view(outlet) for outlet in chain.operands]
    shape = tuple(lowering.model.outlet_fact(chain.outlet).shape)
    in_blocks = bool(op.block and views[1].shape)
    if not in_blocks:
        views[1:3] = [along_axis(view, op.axis, shape) for view in views[1:3]]
    views[3:] = [view.stretched(shape) for view in views[3:]]
    tensors = (*views, lowering.new_like(chain.outlet, views[0]))
    for part in by_blocks(tensors, op.axis, op.block) if in_blocks else [tensors]:
        lowering.steps.append(map_launch(chain.expression, part[:-1], part[-1], site.group.nodes))


@ROWS.row(CUDA, LookupTable)
def lower_table(op: LookupTable, site: Site) -> None:
    """One kernel; the result lies in memory as the bytes do."""
    (x,) = site.inputs()
    table = site.lowering.constant(op.table.array).as_bits()
    result = site.lowering.new_like(site.outlet, x)
    source, target = x.as_bits(), result.as_bits()
    loops, _ = loops_over(x.shape, [source.strides, target.strides])
    plan = TablePlan(table.element, len(loops))
    launch_over(site, plan, loops, {"data": source, "result": target}, [result], table=table)
