"""Cases of local response normalisation."""

from __future__ import annotations

import numpy as np

from tract_core.ops.lrn import Lrn
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Array, Case

ROWS = Rows()


def _expected(op: Lrn, x: Array) -> Array:
    """Element by element, on axis 1."""
    result = np.zeros_like(x)
    for n, c, s in np.ndindex(*x.shape):
        first, last = max(0, c - (op.size - 1) // 2), min(x.shape[1] - 1, c + op.size // 2)
        energy = sum(x[n, i, s] ** 2 for i in range(first, last + 1))
        result[n, c, s] = x[n, c, s] / (op.bias + op.alpha / op.size * energy) ** op.beta
    return result


def _case(op: Lrn, fact: str = "B,C,S,f32") -> Case:
    return Case(f"Lrn-{op.size}-{fact}", op, [fact], lambda x: _expected(op, x), {"B": 2, "C": 7, "S": 3})


_CASES = [
    *(_case(Lrn(size, 0.3, 0.6, 1.2)) for size in (1, 2, 3, 4, 5)),
    _case(Lrn(20)),
    _case(Lrn(3, 0.5), "B,C,S,f16"),
    Case(
        "Lrn-last-axis",
        Lrn(3, 0.5, axis=2),
        ["B,S,C,f32"],
        lambda x: _expected(Lrn(3, 0.5), x.transpose(0, 2, 1)).transpose(0, 2, 1),
        {"B": 2, "C": 7, "S": 3},
    ),
]

ROWS.add(CASES, "lrn", _CASES)
