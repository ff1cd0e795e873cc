"""Deconvolutions: one thread for each output, neighbours as the elements lie in memory."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.language.types import element_type
from tract_llvm.program.views import View, memory_order

from tract_core.data import DatumType
from tract_core.dims import Dim, ceil_div, product
from tract_core.ops.conv import sum_type
from tract_core.ops.deconv import Deconv
from tract_core.ops.expect import wide
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.deconv import DeconvPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lower.pool import along, in_order
from tract_cuda.lowering import Site
from tract_cuda.positions import strides_of
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Deconv)
def lower_deconv(op: Deconv, site: Site) -> str | None:
    """One kernel."""
    why, model = why_carried(site), site.lowering.model
    kinds = [model.outlet_fact(one).datum_type.storage for one in site.node.inputs[:2]]
    sums = element_type(DatumType.from_numpy(wide(sum_type(kinds[0], kinds[1]).numpy)))
    if why is not None or sums is None:
        return why or "kernels do not sum in that type"
    (x, weights, bias), rank = site.inputs(), op.pool.rank
    axes = op.pool.transposed_plan(op, x.shape, op.adjustments)
    result = site.lowering.new_like(site.outlet, x)
    data, target = (in_order(op.pool, one) for one in (x, result))
    start, kernel = op.kernel_format.h_axis, op.kernel_format
    weights = weights.transposed([kernel.o_axis(rank + 2), kernel.i_axis(rank + 2), *range(start, start + rank)])
    channels, count = target.shape[-1], product(target.shape)
    bias = bias if bias.shape else replace(bias, shape=(1,), strides=(1,))
    given: dict[str, View | Dim] = {"count": count, "outputs": channels // op.group, "inputs": weights.shape[1]}
    given |= {f"size{axis}": size for axis, size in enumerate(target.shape)}
    given |= along(axes)
    tensors = {"data": data, "result": target, "weights": weights, "bias": bias.stretched((channels,))}
    given |= strides_of(tensors)
    window, order = tuple(one.window.kernel for one in axes), memory_order(target) or tuple(range(rank + 2))
    plan = DeconvPlan(x.element, weights.element, result.element, sums, window, order)
    site.launch(plan, [ceil_div(count, plan.threads)], given, [result])
    return None
