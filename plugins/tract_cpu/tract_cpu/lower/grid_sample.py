"""Samples of an image at the places of a grid."""

from __future__ import annotations

from tract_core.dims import Dim, ceil_div, comparison, product
from tract_core.ops.grid_sample import GridSample
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.grid_sample import PLACES, GridSamplePlan
from tract_cpu.kernels.runs import Run
from tract_cpu.lower.check import refusing
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU

ROWS = Rows()


@ROWS.row(CPU, GridSample)
def lower_grid_sample(op: GridSample, site: Site) -> str | None:
    """One kernel, behind one that refuses images that have no elements to read."""
    image, grid = site.known_inputs()
    axes = len(image.shape) - 2
    grid = site.lowering.contiguous(grid)
    result = site.lowering.new(site.outlet)
    narrowest = min(one.element.bytes * 8 for one in (image, grid))
    run = Run(site.isa.lanes(image.element.computed.bits), site.isa.masks_bits <= narrowest)
    plan = GridSamplePlan(image.element, grid.element, axes, op.mode, op.padding_mode, op.align_corners, run)
    places = product(grid.shape[1:-1])
    given = arguments(
        plan,
        image=image.address,
        grid=grid.address,
        result=result.address,
        places=places,
        channels=image.shape[1],
        image_stride=image.strides[0],
        channel_stride=image.strides[1],
        axes=[
            {"size": size, "strides": [stride]} for size, stride in zip(image.shape[2:], image.strides[2:], strict=True)
        ],
    )
    work = product(result.shape) * op.mode.reach**axes
    tasks = image.shape[0] * ceil_div(places, PLACES)
    fits: list[tuple[Dim, Dim]] = [(comparison(size, "==", 0), 0) for size in image.shape[2:]]
    site.add_all(
        [
            *refusing(fits, result),
            NativeStep(plan, given, tasks, (), (result.storage,), plan.scratch(), work),
        ]
    )
    return None
