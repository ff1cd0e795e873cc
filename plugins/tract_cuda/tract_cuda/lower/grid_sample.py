"""Samples of an image at the places of a grid."""

from __future__ import annotations

from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, comparison, product
from tract_core.ops.grid_sample import GridSample
from tract_core.ops.interpolate import Interpolator
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.grid_sample import GridSamplePlan
from tract_cuda.lower.check import refusing
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import strides_of
from tract_cuda.table import CUDA

ROWS = Rows()

_MOST_CUBIC = 2
"""Spatial axes along which four elements are read each."""

_MOST = 4
"""Spatial axes that there are kernels for: all that is read is written out."""


@ROWS.row(CUDA, GridSample)
def lower_grid_sample(op: GridSample, site: Site) -> str | None:
    """One kernel, behind one that refuses images that have no elements to read."""
    image, grid = site.inputs()
    axes = len(image.shape) - 2
    why = why_carried(site)
    if why is None and axes > (_MOST_CUBIC if op.mode is Interpolator.CUBIC else _MOST):
        why = "there are no kernels for images of so many axes"
    if why is not None:
        return why
    (result,) = site.results()
    spatial = result.shape[2:]
    count = product([result.shape[0], *spatial])
    given: dict[str, View | Dim] = {"count": count, "channels": image.shape[1], "size0": result.shape[0]}
    given |= {f"size{1 + axis}": size for axis, size in enumerate(spatial)}
    given |= {f"input{axis}": size for axis, size in enumerate(image.shape[2:])}
    given |= strides_of({"image": image, "grid": grid, "result": result})
    refusing(site, [(comparison(size, "==", 0), 0) for size in image.shape[2:]])
    plan = GridSamplePlan(image.element, grid.element, axes, op.mode, op.padding_mode, op.align_corners)
    site.launch(plan, [ceil_div(count, plan.threads)], given, [result])
    return None
