"""Launches with a thread for every position of some loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.lowering import Site
from tract_cuda.maps import lanes_along


def loops_over(
    shape: Sequence[Dim], strides: Sequence[Sequence[Dim]], alone: Sequence[int] = ()
) -> tuple[list[StridedLoop], list[int]]:
    """The loops over some axes, at least one, and which of them are those over the axes ``alone``, which stay so.

    ``strides``: one list for each tensor.
    """
    loops, kept, begin = list[StridedLoop](), list[int](), 0
    for axis in [*sorted(alone), len(shape)]:
        loops += collapsed(shape[begin:axis], [one[begin:axis] for one in strides])
        if axis < len(shape):
            kept.append(len(loops))
            loops.append(StridedLoop(shape[axis], tuple(one[axis] for one in strides)))
        begin = axis + 1
    return loops or [StridedLoop(1, (0,) * len(strides))], kept


def in_vectors(
    loops: Sequence[StridedLoop], views: Sequence[View], which: Sequence[int], steps: Sequence[Dim] = ()
) -> tuple[list[StridedLoop], int]:
    """The loops with the last one counted in vectors, and how many lanes these have.

    ``which``: the tensors that are read and written in vectors, ``views``, by their numbers in the loops. All of them
    move to the next element, or there is one lane. ``steps``: by which else places may differ.
    """
    *outer, last = loops
    if any(last.strides[number] != 1 for number in which):
        return list(loops), 1
    seen = [StridedLoop(1, (step,) * len(which)) for step in steps]
    seen += [StridedLoop(loop.size, tuple(loop.strides[number] for number in which)) for loop in loops]
    lanes = lanes_along(views, seen)
    strides = tuple(stride * lanes for stride in last.strides)
    return [*outer, StridedLoop(ceil_div(last.size, lanes), strides)], lanes


def numbers_of(loops: Sequence[StridedLoop], tensors: Mapping[str, View]) -> dict[str, View | Dim]:
    """What kernels of `tract_cuda.kernels.positions` are told of loops and of the tensors in them, in order."""
    given: dict[str, View | Dim] = {**counted([loop.size for loop in loops])}
    for number, (name, view) in enumerate(tensors.items()):
        given[name] = view
        given |= {f"{name}.{axis}": loop.strides[number] for axis, loop in enumerate(loops)}
    return given


def rows_along(axis: int, tensors: Mapping[str, View]) -> tuple[list[StridedLoop], dict[str, View | Dim]]:
    """The loops over all axes but one, and what kernels are told of them, of the tensors, and of steps along that one.

    The tensors have the same sizes along all other axes.
    """
    views = list(tensors.values())
    others = [one for one in range(len(views[0].shape)) if one != axis]
    loops, _ = loops_over([views[0].shape[one] for one in others], [[v.strides[one] for one in others] for v in views])
    return loops, numbers_of(loops, tensors) | {f"{name}.step": one.strides[axis] for name, one in tensors.items()}


def counted(sizes: Sequence[Dim]) -> dict[str, Dim]:
    """What kernels are told of loops of these sizes: how many positions there are, and each size."""
    return {"count": product(sizes), **sizes_of(sizes)}


def sizes_of(sizes: Sequence[Dim]) -> dict[str, Dim]:
    """Each size, by the number of its axis."""
    return {f"size{axis}": size for axis, size in enumerate(sizes)}


def strides_of(tensors: Mapping[str, View]) -> dict[str, View | Dim]:
    """What kernels are told of tensors whose axes they know."""
    given: dict[str, View | Dim] = {}
    for name, view in tensors.items():
        given |= {name: view, **{f"{name}.{axis}": stride for axis, stride in enumerate(view.strides)}}
    return given


def launch_over(
    site: Site,
    plan: KernelPlan,
    loops: Sequence[StridedLoop],
    tensors: Mapping[str, View],
    writes: Sequence[View],
    **given: View | Dim,
) -> None:
    """Add a launch. ``tensors``: in the order of the strides of the loops; ``given``: further arguments."""
    numbers = {**numbers_of(loops, tensors), **given}
    count = numbers["count"]
    assert not isinstance(count, View)
    site.launch(plan, [ceil_div(count, plan.threads)], numbers, writes)
