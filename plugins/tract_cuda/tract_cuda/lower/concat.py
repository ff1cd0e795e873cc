"""Tensors one behind the other."""

from __future__ import annotations

from tract_core.dims import Dim
from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, TypedConcat)
def lower_concat(op: TypedConcat, site: Site) -> None:
    """A copy of each to its place; axes lie in memory as those of the first input do."""
    inputs = site.inputs()
    result = site.lowering.new_like(site.outlet, inputs[0])
    start: Dim = 0
    for x in inputs:
        size = x.shape[op.axis]
        site.lowering.copy(x, result.part(op.axis, start, size), site.group.nodes)
        start = start + size
