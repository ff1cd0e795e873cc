"""Which functions of NumPy native code knows, and how each is wired. What is not here is left to the host.

A function is here only where it gives what the operators that it is wired as give, at what is not a number, infinities,
signed zeros and the ends of integer types too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tract_cpu.tracing.functions import binary, choose, compose, create, einsum, elementwise, join, reduce, shape

UFUNCS: Final[dict[np.ufunc, Callable[..., Any]]] = {**elementwise.UFUNCS, **binary.UFUNCS, **compose.UFUNCS}
"""``(trace, *operands) -> result``: outlets of one rank, in the types in which NumPy computes."""

FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    **reduce.FUNCTIONS,
    **shape.FUNCTIONS,
    **join.FUNCTIONS,
    **choose.FUNCTIONS,
    **create.FUNCTIONS,
    **einsum.FUNCTIONS,
}
"""``(trace, *arguments) -> Traced`` (or several): the arguments are those of the function, by the same names."""

REDUCTIONS: Final[dict[np.ufunc, Callable[..., Any]]] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
"""What ``ufunc.reduce`` is."""
