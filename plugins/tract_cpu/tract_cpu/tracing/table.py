"""Which functions of NumPy native code knows, and how each is wired. What is not here is left to the host.

A function is here only where it gives what the operators that it is wired as give, at what is not a number, infinities,
signed zeros and the ends of integer types too.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_cpu.tracing.functions import binary, choose, compose, create, einsum, elementwise, index, join, reduce, shape
from tract_cpu.tracing.trace import Functions

FUNCTIONS: Final = Functions(
    ufuncs={**elementwise.UFUNCS, **binary.UFUNCS, **compose.UFUNCS},
    others={
        **reduce.FUNCTIONS,
        **shape.FUNCTIONS,
        **join.FUNCTIONS,
        **choose.FUNCTIONS,
        **create.FUNCTIONS,
        **einsum.FUNCTIONS,
    },
    reductions={
        np.add: np.sum,
        np.multiply: np.prod,
        np.maximum: np.max,
        np.minimum: np.min,
        np.logical_and: np.all,
        np.logical_or: np.any,
    },
    indexed=index.indexed,
)
