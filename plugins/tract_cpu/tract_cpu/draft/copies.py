"""Tensors copied from one place to another, whatever their strides. What is moved is not interpreted."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.elementwise import cast
from tract_llvm.elements.expressions import Apply, Expression
from tract_llvm.isa import Isa
from tract_llvm.language.types import ElementType
from tract_llvm.program.loops import collapsed
from tract_llvm.program.views import View

from tract_core.data import DatumType
from tract_core.dims import ceil_div, product
from tract_core.ops.cast import Cast
from tract_cpu.draft.map import map_step
from tract_cpu.kernels.transpose import BLOCK, PIECE_BITS, TransposePlan
from tract_cpu.program.arguments import arguments, each_loop
from tract_cpu.program.program import NativeStep


def copy_step(source: View, target: View, isa: Isa, nodes: Sequence[int]) -> NativeStep:
    """The call that copies one tensor into another of the same shape.

    Where the source goes on along another axis than the target, blocks are turned around.
    """
    source, target = source.as_bits(), target.as_bits()
    loops = collapsed(target.shape, [source.strides, target.strides])
    across = next((place for place, loop in enumerate(loops) if loop.strides[0] == 1), None)
    if source.element.bits >= PIECE_BITS:
        across = None  # nothing to interleave
    if across is None or across == len(loops) - 1 or loops[-1].strides[1] != 1 or loops[-1].strides[0] == 0:
        return map_step(Expression((source.element,)), [source], target, isa, nodes)
    outer = [loop for place, loop in enumerate(loops) if place not in {across, len(loops) - 1}]
    down, along = loops[across], loops[-1]
    plan = TransposePlan(source.element, isa.lanes(source.element.bits), len(outer))
    given = arguments(
        plan,
        down=down.size,
        along=along.size,
        source=source.address,
        source_row=along.strides[0],
        target=target.address,
        target_row=down.strides[1],
        outer=each_loop(outer),
    )
    blocks = ceil_div(down.size, BLOCK) * ceil_div(along.size, BLOCK)
    tasks = product([loop.size for loop in outer]) * blocks
    work = product(target.shape)
    return NativeStep(plan, given, tasks, tuple(nodes), (target.storage,), work=work, needs_work=True)


def convert_step(source: View, target: View, isa: Isa, nodes: Sequence[int]) -> NativeStep:
    """The call that copies a tensor into another one of the same shape, its elements in the type of the other."""
    expression = Expression((source.element,), (converting(0, target.element),))
    return map_step(expression, [source], target, isa, nodes)


def converting(number: int, to: ElementType) -> Apply:
    """The step that converts a value, by its number."""
    return Apply(Cast(DatumType.parse(to.name)), (number,), to, cast)
