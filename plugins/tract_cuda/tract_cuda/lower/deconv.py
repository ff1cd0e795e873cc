"""Deconvolutions: one thread for each output, neighbours as the elements lie in memory."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.program.views import View, memory_order

from tract_core.dims import Dim, ceil_div, product
from tract_core.ops.deconv import Deconv
from tract_core.plugins.tables import Rows
from tract_cuda.group.conv import sums_of
from tract_cuda.kernels.deconv import DeconvPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lower.spatial import along, in_order, weights_in_order
from tract_cuda.lowering import Site
from tract_cuda.positions import counted, strides_of
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Deconv)
def lower_deconv(op: Deconv, site: Site) -> str | None:
    """One kernel."""
    why, model = why_carried(site), site.lowering.model
    sums = sums_of(model, model.nodes[site.node.node])
    if why is not None or sums is None:
        return why or "kernels do not sum in that type"
    (x, weights, bias), rank = site.inputs(), op.pool.rank
    axes = op.pool.transposed_plan(op, x.shape, op.adjustments)
    result = site.lowering.new_like(site.outlet, x)
    data, target = (in_order(op.pool, one) for one in (x, result))
    weights = weights_in_order(op, weights)
    channels = target.shape[-1]
    bias = bias if bias.shape else replace(bias, shape=(1,), strides=(1,))
    given: dict[str, View | Dim] = {"outputs": channels // op.group, "inputs": weights.shape[1]}
    given |= counted(target.shape) | along(axes)
    given |= strides_of({"data": data, "result": target, "weights": weights, "bias": bias.stretched((channels,))})
    window, order = tuple(one.window.kernel for one in axes), memory_order(target) or tuple(range(rank + 2))
    plan = DeconvPlan(x.element, weights.element, result.element, sums, window, order)
    site.launch(plan, [ceil_div(product(target.shape), plan.threads)], given, [result])
    return None
