"""Elements before and after axes: one kernel, whatever grows."""

from __future__ import annotations

from tract_llvm.program.views import View, memory_order

from tract_core.dims import Dim
from tract_core.ops.pad import Pad, PadConstant
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.pad import PadPlan
from tract_cuda.lowering import Site
from tract_cuda.positions import in_vectors, launch_over, loops_over
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Pad)
def lower_pad(op: Pad, site: Site) -> None:
    """A view where nothing is added; axes lie in memory as those of the input do."""
    (x,) = site.inputs()
    grown = [axis for axis, pair in enumerate(op.pads) if pair != (0, 0)]
    if not grown:
        site.place(x)
        return
    result = site.lowering.new_like(site.outlet, x)
    order = memory_order(result) or tuple(range(len(x.shape)))
    data, target = (one.transposed(order).as_bits() for one in (x, result))
    alone = [order.index(axis) for axis in grown]
    loops, kept = loops_over(target.shape, [data.strides, target.strides], alone)
    lanes = 1
    if len(loops) - 1 not in kept:
        loops, lanes = in_vectors(loops, [data, target], [0, 1])
    given: dict[str, View | Dim] = {}
    for number, axis in enumerate(sorted(alone)):
        given |= {f"before{number}": op.pads[order[axis]][0], f"inside{number}": data.shape[axis]}
    mode = None if isinstance(op.mode, PadConstant) else type(op.mode)
    if isinstance(op.mode, PadConstant):
        given["value"] = site.lowering.constant(op.mode.value.array).as_bits()
    plan = PadPlan(data.element, len(loops), tuple(kept), mode, lanes)
    launch_over(site, plan, loops, {"data": data, "result": target}, [result], **given)
