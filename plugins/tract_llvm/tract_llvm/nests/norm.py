"""Root-mean-square normalisation: two passes over each row. Other norms are found in the operators they are made of."""

from __future__ import annotations

from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import Rsqrt
from tract_core.ops.norm import RmsNorm
from tract_core.ops.reduce import Reducer
from tract_core.plugins.tables import Rows
from tract_llvm.fuse.nest import Nest, nests
from tract_llvm.language.types import ElementType
from tract_llvm.nests.softmax import narrowed, widened

ROWS = Rows()


@nests(ROWS, lambda op: (op.axis,), RmsNorm)
def rms_norm(op: RmsNorm, nest: Nest, x: int, result: ElementType) -> int:
    """Each element, times one over the root of the mean square."""
    wide = widened(nest, x)
    mean = nest.fold(Reducer.MEAN_OF_SQUARES, wide)
    scale = nest.apply(Rsqrt(), nest.apply(Add(), mean, nest.constant(op.eps, nest.type_of(wide))))
    return narrowed(nest, nest.apply(Mul(), wide, scale), result)
