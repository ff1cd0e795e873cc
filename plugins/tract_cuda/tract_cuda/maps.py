"""Launches of element-wise kernels, copies among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.program.loops import Loop, collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, TDim, product
from tract_cuda.kernels.map import THREADS, MapPlan
from tract_cuda.program import Launch

_ACCESS: Final = 16
"""Bytes that one thread reads or writes at once, at most."""


def map_launch(expression: Expression, operands: Sequence[View], result: View, nodes: Sequence[int] = ()) -> Launch:
    """The expression of each element of the operands, which are stretched to the shape of the result."""
    views = [*(one.stretched(result.shape) for one in operands), result]
    loops = collapsed(result.shape, [one.strides for one in views]) or [Loop(1, (0,) * len(views))]
    moves = tuple(_move(stride) for stride in loops[-1].strides)
    moves = (*moves[:-1], "next" if moves[-1] == "stays" else moves[-1])
    lanes = _lanes(views, loops, moves)
    plan = MapPlan(expression, len(loops), moves, lanes)
    count = product([one.size for one in loops]) // lanes
    given: dict[str, View | Dim] = {"count": count}
    given |= {f"size{axis}": loop.size for axis, loop in enumerate(loops)}
    for number, view in enumerate(views):
        given[f"tensor{number}"] = view
        given |= {f"stride{number}.{axis}": loop.strides[number] for axis, loop in enumerate(loops)}
    return Launch.of(plan, [(count + THREADS - 1) // THREADS], given, [result], nodes)


def copy_launch(source: View, target: View, nodes: Sequence[int] = ()) -> Launch:
    """A copy of a tensor, bit by bit."""
    bits = source.as_bits()
    return map_launch(Expression((bits.element,)), [bits], target.as_bits(), nodes)


def is_multiple(size: Dim, of: int) -> bool:
    """Whether a size is surely a multiple of a number."""
    if isinstance(size, TDim):
        return not any(times % of for times in size.terms.values()) and size.constant % of == 0
    return size % of == 0


def _move(stride: Dim) -> str:
    return {0: "stays", 1: "next"}.get(stride, "far") if isinstance(stride, int) else "far"


def _lanes(views: Sequence[View], loops: Sequence[Loop], moves: Sequence[str]) -> int:
    """How many neighbours one thread computes: as many as one access holds of the narrowest elements, at most 8."""
    if "far" in moves:
        return 1
    lanes = min(8, *(_ACCESS // one.element.bytes for one in views))
    while lanes > 1 and not _aligned(views, loops, moves, lanes):
        lanes //= 2
    return max(lanes, 1)


def _aligned(views: Sequence[View], loops: Sequence[Loop], moves: Sequence[str], lanes: int) -> bool:
    moving = [number for number, move in enumerate(moves) if move == "next"]
    begins = [views[number].offset for number in moving]
    steps = [loop.strides[number] for loop in loops[:-1] for number in moving]
    return all(is_multiple(one, lanes) for one in (loops[-1].size, *begins, *steps))
