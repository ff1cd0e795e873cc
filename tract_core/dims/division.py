"""Products of sizes, and division that leaves nothing over or rounds up."""

from __future__ import annotations

from collections.abc import Iterable

from tract_core.dims.atoms import Factor, Monomial
from tract_core.dims.tdim import Dim, TDim, make_dim
from tract_core.errors import DimError


def product(dims: Iterable[Dim]) -> Dim:
    """All ``dims`` multiplied: the volume of a shape; 1 for none."""
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def ceil_div(a: Dim, n: int) -> Dim:
    """``a / n`` rounded up. Raises DimError unless ``n`` is a positive ``int``."""
    if isinstance(a, int) and n <= 0:
        raise DimError(f"cannot divide {a} by {n}", hint="a size is divided by a positive integer")
    return (a + (n - 1)) // n


def exact_div(a: Dim, b: Dim) -> Dim | None:
    """The size which, multiplied by ``b``, has the form of ``a``; ``None`` where there is none.

    Divides as polynomials do: ``S*P / S`` is ``P``, whatever ``S`` is. ``None`` also where ``b`` is 0.
    """
    if isinstance(b, int):
        return _divide_by_number(a, b)
    if isinstance(a, int):
        return None if a else 0
    return _divide_by_sum(a, b)


def _divide_by_number(a: Dim, b: int) -> Dim | None:
    if b == 0:
        return None
    if isinstance(a, int):
        return None if a % b else a // b
    if a.constant % b or any(factor % b for factor in a.terms.values()):
        return None
    return TDim({term: factor // b for term, factor in a.terms.items()}, a.constant // b)


def _divide_by_sum(a: TDim, b: TDim) -> Dim | None:
    """Long division: the leading term of what is left is divided by that of ``b``, until nothing is left."""
    lead, lead_factor = _leading(b)
    quotient: Dim = 0
    rest: Dim = a
    while isinstance(rest, TDim):
        term, factor = _leading(rest)
        step = _cancel(term, lead)
        if step is None or factor % lead_factor:
            return None
        part = make_dim({step: factor // lead_factor}, 0) if step else factor // lead_factor
        quotient = quotient + part
        rest = rest - b * part
        if isinstance(rest, TDim) and not _precedes(_leading(rest)[0], term):
            return None
    return quotient if rest == 0 else None


def _leading(dim: TDim) -> tuple[Monomial, int]:
    """The term of the highest degree, and of those the one whose factors come first.

    Multiplying by any product keeps this order, which long division relies on.
    """
    degree = max(map(len, dim.terms))
    term = min(term for term in dim.terms if len(term) == degree)
    return term, dim.terms[term]


def _precedes(lower: Monomial, higher: Monomial) -> bool:
    return len(lower) < len(higher) or (len(lower) == len(higher) and lower > higher)


def _cancel(term: Monomial, divisor: Monomial) -> Monomial | None:
    """``term / divisor``; ``None`` where a factor of ``divisor`` is missing."""
    left: list[Factor] = list(term)
    for factor in divisor:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)
