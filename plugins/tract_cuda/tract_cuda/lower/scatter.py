"""Elements written to positions of a copy: lists of the updates of each place, then one pass over the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tract_llvm.language.types import I64
from tract_llvm.program.views import View, contiguous_strides

from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.positions import THREADS
from tract_cuda.kernels.scatter import NONE, LinkPlan, ScatterPlan, SortPlan
from tract_cuda.lower.gather import Named, without
from tract_cuda.lowering import Site
from tract_cuda.positions import launch_over, loops_over
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, ScatterElements)
def lower_scatter_elements(op: ScatterElements, site: Site) -> str | None:
    """A list for every element of the result."""
    x, numbers, updates = site.inputs()
    why = _unfit(op, x)
    if why is not None:
        return why
    heads = _heads(site, x.shape)
    limits = ((x.shape[op.axis], heads.strides[op.axis]),)
    updates = site.lowering.compact(updates)
    links = _linked(site, without(heads, [op.axis], numbers.shape), Named(numbers, 0, limits))
    _written(site, op.reduction, _Lists(heads, heads, links), replace(updates, shape=(), strides=()), 1)
    return None


@ROWS.row(CUDA, ScatterNd)
def lower_scatter_nd(op: ScatterNd, site: Site) -> str | None:
    """A list for every place, which is all elements that no coordinate names."""
    x, numbers, updates = site.inputs()
    why = _unfit(op, x)
    if why is not None:
        return why
    outer = len(numbers.shape) - 1
    depth = outer + len(x.shape) - len(updates.shape)
    heads = _heads(site, x.shape[:depth])
    each = replace(numbers, shape=numbers.shape[:-1], strides=numbers.strides[:-1])
    limits = tuple(zip(x.shape[:depth], heads.strides, strict=True))
    nowhere = replace(heads, shape=each.shape, strides=(0,) * outer)
    links = _linked(site, nowhere, Named(each, numbers.strides[-1], limits))
    updates = site.lowering.compact(updates)
    inner = x.shape[depth:]
    spread = replace(heads, shape=x.shape, strides=(*heads.strides, *(0,) * len(inner)))
    run = replace(updates, shape=inner, strides=contiguous_strides(inner))
    _written(site, op.reduction, _Lists(heads, spread, links), run, product(inner))
    return None


@frozen
class _Lists:
    """``heads``: the first update of each place, ``spread`` over the result; ``links``: of each update the next one."""

    heads: View
    spread: View
    links: View


def _heads(site: Site, shape: tuple[Dim, ...]) -> View:
    """Empty lists."""
    heads = site.lowering.scratch(I64, shape)
    none = site.lowering.constant(np.array(NONE))
    site.lowering.copy(none.stretched(shape), heads)
    return heads


def _linked(site: Site, heads: View, named: Named) -> View:
    """Have each update linked into the list of its place."""
    shape = named.numbers.shape
    links = site.lowering.scratch(I64, shape)
    loops, _ = loops_over(shape, [heads.strides, named.numbers.strides])
    plan = LinkPlan(named.numbers.element, len(loops), len(named.limits))
    tensors = {"heads": heads, "numbers": named.numbers}
    launch_over(site, plan, loops, tensors, [heads, links], **named.given(), links=links, status=site.lowering.status())
    return links


def _written(site: Site, reduction: str, lists: _Lists, updates: View, apart: Dim) -> None:
    """Have the result written. ``updates``: what one of them writes to a place; the next one is so far ``apart``."""
    x = site.inputs()[0]
    (result,) = site.results()
    heads, links, count = lists.heads, lists.links, product(lists.heads.shape)
    if reduction != "none" and x.element.kind == "f":
        given: dict[str, View | Dim] = {"count": count, "heads": heads, "links": links}
        site.launch(SortPlan(), [ceil_div(count, THREADS)], given, [heads, links])
    moved = x if reduction != "none" else x.as_bits()
    data, target = moved, replace(result, element=moved.element)
    each = replace(updates, element=moved.element)
    along = (*(0,) * (len(x.shape) - len(each.shape)), *each.strides)
    loops, _ = loops_over(x.shape, [data.strides, lists.spread.strides, along, target.strides])
    plan = ScatterPlan(moved.element, len(loops), reduction)
    tensors = {"data": data, "heads": lists.spread, "updates": each, "result": target}
    launch_over(site, plan, loops, tensors, [result], apart=apart, links=links)


def _unfit(op: ScatterElements | ScatterNd, x: View) -> str | None:
    if op.reduction != "none" and (x.element.kind == "b" or x.element.is_carried):
        return f"there is no kernel for {op.reduction!r} of {x.element.name} yet"
    return None
