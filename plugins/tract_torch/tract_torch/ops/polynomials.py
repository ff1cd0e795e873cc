"""Orthogonal polynomials of a degree that is a number of the module, by their recurrences, in f64 whatever the type.

The recurrences are those of M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 22.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.ops.elementwise import times
from tract_torch.registry import ATEN, AtenFn
from tract_torch.wiring.call import Call

ROWS = Rows()

_MOST: Final = 64
"""The highest degree that is taken apart into operators."""

Step = Callable[[int], tuple[float, float, float]]
"""``k -> (a, b, c)``: the polynomial of degree k + 1 is (a x + b) p(k) - c p(k - 1)."""


def _chebyshev(_: int) -> tuple[float, float, float]:
    return 2, 0, 1


_KINDS: Final[dict[str, tuple[tuple[float, float], Step]]] = {
    "chebyshev_polynomial_t": ((1, 0), _chebyshev),
    "chebyshev_polynomial_u": ((2, 0), _chebyshev),
    "chebyshev_polynomial_v": ((2, -1), _chebyshev),
    "chebyshev_polynomial_w": ((2, 1), _chebyshev),
    "hermite_polynomial_h": ((2, 0), lambda k: (2, 0, 2 * k)),
    "hermite_polynomial_he": ((1, 0), lambda k: (1, 0, k)),
    "laguerre_polynomial_l": ((-1, 1), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "legendre_polynomial_p": ((1, 0), lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1))),
}
"""For the name of a kind, the slope and the constant of the polynomial of degree 1, and the step to the next one."""


def _line(x: Wired, slope: float, constant: float) -> Wired:
    found = times(x, slope)
    return found + constant if constant else found


def _polynomial(first: tuple[float, float], step: Step, *, is_shifted: bool) -> AtenFn:
    """The row of one kind; ``is_shifted``: of 2 x - 1 in place of x."""

    def wire_polynomial(call: Call, wire: NodeWiring) -> Wired:
        degree = call.value("n")
        if not isinstance(degree, (int, float)) or degree > _MOST:
            raise Unsupported(f"a polynomial of degree {degree}", hint=f"a degree that is a number, up to {_MOST}")
        x = call.tensor("x").cast(DatumType.F64)
        x = _line(x, 2, -1) if is_shifted else x
        before, now = x.like(0), x.like(1)
        for k in range(int(degree)):
            slope, constant, share = (*first, 0) if k == 0 else step(k)
            following = _line(x, slope, constant) * now
            before, now = now, following - times(before, share) if share else following
        found = now if degree >= 0 else before
        return x.eq(x).where(found, found).cast(call.kind)  # of the shape of x, at degree 0 too

    return wire_polynomial


for _name, (_first, _step) in _KINDS.items():
    ROWS.add(ATEN, f"aten.special_{_name}.n_scalar", _polynomial(_first, _step, is_shifted=False))
    if _name.startswith("chebyshev"):
        ROWS.add(ATEN, f"aten.special_shifted_{_name}.n_scalar", _polynomial(_first, _step, is_shifted=True))
