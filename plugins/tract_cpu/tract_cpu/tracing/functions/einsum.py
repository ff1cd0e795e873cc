"""Products of arrays, summed along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.model.axes import LETTERS, AxesMapping
from tract_core.ops.einsum import EinSum
from tract_cpu.tracing.functions.binary import same_type
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced


def _product(trace: Trace, expression: str, *operands: Any) -> Traced:
    own = trace.common_type(*operands)
    outlets = [trace.outlet(one, own) for one in operands]
    if own.kind != "f" or same_type(trace, "products", *outlets).itemsize < 4:
        trace.refuse(f"its meaning sums products of {own}, which NumPy does in a way of its own")
    return trace.made(trace.wire.op(EinSum(AxesMapping.parse(expression), DatumType.from_numpy(own)), *outlets))


def _matmul(trace: Trace, x1: Any, x2: Any) -> Traced:
    """Matrices in the last two axes; an array of one axis is a row on the left, a column on the right."""
    a, b = trace.array(x1), trace.array(x2)
    if not a.ndim or not b.ndim:
        raise TypeError("a number is no matrix")
    batch = max(a.ndim, b.ndim, 2) - 2
    names = LETTERS[3 : 3 + batch]
    left = "k" if a.ndim == 1 else names[batch - (a.ndim - 2) :] + "mk"
    right = "k" if b.ndim == 1 else names[batch - (b.ndim - 2) :] + "kn"
    left, right = left.replace("k", "a").replace("m", "b"), right.replace("k", "a").replace("n", "c")
    return _product(trace, f"{left},{right}->{names}{'b' * (a.ndim > 1)}{'c' * (b.ndim > 1)}", a, b)


def _dot(trace: Trace, a: Any, b: Any) -> Traced:
    """The product of matrices, or of arrays of one axis."""
    x, y = trace.array(a), trace.array(b)
    if x.ndim not in (1, 2) or y.ndim not in (1, 2):
        raise TypeError(f"the arrays have {x.ndim} and {y.ndim} axes")
    return _matmul(trace, x, y)


def _einsum(trace: Trace, subscripts: Any, *operands: Any, optimize: Any = False) -> Traced:
    """Axes by name; without an output, it is left to NumPy to name them."""
    if not isinstance(subscripts, str) or "->" not in subscripts or "." in subscripts:
        raise TypeError("the axes of the output are not named one by one")
    return _product(trace, subscripts.replace(" ", ""), *operands)


FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.matmul: _matmul,
    np.dot: _dot,
    np.einsum: _einsum,
}
