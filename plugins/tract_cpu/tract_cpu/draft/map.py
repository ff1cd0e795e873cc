"""Which loops an element-wise kernel has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.elements.expressions import Expression, widest_bits
from tract_llvm.fuse.code_size import CHEAP, code_size
from tract_llvm.isa import Isa
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_cpu.kernels.map import CHUNK, MapPlan
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep

_MOST_CODE_TWICE: Final = 16
"""How much code is written for two vectors at once: all of it is there once more, for one."""


def map_step(
    expression: Expression, operands: Sequence[View], result: View, isa: Isa, nodes: Sequence[int]
) -> NativeStep:
    """The call that computes an expression of tensors that were stretched to the shape of the result."""
    views = [*operands, result]
    loops = collapsed(result.shape, [view.strides for view in views]) or [StridedLoop(1, (0,) * len(views))]
    moves = tuple("stays" if stride == 0 else "next" if stride == 1 else "far" for stride in loops[-1].strides)
    lanes = 0 if "far" in moves or moves[-1] == "stays" else isa.lanes(widest_bits(expression.types))
    masked = bool(lanes) and isa.masks_bits <= min(one.bytes * 8 for one in (*expression.inputs, expression.result))
    plan = MapPlan(expression, len(loops), moves, lanes, masked, _vectors(expression))
    given = arguments(
        plan,
        sizes=[loop.size for loop in loops],
        tensors=[view.address for view in views],
        loops=[{"strides": loop.strides} for loop in loops],
    )
    tasks: Dim = loops[0].size if len(loops) > 1 else ceil_div(loops[0].size, CHUNK)
    return NativeStep(
        plan,
        given,
        tasks,
        tuple(nodes),
        (result.storage,),
        work=product(result.shape),
        weight=max(1, sum(map(code_size, expression.steps))),
        needs_work=True,
    )


def _vectors(expression: Expression) -> int:
    """Two where one has long to wait: for an operator of many instructions, or until it is rounded."""
    waits = any(type(one.op) not in CHEAP or one.result.computed is not one.result for one in expression.steps)
    return 2 if waits and sum(map(code_size, expression.steps)) <= _MOST_CODE_TWICE else 1
