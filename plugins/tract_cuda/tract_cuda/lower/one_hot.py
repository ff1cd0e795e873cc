"""Integers as vectors with one element that differs."""

from __future__ import annotations

from dataclasses import replace

from tract_core.ops.one_hot import OneHot
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.one_hot import OneHotPlan
from tract_cuda.lowering import Site
from tract_cuda.positions import launch_over, loops_over
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, OneHot)
def lower_one_hot(op: OneHot, site: Site) -> None:
    """One kernel; a number outside is no place at all."""
    (numbers,) = site.inputs()
    (result,) = site.results()
    off, on = (site.lowering.constant(one.array).as_bits() for one in (op.off, op.on))
    strides = (*numbers.strides[: op.axis], 0, *numbers.strides[op.axis :])
    each, target = replace(numbers, shape=result.shape, strides=strides), result.as_bits()
    loops, (axis,) = loops_over(result.shape, [each.strides, target.strides], [op.axis])
    plan = OneHotPlan(target.element, numbers.element, len(loops), axis)
    launch_over(site, plan, loops, {"numbers": each, "result": target}, [result], off=off, on=on)
