"""Launches of element-wise kernels, copies among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.fuse.code_size import code_size
from tract_llvm.language.types import ElementType
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View, memory_order

from tract_core.dims import Dim, TDim, ceil_div, product
from tract_cuda.kernels.keep import KeepPlan
from tract_cuda.kernels.map import MapPlan
from tract_cuda.kernels.map_turned import SIDE, TurnedPlan
from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.arch import ACCESS_BYTES
from tract_cuda.program import Launch

_MOST_CODE: Final = 512
"""How much code may be written for all lanes of a thread."""

_UNKNOWN: Final = 64
"""What a symbolic size is taken for."""

_SHORT: Final = 8
"""Positions of an axis along which it is worth nothing to have neighbouring threads."""


def map_launch(expression: Expression, operands: Sequence[View], result: View, nodes: Sequence[int] = ()) -> Launch:
    """The expression of each element of the operands, which are stretched to the shape of the result."""
    views = [*(one.stretched(result.shape) for one in operands), result]
    order = memory_order(result) or range(len(result.shape))
    loops = collapsed([result.shape[axis] for axis in order], [[one.strides[axis] for axis in order] for one in views])
    loops = loops or [StridedLoop(1, (1,) * len(views))]
    other = _other_axis(loops)
    if other is not None:
        return _turned_launch(expression, views, loops, other, nodes)
    code = max(1, sum(map(code_size, expression.steps)))
    lanes = lanes_along(views, loops, _MOST_CODE // code, ragged=len(loops) == 1)
    inner = loops[-1]
    ragged = not is_multiple(inner.size, lanes)
    moves = tuple(move_of(stride) if lanes > 1 else "far" for stride in inner.strides)
    vectors = [*loops[:-1], StridedLoop(ceil_div(inner.size, lanes), tuple(stride * lanes for stride in inner.strides))]
    count = product([one.size for one in vectors])
    given: dict[str, View | Dim] = {"count": count, "length": inner.size}
    given |= {f"size{axis}": loop.size for axis, loop in enumerate(vectors)}
    for number, view in enumerate(views):
        given |= {f"tensor{number}": view, f"apart{number}": inner.strides[number]}
        given |= {f"stride{number}.{axis}": loop.strides[number] for axis, loop in enumerate(vectors)}
    plan = MapPlan(expression, len(loops), moves, lanes, ragged)
    return Launch.of(plan, [ceil_div(count, THREADS)], given, [result], nodes)


def copy_launch(source: View, target: View, nodes: Sequence[int] = ()) -> Launch:
    """A copy of a tensor, bit by bit."""
    bits = source.as_bits()
    return map_launch(Expression((bits.element,)), [bits], target.as_bits(), nodes)


def keep_launch(source: View, kept: View, refused: View) -> Launch:
    """A copy of a tensor that is not made where a kernel has said in ``refused`` that it did not do its work."""
    pair = {"source": source.as_bits(), "kept": kept.as_bits()}
    loops = collapsed(kept.shape, [one.strides for one in pair.values()]) or [StridedLoop(1, (0, 0))]
    given: dict[str, View | Dim] = {"count": product(kept.shape), "refused": refused, **pair}
    given |= {f"size{axis}": loop.size for axis, loop in enumerate(loops)}
    for number, name in enumerate(pair):
        given |= {f"{name}.{axis}": loop.strides[number] for axis, loop in enumerate(loops)}
    return Launch.of(
        KeepPlan(pair["kept"].element, len(loops)), [ceil_div(product(kept.shape), THREADS)], given, [kept]
    )


def is_multiple(size: Dim, of: int) -> bool:
    """Whether a size is surely a multiple of a number."""
    if isinstance(size, TDim):
        return not any(times % of for times in size.terms.values()) and size.constant % of == 0
    return size % of == 0


def assumed(size: Dim) -> int:
    """A size, or what a symbolic one is taken for where something is chosen before it is known."""
    return size if isinstance(size, int) else _UNKNOWN


def vector_width(elements: Sequence[ElementType], places: Sequence[Dim], most: int = ACCESS_BYTES) -> int:
    """How many neighbours one access reads or writes of tensors of all these types: at most ``most``, at least one.

    It surely divides all ``places``: where vectors begin, and how far apart they lie.
    """
    lanes = min(ACCESS_BYTES // element.bytes for element in elements)
    while lanes > 1 and not (lanes <= most and all(is_multiple(one, lanes) for one in places)):
        lanes //= 2
    return max(lanes, 1)


def move_of(stride: Dim) -> str:
    """How a tensor moves along a loop: ``stays``, ``next`` to the next element, or ``far``."""
    return {0: "stays", 1: "next"}.get(stride, "far") if isinstance(stride, int) else "far"


def lanes_along(
    views: Sequence[View], loops: Sequence[StridedLoop], most: int = ACCESS_BYTES, *, ragged: bool = False
) -> int:
    """How many neighbours along the last loop one thread has: as many as one access holds of what lies side by side.

    ``most``: of them. ``ragged``: whether the size of the loop need not be a multiple of them. What goes to the next
    element begins at multiples of them then, in all rounds of the other loops.
    """
    near = [number for number, stride in enumerate(loops[-1].strides) if move_of(stride) == "next"]
    if not near:
        return 1
    steps = [loop.strides[number] for loop in loops[:-1] for number in near]
    places = [*(views[number].offset for number in near), *steps, *([] if ragged else [loops[-1].size])]
    return vector_width([views[number].element for number in near], places, most)


def _other_axis(loops: Sequence[StridedLoop]) -> int | None:
    """The loop along which operands lie side by side that do not along the last one, as the result does."""
    if move_of(loops[-1].strides[-1]) != "next":
        return None
    for number, loop in enumerate(loops[:-1]):
        turned = any(_is_turned(*pair) for pair in zip(loop.strides[:-1], loops[-1].strides[:-1], strict=True))
        if turned and not any(isinstance(one.size, int) and one.size <= _SHORT for one in (loop, loops[-1])):
            return number
    return None


def _is_turned(line: Dim, column: Dim) -> bool:
    return move_of(line) == "next" and move_of(column) == "far"


def _turned_launch(
    expression: Expression, views: Sequence[View], loops: Sequence[StridedLoop], other: int, nodes: Sequence[int]
) -> Launch:
    lines, columns = loops[other], loops[-1]
    around = [*loops[:other], *loops[other + 1 : -1]]
    turned = tuple(_is_turned(*pair) for pair in zip(lines.strides, columns.strides, strict=True))
    given: dict[str, View | Dim] = {"lines": lines.size, "columns": columns.size}
    given |= {f"size{axis}": loop.size for axis, loop in enumerate(around)}
    for number, view in enumerate(views):
        given |= {f"tensor{number}": view, f"line{number}": lines.strides[number]}
        given[f"column{number}"] = columns.strides[number]
        given |= {f"stride{number}.{axis}": loop.strides[number] for axis, loop in enumerate(around)}
    squares = product([one.size for one in around]) * ceil_div(lines.size, SIDE) * ceil_div(columns.size, SIDE)
    return Launch.of(TurnedPlan(expression, turned, len(around)), [squares], given, [views[-1]], nodes)
